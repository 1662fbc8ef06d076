//! From views of JS to places in shared memory: the words of a primitive, the elements of an integer array, and the value that one of
//! these is compared with.

use std::ptr::{self, NonNull};

use napi::bindgen_prelude::*;
use napi::sys;

use super::handles::check;
use crate::memory::Place;

/// The place and the kind of the elements of a typed array.
pub struct TypedArray {
    /// One of `sys::TypedarrayType`.
    pub kind: i32,
    /// The number of its elements.
    pub length: usize,
    /// The first of them.
    pub data: NonNull<u8>,
    /// Its place in the buffer.
    pub byte_offset: usize,
}

impl TypedArray {
    /// Reads `value`; `None` if it is no typed array, or has no memory.
    ///
    /// # Safety
    ///
    /// `env` and `value` are those of the call in progress.
    pub unsafe fn read(env: sys::napi_env, value: sys::napi_value) -> Option<Self> {
        let mut kind = 0;
        let mut length = 0;
        let mut data = ptr::null_mut();
        let mut byte_offset = 0;
        // SAFETY: by the contract of this function; the out-parameters live, and null is allowed for the buffer.
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
        let data = NonNull::new(data.cast()).filter(|_| status == sys::Status::napi_ok)?;
        Some(Self { kind, length, data, byte_offset })
    }
}

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

/// An `Int32Array` or a `BigInt64Array` over shared memory.
pub struct JsIntegers {
    data: NonNull<u8>,
    length: usize,
    byte_offset: usize,
    is_big: bool,
    /// The array.
    pub value: sys::napi_value,
}

impl JsIntegers {
    /// Its element at `index`.
    pub fn location(&self, index: f64) -> Result<Place> {
        // Saturates: what is no index is beyond the end.
        let index = index as usize;
        if index >= self.length {
            return Err(Error::new(Status::InvalidArg, "expected an index inside the array"));
        }
        // The array, and so its buffer, lives as an argument during the call, and as an anchor (see `anchors.rs`) until a
        // pending wait is settled. `lib/primitives/futex.js` has seen that it is shared memory, which never moves or shrinks.
        // JS may write there at any time: ECMAScript lets plain writes race with atomic reads, and so do the machines that
        // Node runs on.
        // SAFETY: the element lies inside the array, which is aligned to the size of its elements and lives as long as said.
        unsafe {
            Ok(if self.is_big {
                Place::big_int64(self.data.add(8 * index).cast(), self.byte_offset + 8 * index)
            } else {
                Place::new(self.data.add(4 * index).cast(), self.byte_offset + 4 * index)
            })
        }
    }
}

impl FromNapiValue for JsIntegers {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        // SAFETY: those of the call in progress, as this function's callers see to.
        let array = unsafe { TypedArray::read(env, value) };
        let is_big = |kind| kind == sys::TypedarrayType::bigint64_array;
        match array.filter(|array| is_big(array.kind) || array.kind == sys::TypedarrayType::int32_array) {
            Some(TypedArray { kind, length, data, byte_offset }) => {
                Ok(Self { data, length, byte_offset, is_big: is_big(kind), value })
            }
            None => Err(Error::new(Status::InvalidArg, "expected an Int32Array or a BigInt64Array")),
        }
    }
}

/// A number that is a 32-bit integer, or a bigint of 64 bits.
pub struct JsExpected(pub i64);

impl FromNapiValue for JsExpected {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        // The type first: on Deno, asking a bigint for its number leaves an exception pending.
        let mut kind = 0;
        let mut number = 0;
        let mut big = 0;
        let mut lossless = false;
        // SAFETY: `env` and `value` are those of the call in progress; the out-parameters live.
        let status = unsafe {
            check(sys::napi_typeof(env, value, &mut kind))?;
            match kind {
                sys::ValueType::napi_number => sys::napi_get_value_int32(env, value, &mut number),
                sys::ValueType::napi_bigint => sys::napi_get_value_bigint_int64(env, value, &mut big, &mut lossless),
                _ => sys::Status::napi_invalid_arg,
            }
        };
        check(status)?;
        Ok(Self(if kind == sys::ValueType::napi_bigint { big } else { i64::from(number) }))
    }
}
