//! What the binding keeps for each JS thread: its agent and waits, and the functions that it calls in JS.
//!
//! However often the package is loaded in a thread (test runners clear the require cache), the thread is one agent with
//! one state object in JS, which lives until the thread's environment is torn down.

use std::cell::RefCell;
use std::ffi::{CStr, c_void};
use std::ptr;
use std::time::Instant;

use napi::bindgen_prelude::*;
use napi::{Env, sys};

use super::anchors::Anchors;
use super::lot;
use super::word::JsWord;
use crate::agent::{AgentId, ThreadId, Wake};
use crate::blocking::Caller;
use crate::deadlock::Hop;
use crate::event_loop::{EventLoop, Request, RequestError, Settled, UnlockedError};
use crate::futex::Outcome;
use crate::location::Location;
use crate::mutex::Limit;

/// One JS thread.
pub struct JsThread {
    /// Its waits.
    pub event_loop: EventLoop<'static>,
    /// What keeps the memory of their words.
    anchors: Anchors,
    /// The address of the wait that was settled last: what it got may have to be given back.
    settled: Option<usize>,
    /// The answer to `abandonedBy()`.
    pub abandoned_by: Option<ThreadId>,
    /// What the last `DEADLOCK` was about.
    pub deadlock: Vec<Hop>,
    /// The answer to `waited()`, and
    pub waits_since: Option<Instant>,
    /// to `waitedFor()`.
    pub waits_for: AgentId,
    /// The environment of the first load, which owns the references.
    env: sys::napi_env,
    state: sys::napi_ref,
    pause: sys::napi_ref,
    wake: sys::napi_threadsafe_function,
}

thread_local! {
    static THREAD: RefCell<Option<JsThread>> = const { RefCell::new(None) };
}

impl JsThread {
    /// Runs `act` on this thread's state.
    pub fn with<T>(act: impl FnOnce(&mut Self) -> T) -> Result<T> {
        THREAD.with_borrow_mut(|thread| match thread {
            Some(thread) => Ok(act(thread)),
            None => Err(Error::new(Status::Closing, "this thread's environment has been torn down")),
        })
    }

    /// Takes this thread in. `state` gets the agent's id as its property `id` and is answered;
    /// if the thread was taken in before, the object of that time is answered instead.
    pub fn attach<'env>(
        env: Env,
        thread_id: ThreadId,
        mut state: Object<'env>,
        drain: Unknown<'env>,
        pause: Unknown<'env>,
    ) -> Result<Unknown<'env>> {
        let is_new = THREAD.with_borrow(Option::is_none);
        if is_new {
            let raw = env.raw();
            let wake = create_wake(raw, state.raw(), drain.raw())?;
            let (state_reference, pause) = (reference(raw, state.raw())?, reference(raw, pause.raw())?);
            // Registered after the threadsafe function, so that it runs before that function's own hook: last in, first out.
            // SAFETY: `env` is the environment of the call in progress; the hook takes no argument, and is added once.
            check(unsafe { sys::napi_add_env_cleanup_hook(raw, Some(end), ptr::null_mut()) })?;
            let agent = lot()
                .agents
                .enter(thread_id)
                .ok_or_else(|| Error::from_reason("this process has used up its thread ids"))?;
            agent.set_waker(Some(Box::new(WakeLoop(wake))));
            let id = agent.id;
            THREAD.set(Some(Self {
                event_loop: EventLoop::new(lot(), agent),
                anchors: Anchors::default(),
                settled: None,
                abandoned_by: None,
                deadlock: Vec::new(),
                waits_since: None,
                waits_for: 0,
                env: raw,
                state: state_reference,
                pause,
                wake,
            }));
            state.set("id", id)?;
        }
        let object = Self::with(|thread| dereference(thread.env, thread.state))??;
        // SAFETY: the value was made in this call's handle scope.
        Ok(unsafe { Unknown::from_raw_unchecked(env.raw(), object) })
    }

    /// Locks the word or queues for it; a pending wait keeps the word's memory.
    pub fn lock_async(
        &mut self,
        word: JsWord,
        guarded: bool,
        limit: Limit,
    ) -> Result<std::result::Result<Request, RequestError>> {
        let address = word.0.address();
        self.anchors.hold(self.env, address, word.1)?;
        let request = self.event_loop.lock(word.0, guarded, limit);
        if !matches!(request, Ok(Request::Pending(_))) {
            self.anchors.release(self.env, address)?;
        }
        self.waits_for = self.event_loop.waits_for;
        Ok(request)
    }

    /// Waits for a notification, if there is a reason to; a pending wait keeps the memory of `view`.
    pub fn wait_async(
        &mut self,
        location: Location,
        view: sys::napi_value,
        value: i64,
        limit: Limit,
    ) -> Result<std::io::Result<Request<Outcome>>> {
        let address = location.address();
        self.anchors.hold(self.env, address, view)?;
        let request = self.event_loop.wait(location, value, limit);
        if !matches!(request, Ok(Request::Pending(_))) {
            self.anchors.release(self.env, address)?;
        }
        Ok(request)
    }

    /// Frees the word and waits for a notification; the pending wait keeps the memory of `view`.
    pub fn wait_unlocked(
        &mut self,
        location: Location,
        view: sys::napi_value,
        word: JsWord,
        guarded: bool,
        limit: Limit,
    ) -> Result<std::result::Result<u32, UnlockedError>> {
        let address = location.address();
        self.anchors.hold(self.env, address, view)?;
        let request = self.event_loop.wait_unlocked(location, word.0, guarded, limit);
        if request.is_err() {
            self.anchors.release(self.env, address)?;
        }
        Ok(request)
    }

    /// Takes a pending wait back.
    pub fn cancel(&mut self, token: u32) -> Result<bool> {
        match self.event_loop.cancel(token) {
            Some(address) => self.anchors.release(self.env, address).map(|()| true),
            None => Ok(false),
        }
    }

    /// The next wait that is over; the one before has been settled.
    pub fn next(&mut self) -> Result<Option<Settled>> {
        let next = self.event_loop.next_settled();
        if let Some(address) = self.settled.take() {
            self.anchors.release(self.env, address)?;
        }
        self.settled = next.as_ref().map(Settled::address);
        Ok(next)
    }

    /// A call that blocks has returned.
    pub fn note_wait(&mut self, call: &BlockingCall) {
        self.waits_since = call.wait.map(|(since, _)| since);
        self.waits_for = call.wait.map_or(0, |(_, owner)| owner);
    }

    /// For a call that blocks, from `env`.
    pub fn blocking_call(&self, env: Env) -> BlockingCall {
        BlockingCall { env: env.raw(), owner: self.env, pause: self.pause, wait: None }
    }

    /// Whether this thread's loop stays alive for what is pending.
    pub fn keep_alive(&self, env: Env, on: bool) {
        // SAFETY: the function lives until the environment is torn down, and this is the environment's thread.
        // A failure means that it is being torn down: nothing is left to keep alive.
        unsafe {
            if on {
                sys::napi_ref_threadsafe_function(env.raw(), self.wake);
            } else {
                sys::napi_unref_threadsafe_function(env.raw(), self.wake);
            }
        }
    }
}

/// A call from JS that blocks.
pub struct BlockingCall {
    env: sys::napi_env,
    owner: sys::napi_env,
    pause: sys::napi_ref,
    /// When it began to wait in the queue of the word, if it came to that, and who held the word then.
    wait: Option<(Instant, AgentId)>,
}

impl Caller for BlockingCall {
    /// Calls a JS function, which lets the debugger in and shows whether the thread is being terminated.
    /// False if no JS can run here any more.
    fn pause(&mut self) -> bool {
        let env = self.env;
        let mut scope = ptr::null_mut();
        // SAFETY: this is the thread of `env` and of `owner`, inside a call from JS; the reference lives as long as the thread.
        // Once a status is not ok, nothing that may run JS is called.
        unsafe {
            if sys::napi_open_handle_scope(env, &mut scope) != sys::Status::napi_ok {
                return false;
            }
            let mut receiver = ptr::null_mut();
            let is_alive = dereference(self.owner, self.pause).is_ok_and(|function| {
                sys::napi_get_undefined(env, &mut receiver) == sys::Status::napi_ok
                    && sys::napi_call_function(env, receiver, function, 0, ptr::null(), ptr::null_mut())
                        == sys::Status::napi_ok
            });
            sys::napi_close_handle_scope(env, scope);
            is_alive
        }
    }

    fn queued(&mut self, owner: AgentId, since: Instant) {
        self.wait = Some((since, owner));
    }
}

/// Makes a thread's event loop turn: one threadsafe function for each thread.
struct WakeLoop(sys::napi_threadsafe_function);

// SAFETY: calling a threadsafe function from any thread is what it is for; the agent's lock around it
// sees to it that it is not called once `end` has taken it away.
unsafe impl Send for WakeLoop {}

impl Wake for WakeLoop {
    fn wake(&self) {
        // SAFETY: alive until the environment's own cleanup, before which `end` takes this object away.
        // The status is of no use: a loop that is closing has no waits that anybody could still settle.
        unsafe {
            sys::napi_call_threadsafe_function(self.0, ptr::null_mut(), sys::ThreadsafeFunctionCallMode::nonblocking);
        }
    }
}

/// The thread's environment is torn down: its agent ends.
unsafe extern "C" fn end(_: *mut c_void) {
    if let Some(thread) = THREAD.take() {
        thread.event_loop.end();
    }
}

/// Runs `drain` on its thread; `env` is null when the environment is already gone.
unsafe extern "C" fn call_drain(env: sys::napi_env, drain: sys::napi_value, _: *mut c_void, _: *mut c_void) {
    if env.is_null() || drain.is_null() {
        return;
    }
    let mut receiver = ptr::null_mut();
    // SAFETY: called by the runtime on the environment's thread with a live handle of the function.
    // `drain` does not throw; if it cannot run, the environment is ending and its cleanup passes everything on.
    unsafe {
        if sys::napi_get_undefined(env, &mut receiver) == sys::Status::napi_ok {
            sys::napi_call_function(env, receiver, drain, 0, ptr::null(), ptr::null_mut());
        }
    }
}

/// A threadsafe function that runs `drain`, and does not keep the loop alive yet. `state` is what async_hooks and the
/// tools behind it get as its resource: it says by `hasRef()` whether the loop is kept alive.
fn create_wake(
    env: sys::napi_env,
    state: sys::napi_value,
    drain: sys::napi_value,
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

/// A strong reference.
pub fn reference(env: sys::napi_env, value: sys::napi_value) -> Result<sys::napi_ref> {
    let mut reference = ptr::null_mut();
    // SAFETY: `value` is a live object or function of `env`, in the call in progress.
    check(unsafe { sys::napi_create_reference(env, value, 1, &mut reference) })?;
    Ok(reference)
}

fn dereference(env: sys::napi_env, reference: sys::napi_ref) -> Result<sys::napi_value> {
    let mut value = ptr::null_mut();
    // SAFETY: `reference` was made in `env` with a count of 1 and is never deleted.
    check(unsafe { sys::napi_get_reference_value(env, reference, &mut value) })?;
    Ok(value)
}

/// From a status to a result.
pub fn check(status: sys::napi_status) -> Result<()> {
    check_status!(status)
}
