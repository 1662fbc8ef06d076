//! What Node-API tells of a typed array.

use std::ptr::{self, NonNull};

use napi::sys;

/// Where the elements of a typed array are, and what they are.
pub struct TypedArray {
    /// One of `sys::TypedarrayType`.
    pub kind: i32,
    /// How many elements it has.
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
