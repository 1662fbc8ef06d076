//! From a JS view to the address of a lock word.

use std::ptr::{self, NonNull};

use napi::bindgen_prelude::*;
use napi::sys;

use crate::shared_word::SharedWord;

/// The first element of an `Int32Array` of length 1, and that array.
pub struct JsWord(pub SharedWord, pub sys::napi_value);

impl FromNapiValue for JsWord {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        let mut kind = 0;
        let mut length = 0;
        let mut data = ptr::null_mut();
        let mut byte_offset = 0;
        // SAFETY: `env` and `value` are those of the call in progress; the out-parameters live, and null is allowed for the buffer.
        let status = unsafe {
            sys::napi_get_typedarray_info(
                env,
                value,
                &mut kind,
                &mut length,
                &mut data,
                ptr::null_mut(),
                &mut byte_offset,
            )
        };
        let at = NonNull::new(data.cast()).filter(|_| kind == sys::TypedarrayType::int32_array && length == 1);
        match at {
            Some(at) if status == sys::Status::napi_ok => {
                // SAFETY: an Int32Array is aligned to 4 and lies inside its buffer. The array, and so the buffer, lives as an
                // argument during the call, and as an anchor (see `anchors.rs`) until a pending wait is settled;
                // `lib/mutex.js` made it over a SharedArrayBuffer, whose memory never moves or shrinks, and uses Atomics only.
                Ok(Self(unsafe { SharedWord::new(at, byte_offset) }, value))
            }
            _ => Err(Error::new(Status::InvalidArg, "expected an Int32Array of length 1")),
        }
    }
}
