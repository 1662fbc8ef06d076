//! Other threads make an event loop turn.

use std::ffi::{CStr, c_void};
use std::ptr;

use napi::bindgen_prelude::*;
use napi::{Env, sys};

use super::handles::check;
use crate::agents::{AgentId, Wake};

/// Makes a thread's event loop turn: one threadsafe function for each thread, and the agent to drain if it is not that one's.
pub struct WakeLoop(pub sys::napi_threadsafe_function, pub AgentId);

// SAFETY: calling a threadsafe function from any thread is what it is for; the agent's lock around it
// sees to it that it is not called once `end` has taken it away.
unsafe impl Send for WakeLoop {}

impl Wake for WakeLoop {
    fn wake(&self) {
        // SAFETY: alive until the environment's own cleanup, before which `end` takes this object away.
        // The status is of no use: a loop that is closing has no waits that anybody could still settle.
        unsafe {
            let drained = self.1 as usize as *mut c_void;
            sys::napi_call_threadsafe_function(self.0, drained, sys::ThreadsafeFunctionCallMode::nonblocking);
        }
    }
}

/// The function that the runtime calls on the environment's thread, with `drain`, and whom to drain instead.
type CallDrain = unsafe extern "C" fn(sys::napi_env, sys::napi_value, *mut c_void, *mut c_void);

/// A threadsafe function that runs `drain`, by `call_drain`, and does not keep the loop alive yet. `state` is what async_hooks and the
/// tools behind it get as its resource: it says by `hasRef()` whether the loop is kept alive.
pub fn create_wake(
    env: sys::napi_env,
    state: sys::napi_value,
    drain: sys::napi_value,
    call_drain: CallDrain,
) -> Result<sys::napi_threadsafe_function> {
    const NAME: &CStr = c"sablock";
    let mut name = ptr::null_mut();
    let mut function = ptr::null_mut();
    // SAFETY: `env` is the environment of the call in progress, `drain` a function and `state` an object of it;
    // the out-parameters live.
    unsafe {
        check(sys::napi_create_string_utf8(env, NAME.as_ptr(), NAME.count_bytes() as isize, &mut name))?;
        check(sys::napi_create_threadsafe_function(
            env,
            drain,
            state,
            name,
            0,
            1,
            ptr::null_mut(),
            None,
            ptr::null_mut(),
            Some(call_drain),
            &mut function,
        ))?;
        check(sys::napi_unref_threadsafe_function(env, function))?;
    }
    Ok(function)
}

/// Which event loop of the system the environment runs in; 0 if the runtime does not tell.
pub fn event_loop_address(env: sys::napi_env) -> usize {
    let mut uv_loop = ptr::null_mut();
    // SAFETY: the environment lives, and this is its thread; the out-parameter lives.
    let status = unsafe { sys::napi_get_uv_event_loop(env, &mut uv_loop) };
    if status == sys::Status::napi_ok { uv_loop as usize } else { 0 }
}

/// Whether the event loop that this function wakes stays alive for what is pending.
pub fn keep_alive(env: Env, wake: sys::napi_threadsafe_function, on: bool) {
    // SAFETY: the function lives until the environment is torn down, and this is the environment's thread.
    // A failure means that it is being torn down: nothing is left to keep alive.
    unsafe {
        if on {
            sys::napi_ref_threadsafe_function(env.raw(), wake);
        } else {
            sys::napi_unref_threadsafe_function(env.raw(), wake);
        }
    }
}
