//! Handles of Node-API: references, and statuses.

use std::ptr;

use napi::bindgen_prelude::*;
use napi::sys;

/// A strong reference.
pub fn reference(env: sys::napi_env, value: sys::napi_value) -> Result<sys::napi_ref> {
    let mut reference = ptr::null_mut();
    // SAFETY: `value` is a live object or function of `env`, in the call in progress.
    check(unsafe { sys::napi_create_reference(env, value, 1, &mut reference) })?;
    Ok(reference)
}

/// Its value, in the call in progress.
pub fn dereference(env: sys::napi_env, reference: sys::napi_ref) -> Result<sys::napi_value> {
    let mut value = ptr::null_mut();
    // SAFETY: `reference` was made in `env` with a count of 1 and is never deleted.
    check(unsafe { sys::napi_get_reference_value(env, reference, &mut value) })?;
    Ok(value)
}

/// From a status to a result.
pub fn check(status: sys::napi_status) -> Result<()> {
    check_status!(status)
}
