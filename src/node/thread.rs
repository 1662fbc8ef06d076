//! The binding's data of each JS thread: its agent and waits, and the functions that it calls in JS.
//!
//! A JS thread is an environment of Node.js. However often the package is loaded there (test runners clear the require cache),
//! it is one agent with one state object in JS, which lives until the environment is torn down. Each load has a `napi_env` of
//! its own. A thread of the system may run several environments, one at a time: each is an agent.

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::Arc;

use napi::bindgen_prelude::*;
use napi::{Env, sys};
use rustc_hash::FxHashMap;

use super::anchors::Anchors;
use super::ask::Ask;
use super::blocking_call::BlockingCall;
use super::desks::{self, Leases};
use super::handles::{call, check, dereference, reference};
use super::process::{engine, names};
use super::record::{Field, Found, Record};
use super::views::JsWord;
use super::wake::{self, WakeLoop, create_wake, event_loop_address};
use crate::agents::{Agent, AgentId, ThreadId};
use crate::clients::condition::ConditionLock;
use crate::clients::lent::LentHolds;
use crate::clients::{ClientLoop, Clients, Told};
use crate::engine::{EventLoop, Limit, Primitive, Reply, ReplyError, Request, Settled};
use crate::memory::Place;

/// One JS thread.
pub struct JsThread {
    /// Its waits.
    pub event_loop: ClientLoop<'static>,
    /// The anchors, which keep the memory of their words.
    pub(super) anchors: Anchors,
    /// The address of the wait that was settled last: what it got may have to be given back.
    pub(super) settled: Option<usize>,
    /// The state that the last set of locks found; see `lock_all.rs`.
    pub found: Found,
    /// Which of its guards have lent their holds to waits.
    pub holds: LentHolds,
    /// The news of its last request for what is kept outside of the process.
    pub told: Option<Told>,
    /// The leases that it keeps, as a lock worker.
    pub leases: Leases,
    /// The agent whose thread ended inside, which the last acquisition has to report.
    pub abandoned_by: Option<AgentId>,
    /// The kinds of the locks in the cycle of the last deadlock.
    pub cycle_kinds: Vec<&'static str>,
    /// The record of the last call.
    pub record: Record,
    /// The environment of the first load, which owns the references.
    pub(super) env: sys::napi_env,
    state: sys::napi_ref,
    drain: sys::napi_ref,
    pause: sys::napi_ref,
    look: sys::napi_ref,
    wake: sys::napi_threadsafe_function,
    thread_id: ThreadId,
    /// The agent whose `wake` makes this loop turn: its own, or that of the environment with which it shares an event loop.
    woken_by: AgentId,
}

/// The JS threads of one thread of the system.
#[derive(Default)]
struct Threads {
    all: Vec<JsThread>,
    /// The agent of each load.
    loads: FxHashMap<sys::napi_env, AgentId>,
}

impl Threads {
    fn of(&mut self, env: sys::napi_env) -> Option<&mut JsThread> {
        let id = *self.loads.get(&env)?;
        self.all.iter_mut().find(|thread| thread.id() == id)
    }

    /// The agent that `environment` was marked with.
    fn find(&self, env: sys::napi_env, environment: sys::napi_value) -> Result<Option<AgentId>> {
        for thread in &self.all {
            let mut is_marked = false;
            // SAFETY: `env` and `environment` are those of the call in progress; the tag and the out-parameter live.
            check(unsafe { sys::napi_check_object_type_tag(env, environment, &mark(thread.id()), &mut is_marked) })?;
            if is_marked {
                return Ok(Some(thread.id()));
            }
        }
        Ok(None)
    }
}

impl Threads {
    /// Sees to it that each loop is woken by the environment that it belongs to. In the callbacks of an event loop that several
    /// environments share, only that one is entered, and Node.js aborts the process if a callback is for another. It was made
    /// first, so that its `threadId` is the lowest.
    fn choose_wakers(&mut self) {
        let loops: Vec<usize> =
            self.all.iter().map(|thread| if self.all.len() > 1 { event_loop_address(thread.env) } else { 0 }).collect();
        for index in 0..self.all.len() {
            let owner = (0..self.all.len())
                .filter(|other| *other == index || loops[*other] != 0 && loops[*other] == loops[index])
                .min_by_key(|other| self.all[*other].thread_id)
                .unwrap_or(index);
            let (woken_by, wake) = (self.all[owner].id(), self.all[owner].wake);
            let thread = &mut self.all[index];
            thread.woken_by = woken_by;
            let drained = if owner == index { 0 } else { thread.id() };
            thread.event_loop.agent().set_waker(Some(Box::new(WakeLoop(wake, drained))));
        }
    }
}

thread_local! {
    static THREADS: RefCell<Threads> = RefCell::default();
}

/// Returns the mark of an agent's environment: invisible to JS, and read without touching anything of another environment.
fn mark(id: AgentId) -> sys::napi_type_tag {
    sys::napi_type_tag { lower: u64::from(id), upper: 0x7361_626c_6f63_6b21 }
}

impl JsThread {
    /// Runs `act` on the state of the JS thread that `env` belongs to.
    pub fn with<T>(env: Env, act: impl FnOnce(&mut Self) -> T) -> Result<T> {
        THREADS.with_borrow_mut(|threads| match threads.of(env.raw()) {
            Some(thread) => Ok(act(thread)),
            None => Err(Error::new(Status::Closing, "this thread's environment has been torn down")),
        })
    }

    /// Takes in the environment of which `environment` is an object, the same for all loads. `state` gets the agent's id as
    /// its property `id` and is returned; if the environment was taken in before, the object of that time is returned instead.
    #[expect(clippy::too_many_arguments, reason = "what there is one of for each thread")]
    pub fn attach<'env>(
        env: Env,
        thread_id: ThreadId,
        environment: Unknown<'env>,
        mut state: Object<'env>,
        record: Unknown<'env>,
        drain: Unknown<'env>,
        pause: Unknown<'env>,
        look: Unknown<'env>,
    ) -> Result<Unknown<'env>> {
        let raw = env.raw();
        // SAFETY: those of the call in progress. `state` keeps the record, and the environment keeps `state`; no JS but the
        // package's has it, and nothing there detaches its buffer.
        let record = unsafe { Record::new(raw, record.raw()) }?;
        let known = THREADS.with_borrow(|threads| threads.find(raw, environment.raw()))?;
        if let Some(id) = known {
            THREADS.with_borrow_mut(|threads| threads.loads.insert(raw, id));
        } else {
            let neighbour =
                THREADS.with_borrow(|threads| threads.all.first().map(|first| first.event_loop.agent().clone()));
            let wake = create_wake(raw, state.raw(), drain.raw(), call_drain)?;
            let (state_reference, pause) = (reference(raw, state.raw())?, reference(raw, pause.raw())?);
            let (drain, look) = (reference(raw, drain.raw())?, reference(raw, look.raw())?);
            let agents = &engine().agents;
            let agent = match neighbour {
                Some(neighbour) => agents.add_on(thread_id, neighbour.os_thread),
                None => agents.add(thread_id),
            };
            let agent = agent.ok_or_else(|| Error::from_reason("this process has used up its thread ids"))?;
            let id = agent.id;
            // Registered after the threadsafe function, so that it runs before that function's own hook: last in, first out.
            // SAFETY: `env` is the environment of the call in progress; the hook's argument is a number, and it is added once.
            check(unsafe { sys::napi_add_env_cleanup_hook(raw, Some(end), id as usize as *mut c_void) })?;
            // SAFETY: `env` and `environment` are those of the call in progress; the tag lives.
            check(unsafe { sys::napi_type_tag_object(raw, environment.raw(), &mark(id)) })?;
            let thread = Self {
                event_loop: EventLoop::with_clients(engine(), agent, Clients::new(names())),
                anchors: Anchors::default(),
                settled: None,
                found: Found::default(),
                holds: LentHolds::default(),
                told: None,
                leases: Leases::default(),
                abandoned_by: None,
                cycle_kinds: Vec::new(),
                record,
                env: raw,
                state: state_reference,
                drain,
                pause,
                look,
                wake,
                thread_id,
                woken_by: id,
            };
            THREADS.with_borrow_mut(|threads| {
                threads.all.push(thread);
                threads.loads.insert(raw, id);
                threads.choose_wakers();
            });
            state.set("id", id)?;
        }
        let object = Self::with(env, |thread| dereference(thread.env, thread.state))??;
        // SAFETY: the value was made in this call's handle scope.
        Ok(unsafe { Unknown::from_raw_unchecked(raw, object) })
    }

    fn id(&self) -> AgentId {
        self.event_loop.agent().id
    }

    /// The number of JS for this thread.
    pub fn number(&self) -> ThreadId {
        self.thread_id
    }

    /// Whether this thread's loop stays alive for what is pending.
    pub fn keep_alive(&self, env: Env, on: bool) {
        wake::keep_alive(env, self.wake, on);
    }

    /// Makes the loop turn, for what its code cannot arrange itself.
    pub fn wake(&self) {
        self.event_loop.agent().wake();
    }

    /// Asks for something, and queues for it if it cannot be had; a pending wait keeps the memory of `view`.
    pub fn wait_async(
        &mut self,
        primitive: &'static dyn Primitive,
        place: Place,
        view: sys::napi_value,
        request: Request,
        limit: Limit,
    ) -> Result<std::result::Result<Reply, ReplyError>> {
        self.anchors.hold(self.env, place.address(), view)?;
        let reply = self.event_loop.wait(primitive, place, request, limit);
        if !matches!(reply, Ok(Reply::Pending { .. })) {
            self.anchors.release(self.env, place.address())?;
        }
        Ok(reply)
    }

    /// Frees the word and waits for a notification; the pending wait keeps the memory of `view`.
    pub fn wait_released(
        &mut self,
        location: Place,
        view: sys::napi_value,
        word: JsWord,
        ask: Ask,
        limit: Limit,
    ) -> Result<std::result::Result<Reply, ReplyError>> {
        let address = location.address();
        self.anchors.hold(self.env, address, view)?;
        let lock = ConditionLock { primitive: ask.primitive(), place: word.0, hold: ask.hold(1, 0) };
        let request = lock.wait_async(&mut self.event_loop, location, limit);
        if request.is_err() {
            self.anchors.release(self.env, address)?;
        }
        Ok(request)
    }

    /// Takes a pending wait back.
    pub fn cancel(&mut self, token: u32) -> Result<bool> {
        let set = self.set_places(Some(token));
        match self.event_loop.cancel(token) {
            Some(place) if place.is_name() => Ok(true),
            Some(place) if set.is_empty() => self.release_anchors(vec![place]).map(|()| true),
            Some(_) => self.release_anchors(set).map(|()| true),
            None => Ok(false),
        }
    }

    /// Returns the places of the locks of the pending set, or of the one that was settled last; none if there is none.
    pub(super) fn set_places(&self, pending: Option<u32>) -> Vec<Place> {
        self.event_loop.look_at_set(pending, |set| set.places().collect()).unwrap_or_default()
    }

    pub(super) fn release_anchors(&mut self, places: Vec<Place>) -> Result<()> {
        places.into_iter().try_for_each(|place| self.anchors.release(self.env, place.address()))
    }

    /// Gives back what the wait that was settled last was granted.
    pub fn refuse(&mut self) -> Result<()> {
        let set = self.set_places(None);
        self.event_loop.refuse();
        self.release_anchors(set)
    }

    /// The next wait that is over; the one before has been settled.
    pub fn next(&mut self) -> Result<Option<Settled>> {
        let set = self.set_places(None);
        let next = self.event_loop.next_settled();
        if let Some(address) = self.settled.take() {
            self.anchors.release(self.env, address)?;
        }
        self.release_anchors(set)?;
        if let Some(Settled { place, .. }) = &next {
            // The waits of a set are known by the set.
            let is_one = !place.is_name() && self.event_loop.look_at_set(None, |_| ()).is_none();
            self.settled = is_one.then(|| place.address());
        }
        Ok(next)
    }

    /// A call that blocks has returned.
    pub fn note_wait(&mut self, call: &BlockingCall) {
        let wait = call.wait.as_ref();
        self.record.set(Field::WaitedMs, wait.map_or(-1.0, |wait| wait.since.elapsed().as_secs_f64() * 1e3));
        self.record.set(Field::Found, wait.map_or(-1.0, |wait| f64::from(wait.found)));
        if let Some(wait) = wait {
            self.note_owner(wait.owner);
        }
    }

    /// The thread of an agent, for a record; -1 for nobody.
    pub fn thread_number(owner: AgentId) -> f64 {
        engine().agents.thread(owner).map_or(-1.0, f64::from)
    }

    /// A wait is over: notes whether there are ended holds to be reported.
    pub fn note_ended(&mut self, place: Place) {
        self.record.set(Field::HasEnded, f64::from(u8::from(engine().has_ended(place))));
    }

    pub(super) fn note_owner(&mut self, owner: AgentId) {
        self.record.set(Field::OwnerThread, Self::thread_number(owner));
    }

    /// For a call that blocks, from `env`.
    pub fn blocking_call(&self, env: Env) -> BlockingCall {
        let agent = Arc::clone(self.event_loop.agent());
        BlockingCall {
            env: env.raw(),
            owner: self.env,
            pause: self.pause,
            look: self.look,
            agent,
            wait: None,
            deadlock: Vec::new(),
        }
    }

    /// Has `wait` block this thread; returns its result, and the call. Nothing of the thread's state is borrowed meanwhile: a debugger may
    /// run this package during the pause.
    pub fn block<T>(env: Env, wait: impl FnOnce(&Arc<Agent>, &mut BlockingCall) -> T) -> Result<(T, BlockingCall)> {
        let mut call = Self::with(env, |thread| thread.blocking_call(env))?;
        let agent = Arc::clone(&call.agent);
        Ok((wait(&agent, &mut call), call))
    }
}

/// The environment of the agent `id` is torn down: the agent ends.
unsafe extern "C" fn end(id: *mut c_void) {
    let id = id as usize as AgentId;
    let ended = THREADS.with_borrow_mut(|threads| {
        threads.loads.retain(|_, agent| *agent != id);
        let index = threads.all.iter().position(|thread| thread.id() == id)?;
        let ended = threads.all.swap_remove(index);
        // Before its function goes, others must no longer call it.
        if threads.all.iter().any(|thread| thread.woken_by == id) {
            threads.choose_wakers();
        }
        Some(ended)
    });
    if let Some(thread) = ended {
        #[cfg(feature = "audit")]
        thread.note_wrong();
        thread.event_loop.end();
        desks::agent_ended(id);
    }
}

/// Runs `drain` on its thread, or that of the agent `other`; `env` is null when the environment is already gone.
unsafe extern "C" fn call_drain(env: sys::napi_env, drain: sys::napi_value, _: *mut c_void, other: *mut c_void) {
    if env.is_null() || drain.is_null() {
        return;
    }
    let (mut env, mut drain) = (env, drain);
    if !other.is_null() {
        let drain_of = |thread: &JsThread| Some((thread.env, dereference(thread.env, thread.drain).ok()?));
        let find = |threads: &Threads| {
            threads.all.iter().find(|thread| thread.id() == other as usize as AgentId).and_then(drain_of)
        };
        match THREADS.with_borrow(find) {
            Some(found) => (env, drain) = found,
            None => return,
        }
    }
    // Called by the runtime on the environment's thread, with a live handle of the function. `drain` does not throw; if it cannot run,
    // the environment is ending and its cleanup passes everything on.
    call(env, drain);
}
