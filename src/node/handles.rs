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

/// Calls a JS function without arguments. `None` if it threw, or can run no more: then nothing that may run JS is called before this
/// thread returns to JS, where V8 goes on with what was thrown. napi's own `call` makes an error of that, also of a termination, which
/// is lost by it: the thread runs on.
pub fn call(env: sys::napi_env, function: sys::napi_value) -> Option<sys::napi_value> {
    let (mut receiver, mut result) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: `function` is a live handle of `env`, whose thread this is.
    let status = unsafe {
        match sys::napi_get_undefined(env, &mut receiver) {
            sys::Status::napi_ok => sys::napi_call_function(env, receiver, function, 0, ptr::null(), &mut result),
            status => status,
        }
    };
    (status == sys::Status::napi_ok).then_some(result)
}

/// From a status to a result.
pub fn check(status: sys::napi_status) -> Result<()> {
    check_status!(status)
}
