//! The binding's part of the lock doctor: what `lib/doctor` tells the core's, and asks it for.

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::LazyLock;
use std::time::Duration;

use napi::bindgen_prelude::*;
use napi::{Env, sys};
use napi_derive::napi;

use super::desks::servers;
use super::directories::of_space;
use super::files::FileHolder;
use super::handles::{check, reference};
use super::process::{engine, names};
use super::views::TypedArray;
use crate::agents::ThreadId;
use crate::doctor::{Doctor, Edge, HoldTable, Lock, Options, Outside, SLOT_LENGTH, SLOTS, TrackedWait, watch};
use crate::engine::Primitive;
use crate::primitives::mutex::MUTEX;
use crate::primitives::once::ONCE;
use crate::primitives::rwlock::RWLOCK;
use crate::primitives::semaphore::{FAIR_SEMAPHORE, SEMAPHORE};
use crate::sync;

/// The doctor of the process.
static DOCTOR: LazyLock<Doctor> = LazyLock::new(Doctor::default);

/// The primitives that a thread holds until it gives them back, so that others can be stuck.
static LOCKS: [&dyn Primitive; 5] = [&MUTEX, &RWLOCK, &ONCE, &SEMAPHORE, &FAIR_SEMAPHORE];

/// The number of holds of a thread that are tracked.
#[napi]
pub const DOCTOR_SLOTS: u32 = SLOTS as u32;
/// The number of numbers for each.
#[napi]
pub const DOCTOR_SLOT_LENGTH: u32 = SLOT_LENGTH as u32;

thread_local! {
    /// The references that keep the slots of this thread's environments.
    static TABLES: RefCell<Vec<(ThreadId, sys::napi_env, sys::napi_ref)>> = const { RefCell::new(Vec::new()) };
}

fn duration(ms: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(ms / 1e3).ok()
}

/// The threads with locks. The lock workers are the package's own, which no program can start the doctor in.
fn living() -> Vec<ThreadId> {
    engine().agents.living_but(&servers())
}

/// The options with which a thread starts the doctor.
#[napi(object)]
pub struct DoctorOptions {
    /// A hold of so many milliseconds is long.
    pub long_hold_ms: f64,
    /// Waiters are stuck after so many.
    pub stuck_ms: f64,
    /// A wait that has lasted so long in a circle is in a deadlock, probably.
    pub likely_ms: f64,
    /// Whether slices for a trace are kept.
    pub trace: bool,
    /// Whether the thread tells what it holds.
    pub is_tracking: bool,
    /// Whether SIGUSR2 asks for the report.
    pub may_ask: bool,
    /// The process that forwards its signals to this one; 0: none.
    pub forwarder: u32,
    /// Is left out of printed paths.
    pub folder: String,
}

/// The doctor starts in this thread, which writes what it holds into `slots`. `now` is what the thread's clock shows. Returns whether
/// it watches; otherwise the system has refused it a thread.
#[napi(catch_unwind, ts_args_type = "threadId: number, slots: Float64Array, now: number, options: DoctorOptions")]
pub fn doctor_start(env: Env, thread_id: u32, slots: Unknown, now: f64, options: DoctorOptions) -> Result<bool> {
    let raw = env.raw();
    // SAFETY: those of the call in progress.
    let array = unsafe { TypedArray::read(raw, slots.raw()) };
    let array = array
        .filter(|array| array.kind == sys::TypedarrayType::float64_array && array.length > SLOTS * SLOT_LENGTH)
        .ok_or_else(|| Error::new(Status::InvalidArg, "expected a Float64Array with room for all slots"))?;
    let kept = reference(raw, slots.raw())?;
    TABLES.with_borrow_mut(|tables| tables.push((thread_id, raw, kept)));
    // SAFETY: `env` is the environment of the call in progress; the hook's argument is a number.
    check(unsafe { sys::napi_add_env_cleanup_hook(raw, Some(end), thread_id as usize as *mut c_void) })?;
    // SAFETY: shared memory, which does not move, aligned to 8 as a Float64Array is; the reference keeps it until `doctor_stop`
    // or `end` has taken the table away.
    let table = unsafe { HoldTable::new(array.data, now, options.is_tracking) };
    let options_of = Options {
        long_hold: duration(options.long_hold_ms).unwrap_or(Duration::MAX),
        stuck: duration(options.stuck_ms),
        likely: duration(options.likely_ms),
        traces: options.trace,
        may_ask: options.may_ask,
        forwarder: options.forwarder,
    };
    let is_first = DOCTOR.with(|state| state.attach(thread_id, table, options_of, options.folder));
    Ok(!is_first || watch(&DOCTOR, names(), &LOCKS, holder_of).is_ok())
}

/// The environment is torn down.
unsafe extern "C" fn end(thread_id: *mut c_void) {
    let thread_id = thread_id as usize as ThreadId;
    // The references go with their environment.
    let _ = TABLES.try_with(|tables| tables.borrow_mut().retain(|(thread, ..)| *thread != thread_id));
    DOCTOR.with(|state| state.detach(thread_id, true));
}

/// The doctor stops in this thread.
#[napi(catch_unwind)]
pub fn doctor_stop(env: Env, thread_id: u32) -> Result<()> {
    DOCTOR.with(|state| state.detach(thread_id, false));
    let kept = TABLES.with_borrow_mut(|tables| {
        let at = tables.iter().position(|(thread, ..)| *thread == thread_id)?;
        Some(tables.swap_remove(at))
    });
    let Some((_, owner, kept)) = kept else { return Ok(()) };
    // SAFETY: added by `doctor_start` with the same argument, in the same environment, whose thread this is; the reference was made
    // there and is deleted once.
    unsafe {
        check(sys::napi_remove_env_cleanup_hook(owner, Some(end), thread_id as usize as *mut c_void))?;
        check(sys::napi_delete_reference(env.raw(), kept))
    }
}

/// A listener of a signal may have come or gone, and the system's handler with it.
#[napi(catch_unwind)]
pub fn doctor_arm() {
    DOCTOR.with(|state| state.arm());
}

/// This thread is about to end: what it holds is not released.
#[napi(catch_unwind)]
pub fn doctor_ending(thread_id: u32) {
    DOCTOR.with(|state| state.note_never_released(thread_id, false));
}

/// The package is part of the bundle in this file.
#[napi(catch_unwind)]
pub fn doctor_bundle(file: String) {
    DOCTOR.with(|state| state.add_bundle(file));
}

/// The number of a call site.
#[napi(catch_unwind)]
pub fn doctor_site(stack: Vec<String>) -> u32 {
    DOCTOR.with(|state| state.names.site(stack))
}

/// The number of a lock. A `byte_offset` below 0 is none.
#[napi(catch_unwind)]
pub fn doctor_lock(address: f64, name: Option<String>, kind: String, byte_offset: f64) -> u32 {
    let byte_offset = (byte_offset >= 0.0).then_some(byte_offset as u64);
    DOCTOR.with(|state| state.names.lock(Lock { name, kind, byte_offset, address: address as usize }))
}

/// The class of a lock.
#[napi(catch_unwind)]
pub fn doctor_class(lock: u32) -> u32 {
    DOCTOR.with(|state| state.names.node(lock))
}

/// One lock was locked while another was held, and `gates` too.
#[napi(catch_unwind)]
pub fn doctor_edge(thread_id: u32, from: u32, to: u32, held: u32, locked: u32, gates: Vec<u32>) {
    DOCTOR.with(|state| {
        let (one, other) = (state.names.node(from), state.names.node(to));
        state.order.add(one, other, Edge { from, to, held, locked, thread: thread_id, gates });
    });
}

/// A wait, as JS tells of it.
#[napi(object)]
pub struct DoctorWait {
    /// Which thread waits.
    pub thread_id: u32,
    /// For what.
    pub lock: u32,
    /// The address of that.
    pub address: f64,
    /// From where on.
    pub site: u32,
    /// Whether it has neither timeout nor signal.
    pub is_endless: bool,
    /// Whether the thread is blocked.
    pub is_blocking: bool,
    /// Whether it waits to hold alone.
    pub is_exclusive: bool,
    /// Whether the time is delay.
    pub is_counted: bool,
}

impl DoctorWait {
    fn begin(self, since: std::time::Instant) -> TrackedWait {
        TrackedWait {
            thread: self.thread_id,
            lock: self.lock,
            address: self.address as usize,
            site: self.site,
            since,
            is_endless: self.is_endless,
            is_blocking: self.is_blocking,
            is_exclusive: self.is_exclusive,
            is_counted: self.is_counted,
            awaiting: Vec::new(),
            is_asked: false,
            outside: None,
        }
    }
}

fn serials(serials: Vec<f64>) -> Vec<u64> {
    serials.into_iter().map(|serial| serial as u64).collect()
}

/// A wait begins. Returns its number.
#[napi(catch_unwind)]
pub fn doctor_wait(wait: DoctorWait) -> f64 {
    DOCTOR.with(|state| state.begin_wait(wait.begin(sync::now()))) as f64
}

/// A wait that was not reported while it lasted is over, after so long.
#[napi(catch_unwind)]
pub fn doctor_waited(wait: DoctorWait, waited_ms: f64, is_granted: bool) {
    let waited = duration(waited_ms).unwrap_or_default();
    let now = sync::now();
    let wait = wait.begin(now.checked_sub(waited).unwrap_or(now));
    DOCTOR.with(|state| state.count_wait(&wait, waited, is_granted));
}

/// Whether there are waiters at an address.
#[napi(catch_unwind)]
pub fn doctor_is_waited_for(address: f64) -> bool {
    let address = address as usize;
    DOCTOR.with(|state| state.waits.values().any(|wait| wait.address == address))
}

/// The holder of a name of the machine, in another process.
fn holder_of(space: u32, name: &str) -> Option<Outside> {
    let units: Vec<u16> = name.encode_utf16().collect();
    let holder = of_space(space)?.holder(&units).filter(|holder| !holder.is_here())?;
    Some(outside(None, Some(holder.process), Some(FileHolder::from(&(units, holder)).held_ms)))
}

fn outside(client: Option<String>, pid: Option<u32>, held_ms: Option<f64>) -> Outside {
    let since = held_ms.and_then(duration).and_then(|held| sync::now().checked_sub(held));
    Outside { client, pid, since }
}

/// The holder of what is waited for, outside of this process. Below 0 or empty: not known.
#[napi(catch_unwind)]
pub fn doctor_outside(wait: f64, client: String, pid: f64, held_ms: f64) {
    let pid = (pid >= 0.0).then_some(pid as u32);
    let holder = outside((!client.is_empty()).then_some(client), pid, (held_ms >= 0.0).then_some(held_ms));
    DOCTOR.with(|state| {
        if let Some(wait) = state.waits.get_mut(&(wait as u64)) {
            wait.outside = Some(holder);
        }
    });
}

/// Names that a thread does not keep in mind any more.
#[napi(catch_unwind)]
pub fn doctor_forget(locks: Vec<u32>) {
    DOCTOR.with(|state| state.forget(&locks));
}

/// A wait ends by itself.
#[napi(catch_unwind)]
pub fn doctor_timed(wait: f64) {
    DOCTOR.with(|state| {
        if let Some(wait) = state.waits.get_mut(&(wait as u64)) {
            wait.is_endless = false;
        }
    });
}

/// The functions of these holds await a wait; or it blocks its thread, which keeps all holds of that. `is_old`: it has lasted for as
/// long as the deadlocks that are likely. Returns the deadlock that it is in as JSON.
#[napi(catch_unwind)]
pub fn doctor_awaiting(wait: f64, awaiting: Vec<f64>, is_old: bool) -> Option<String> {
    DOCTOR.with(|state| {
        let number = wait as u64;
        let (index, _) = state.note_awaiting(number, serials(awaiting), is_old)?;
        let was_reported = std::mem::replace(&mut state.deadlocks[index].is_reported, true);
        let deadlock = &state.deadlocks[index];
        let is_newest = deadlock.newest_awaited(&state.waits) == Some(number);
        Some(state.deadlock_json(deadlock, was_reported, is_newest))
    })
}

/// A wait is over. It is below 0 if it did not come to waiting.
#[napi(catch_unwind)]
pub fn doctor_wait_over(wait: f64, waited_ms: f64, is_granted: bool) {
    DOCTOR.with(|state| state.end_wait(wait as u64, duration(waited_ms), is_granted));
}

/// A lock with waiters is about to be freed. It is held since then, in the milliseconds of the thread's clock; below 0 if that is not known.
#[napi(catch_unwind)]
pub fn doctor_unlock(thread_id: u32, lock: u32, address: f64, site: u32, since: f64) {
    DOCTOR.with(|state| state.note_unlock(thread_id, address as usize, lock, site, since));
}

/// A hold has ended that was long, it seems.
#[napi(catch_unwind)]
pub fn doctor_long_hold(thread_id: u32, serial: f64, lock: u32, site: u32) {
    DOCTOR.with(|state| state.end_long_hold(serial as u64, lock, thread_id, site));
}

/// A guard was collected while it held.
#[napi(catch_unwind)]
pub fn doctor_leak(thread_id: u32, lock: u32, site: u32) {
    DOCTOR.with(|state| state.note_leak(lock, thread_id, site));
}

/// The report as JSON.
#[napi(catch_unwind)]
pub fn doctor_report() -> String {
    DOCTOR.with(|state| state.report(&living()).json())
}

/// The report for people.
#[napi(catch_unwind)]
pub fn doctor_text() -> String {
    DOCTOR.with(|state| state.asked_text(&living()))
}

/// The report for people at the end, if there is more in it than when it was printed last.
#[napi(catch_unwind)]
pub fn doctor_last_text() -> Option<String> {
    DOCTOR.with(|state| state.last_text(&living()))
}

/// The slices of the trace as JSON.
#[napi(catch_unwind)]
pub fn doctor_trace() -> String {
    DOCTOR.with(|state| state.trace_json())
}
