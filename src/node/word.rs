//! From a JS view to the address of a lock word.

use napi::bindgen_prelude::*;
use napi::sys;

use super::typed_array::TypedArray;
use crate::memory::Place;

/// The words of a primitive, an `Int32Array` of one or two elements, and that array.
pub struct JsWord(pub Place, pub sys::napi_value);

impl FromNapiValue for JsWord {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        // SAFETY: those of the call in progress, as this function's callers see to.
        match unsafe { TypedArray::read(env, value) } {
            Some(TypedArray { kind: sys::TypedarrayType::int32_array, length: 1 | 2, data, byte_offset }) => {
                // SAFETY: an Int32Array is aligned to 4 and lies inside its buffer. The array, and so the buffer, lives as an
                // argument during the call, and as an anchor (see `anchors.rs`) until a pending wait is settled;
                // `lib/arguments.js` made it over a SharedArrayBuffer, whose memory never moves or shrinks, and uses Atomics only.
                Ok(Self(unsafe { Place::new(data.cast(), byte_offset) }, value))
            }
            _ => Err(Error::new(Status::InvalidArg, "expected an Int32Array of length 1 or 2")),
        }
    }
}
