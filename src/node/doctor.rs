//! The binding's part of the lock doctor: what `lib/doctor` tells the core's, and asks it for.

use std::cell::RefCell;
use std::ffi::c_void;
use std::io::Write;
use std::sync::LazyLock;
#[cfg(unix)]
use std::sync::Once;
use std::time::Duration;

use napi::bindgen_prelude::*;
use napi::{Env, sys};
use napi_derive::napi;

use super::desks::servers;
use super::directories::of_space;
use super::files::FileHolder;
use super::handles::{call, check, reference};
use super::process::{engine, names};
use super::views::TypedArray;
use crate::agents::ThreadId;
use crate::doctor::{
    Doctor, Edge, HoldTable, Lock, MAIN, Options, Outside, SLOT_LENGTH, SLOTS, TrackedWait, look, permit_holders,
    read_together, text_of, watch,
};
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
    /// Whether the report tells of contention.
    pub contention: bool,
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

/// The doctor starts in this thread, which writes what it holds into `slots`. `now` returns what the thread's clock shows. Returns
/// whether it watches; otherwise the system has refused it a thread.
#[napi(catch_unwind, ts_args_type = "threadId: number, slots: Float64Array, now: () => number, options: DoctorOptions")]
pub fn doctor_start(env: Env, thread_id: u32, slots: Unknown, now: Unknown, options: DoctorOptions) -> Result<bool> {
    let raw = env.raw();
    // SAFETY: those of the call in progress.
    let array = unsafe { TypedArray::read(raw, slots.raw()) };
    let array = array
        .filter(|array| array.kind == sys::TypedarrayType::float64_array && array.length > SLOTS * SLOT_LENGTH)
        .ok_or_else(|| Error::new(Status::InvalidArg, "expected a Float64Array with room for all slots"))?;
    // SAFETY: that of the call in progress.
    let shown = || call(raw, now.raw()).and_then(|ms| unsafe { f64::from_napi_value(raw, ms) }.ok());
    // The thread is being terminated, or has no stack left.
    let Some(then) = read_together(shown) else { return Ok(false) };
    let kept = reference(raw, slots.raw())?;
    TABLES.with_borrow_mut(|tables| tables.push((thread_id, raw, kept)));
    // SAFETY: `env` is the environment of the call in progress; the hook's argument is a number.
    check(unsafe { sys::napi_add_env_cleanup_hook(raw, Some(end), thread_id as usize as *mut c_void) })?;
    // SAFETY: shared memory, which does not move, aligned to 8 as a Float64Array is; the reference keeps it until `doctor_stop`
    // or `end` has taken the table away.
    let table = unsafe { HoldTable::new(array.data, then, options.is_tracking) };
    let options_of = Options {
        long_hold: duration(options.long_hold_ms).unwrap_or(Duration::MAX),
        stuck: duration(options.stuck_ms),
        likely: duration(options.likely_ms),
        counts: options.contention,
        traces: options.trace,
        may_ask: options.may_ask,
        forwarder: options.forwarder,
    };
    if thread_id == MAIN {
        LazyLock::force(&PROCESS);
        at_end(print_left);
    }
    let is_first = DOCTOR.with(|state| state.attach(thread_id, table, options_of, options.folder));
    Ok(!is_first || watch(&DOCTOR, names(), &LOCKS, holder_of).is_ok())
}

/// The process whose end is awaited: a child that native code has forked is called at its end as well.
static PROCESS: LazyLock<u32> = LazyLock::new(std::process::id);

/// No code of the process runs any more. A listener of the program may have kept that of the doctor from being called.
extern "C" fn print_left() {
    if *PROCESS != std::process::id() {
        return;
    }
    let read = || DOCTOR.with(|state| state.text_left(&living()));
    // There is nobody to tell that it could not be read, or written.
    if let Ok(Some(text)) = std::panic::catch_unwind(read) {
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Sees to it that this is called at the end of the process, once, however that comes about.
#[cfg(unix)]
fn at_end(act: extern "C" fn()) {
    static ASKED: Once = Once::new();
    // SAFETY: the function is never unloaded, as the addon is not.
    ASKED.call_once(|| _ = unsafe { libc::atexit(act) });
}

/// Windows has ended all other threads by then, whatever they had locked.
#[cfg(not(unix))]
fn at_end(_act: extern "C" fn()) {}

/// The environment is torn down.
unsafe extern "C" fn end(thread_id: *mut c_void) {
    let thread_id = thread_id as usize as ThreadId;
    // The references go with their environment.
    let _ = TABLES.try_with(|tables| tables.borrow_mut().retain(|(thread, ..)| *thread != thread_id));
    DOCTOR.with(|state| state.detach(thread_id, true));
}

/// The doctor stops in this thread; with it, if that `isExiting`, and what it holds is not released then.
#[napi(catch_unwind)]
pub fn doctor_stop(env: Env, thread_id: u32, is_exiting: bool) -> Result<()> {
    if is_exiting {
        DOCTOR.with(|state| state.note_end(thread_id));
        return Ok(());
    }
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

/// A lock by its numbers.
#[napi(object)]
pub struct DoctorLock {
    /// Its own.
    pub id: u32,
    /// That of its class.
    pub class: u32,
}

/// The numbers of a lock, which the thread keeps in mind.
#[napi(catch_unwind)]
pub fn doctor_lock(
    thread_id: u32,
    kind: String,
    address: f64,
    byte_offset: Option<f64>,
    name: Option<Utf16String>,
) -> DoctorLock {
    let name = name.map(|units| text_of(&units));
    let byte_offset = byte_offset.map(|offset| offset as u64);
    DOCTOR.with(|state| {
        let id = state.names.keep(Lock { name, kind, byte_offset, address: address as usize }, thread_id);
        DoctorLock { id, class: state.names.node(id) }
    })
}

/// One lock was locked while another was held, and `gates` too. The thread keeps the memory of the two.
#[napi(catch_unwind)]
pub fn doctor_edge(thread_id: u32, from: u32, to: u32, held: u32, locked: u32, gates: Vec<u32>) {
    DOCTOR.with(|state| {
        let (one, other) = (state.names.node(from), state.names.node(to));
        for lock in [from, to] {
            state.names.keep_memory(lock, thread_id);
        }
        state.order.add(one, other, Edge { from, to, held, locked, thread: thread_id, gates });
    });
}

/// A wait begins. Returns its number. `isEndless`: it has neither timeout nor signal; `isCounted`: its time is delay.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments, reason = "an object takes longer; not expected of what napi makes of it")]
pub fn doctor_wait(
    thread_id: u32,
    lock: u32,
    address: f64,
    site: u32,
    is_endless: bool,
    is_blocking: bool,
    is_exclusive: bool,
    is_counted: bool,
) -> f64 {
    let wait = TrackedWait {
        thread: thread_id,
        lock,
        address: address as usize,
        site,
        since: sync::now(),
        is_endless,
        is_blocking,
        is_exclusive,
        is_counted,
        awaiting: Vec::new(),
        asked: None,
        outside: None,
    };
    DOCTOR.with(|state| state.begin_wait(wait)) as f64
}

/// The holder of a name of the machine, in another process.
fn holder_of(space: u32, name: &str) -> Option<Outside> {
    let units: Vec<u16> = name.encode_utf16().collect();
    let holder = of_space(space)?.holder(&units).filter(|holder| !holder.is_here())?;
    Some(outside(None, Some(holder.process), Some(FileHolder::from(&holder).held_ms)))
}

fn outside(client: Option<String>, pid: Option<u32>, held_ms: Option<f64>) -> Outside {
    let since = held_ms.and_then(duration).and_then(|held| sync::now().checked_sub(held));
    Outside { client, pid, since }
}

/// A holder outside of this process. Below 0 or empty: not known.
#[napi(object)]
pub struct DoctorHolder {
    /// Its name, if a store has the lock.
    pub client_id: Option<String>,
    /// Its process.
    pub pid: f64,
    /// For how long it has held it, in milliseconds.
    pub held_ms: f64,
}

/// The facts that come to be known of a wait while it lasts, each if it is there.
#[napi(object)]
pub struct DoctorFacts {
    /// A signal may end it.
    pub has_signal: Option<bool>,
    /// The holder of what it is for.
    pub holder: Option<DoctorHolder>,
    /// The holds whose functions await it; none if it blocks its thread, which keeps all holds of that.
    pub awaiting: Option<Vec<f64>>,
}

/// Notes facts of a wait. Returns the deadlock that it is known to be in as JSON, if it is told who awaits it.
#[napi(catch_unwind)]
pub fn doctor_note(wait: f64, facts: DoctorFacts) -> Option<String> {
    // Looked at before: see `watch`.
    let needs_permits = facts.awaiting.is_some() && DOCTOR.with(|state| state.awaits_permits());
    let seen = if needs_permits { look(engine(), &LOCKS) } else { Vec::new() };
    DOCTOR.with(|state| {
        let number = wait as u64;
        let wait = state.waits.get_mut(&number)?;
        wait.is_endless &= !facts.has_signal.unwrap_or_default();
        if let Some(DoctorHolder { client_id, pid, held_ms }) = facts.holder {
            let client = client_id.filter(|client| !client.is_empty());
            let pid = (pid >= 0.0).then_some(pid as u32);
            wait.outside = Some(outside(client, pid, (held_ms >= 0.0).then_some(held_ms)));
        }
        let serials = facts.awaiting?.into_iter().map(|serial| serial as u64).collect();
        state.note_awaiting(number, serials, &permit_holders(&seen))
    })
}

/// Locks that a thread does not keep in mind any more.
#[napi(catch_unwind)]
pub fn doctor_forget(thread_id: u32, locks: Vec<u32>) {
    DOCTOR.with(|state| state.forget(thread_id, &locks));
}

/// A wait is over, which began then, in the milliseconds of its thread's clock. `waited_ms` is below 0 if it did not come to waiting.
#[napi(catch_unwind)]
pub fn doctor_wait_over(wait: f64, since: f64, waited_ms: f64, is_granted: bool) {
    let waited = duration(waited_ms).map(|waited| (since, waited));
    DOCTOR.with(|state| state.end_wait(wait as u64, waited, is_granted));
}

/// A lock is about to be freed that is held since then, in the milliseconds of the thread's clock. Without a site, which takes long to
/// find, returns whether somebody waits for it; with one that is noted.
#[napi(catch_unwind)]
pub fn doctor_unlock(thread_id: u32, lock: u32, address: f64, since: Option<f64>, site: Option<u32>) -> bool {
    let address = address as usize;
    DOCTOR.with(|state| match site {
        None => state.is_waited_for(address),
        Some(site) => {
            state.note_unlock(thread_id, address, lock, site, since);
            true
        }
    })
}

/// A hold is suspect: it has ended and was long, it seems; or its guard was collected while it held.
#[napi(catch_unwind)]
pub fn doctor_suspect(thread_id: u32, serial: f64, lock: u32, site: u32, is_leaked: bool) {
    DOCTOR.with(|state| {
        if is_leaked {
            state.note_leak(lock, thread_id, site);
        } else {
            state.end_long_hold(serial as u64, thread_id);
        }
    });
}

/// The forms in which what the doctor knows is read.
#[napi]
pub enum Reading {
    /// The report as JSON.
    Report,
    /// The report for people.
    Text,
    /// The same at the end, if there is more in it than when it was printed last.
    LastText,
    /// The slices of the trace as JSON.
    Trace,
}

/// Reads what the doctor knows.
#[napi(catch_unwind)]
pub fn doctor_read(reading: Reading) -> Option<String> {
    DOCTOR.with(|state| match reading {
        Reading::Report => Some(state.report(&living()).json()),
        Reading::Text => Some(state.asked_text(&living())),
        Reading::LastText => state.last_text(&living()),
        Reading::Trace => Some(state.trace_json()),
    })
}
