//! A call from JS that blocks: what the core calls meanwhile, and what the call has found.

use std::ptr;
use std::sync::Arc;
use std::time::Instant;

use napi::sys;

use super::handles::{call, dereference};
use super::process::engine;
use crate::agents::{Agent, AgentId};
use crate::engine::{Caller, Hop};

/// A call from JS that blocks.
pub struct BlockingCall {
    pub(super) env: sys::napi_env,
    pub(super) owner: sys::napi_env,
    pub(super) pause: sys::napi_ref,
    pub(super) look: sys::napi_ref,
    pub(super) agent: Arc<Agent>,
    /// The deadlock that ended it in a pause.
    pub(super) deadlock: Vec<Hop>,
    /// The queue as it found it, if it came to waiting in it.
    pub(super) wait: Option<Queued>,
}

/// The state that a wait found when it was queued.
pub struct Queued {
    pub(super) since: Instant,
    /// The agent that held it alone.
    pub(super) owner: AgentId,
    /// The first number of [`crate::engine::Primitive::found`].
    pub(super) found: u32,
}

impl BlockingCall {
    /// Calls a JS function, which lets the debugger in and shows whether the thread is being terminated.
    /// False if no JS can run here any more.
    fn run_js(&self, function: sys::napi_ref) -> bool {
        let env = self.env;
        let mut scope = ptr::null_mut();
        // SAFETY: this is the thread of `env` and of `owner`, inside a call from JS; the reference lives as long as the thread.
        // Once a status is not ok, nothing that may run JS is called.
        unsafe {
            if sys::napi_open_handle_scope(env, &mut scope) != sys::Status::napi_ok {
                return false;
            }
            let is_alive = dereference(self.owner, function).is_ok_and(|function| call(env, function).is_some());
            sys::napi_close_handle_scope(env, scope);
            is_alive
        }
    }

    /// Whether a deadlock has ended the call.
    pub fn is_deadlocked(&self) -> bool {
        !self.deadlock.is_empty()
    }

    /// That deadlock.
    pub fn deadlock(&self) -> &[Hop] {
        &self.deadlock
    }
}

impl Caller for BlockingCall {
    fn pause(&mut self) -> bool {
        let is_alive = self.run_js(self.pause);
        if is_alive && let Some(cycle) = engine().find_cycle_in_pause(&self.agent) {
            // A subscriber of `sablock:long-hold`, or somebody with a debugger, has locked what can be freed only after this.
            self.deadlock = cycle;
            return false;
        }
        is_alive
    }

    fn goes_on(&mut self) -> bool {
        self.run_js(self.look)
    }

    fn queued(&mut self, owner: AgentId, found: u32, since: Instant) {
        self.wait = Some(Queued { since, owner, found });
    }
}
