//! The one thread that keeps times for waits in the kernel, while there are any: it lets those who have waited long for their
//! turn wait for the lock directly, and tries for those for whom no thread could be started.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::file::{Failure, Mode};
use super::name::Part;
use super::names::Name;
use super::{system, waiter};

/// Whoever has waited so long for its turn waits for the lock directly. What goes on meanwhile goes on in order; so this is
/// what a process that is stopped while it is next costs the others.
const PATIENCE: Duration = Duration::from_millis(100);
const FIRST_TRY: Duration = Duration::from_millis(1);
const SELDOMEST_TRY: Duration = Duration::from_millis(50);
/// The thread ends when it has had nothing to do for so long.
const REST: Duration = Duration::from_secs(2);

#[derive(Default)]
struct Keeper {
    tasks: BTreeMap<(Instant, u64), Task>,
    serial: u64,
    is_running: bool,
}

struct Task {
    name: Arc<Name>,
    mode: Mode,
    what: What,
}

enum What {
    /// Let this wait go on directly.
    Watch { id: u64 },
    /// Try for the line, and again after this time.
    Poll { next: Duration },
    /// Try for the lock without a turn.
    PollDirectly,
}

static KEEPER: Mutex<Keeper> = Mutex::new(Keeper { tasks: BTreeMap::new(), serial: 0, is_running: false });
static EARLIER: Condvar = Condvar::new();

/// When `id` has waited long, it waits for the lock directly.
pub fn watch(name: &Arc<Name>, mode: Mode, id: u64) {
    add(PATIENCE, Task { name: Arc::clone(name), mode, what: What::Watch { id } });
}

/// Tries for a line that has no thread.
pub fn poll(name: &Arc<Name>, mode: Mode) {
    add(FIRST_TRY, Task { name: Arc::clone(name), mode, what: What::Poll { next: FIRST_TRY } });
}

fn keeper() -> MutexGuard<'static, Keeper> {
    // Nothing panics while it is locked.
    KEEPER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add(after: Duration, task: Task) {
    let mut keeper = keeper();
    let at = Instant::now() + after;
    let is_earliest = keeper.tasks.first_key_value().is_none_or(|((first, _), _)| at < *first);
    let serial = keeper.serial;
    keeper.serial += 1;
    keeper.tasks.insert((at, serial), task);
    if keeper.is_running {
        if is_earliest {
            EARLIER.notify_one();
        }
        return;
    }
    let builder = thread::Builder::new().name("sablock-keeper".into()).stack_size(128 << 10);
    match system::without_signals(|| builder.spawn(run)) {
        Ok(_) => keeper.is_running = true,
        Err(error) => {
            let task = keeper.tasks.remove(&(at, serial));
            drop(keeper);
            // Without it a wait that has a thread goes on all the same.
            if let Some(Task { name, mode, what: What::Poll { .. } }) = task {
                name.fail(mode, Failure::NoThread(error));
                while name.goes_on(mode) {
                    name.fail(mode, Failure::NoThread(std::io::ErrorKind::OutOfMemory.into()));
                }
            }
        }
    }
}

fn run() {
    let mut keeper = keeper();
    loop {
        let now = Instant::now();
        let wait = match keeper.tasks.first_entry() {
            Some(first) if first.key().0 <= now => {
                let task = first.remove();
                drop(keeper);
                carry_out(task);
                keeper = self::keeper();
                continue;
            }
            Some(first) => first.key().0 - now,
            None => REST,
        };
        let (guard, timeout) = EARLIER.wait_timeout(keeper, wait).unwrap_or_else(PoisonError::into_inner);
        keeper = guard;
        if timeout.timed_out() && keeper.tasks.is_empty() {
            keeper.is_running = false;
            return;
        }
    }
}

fn carry_out(Task { name, mode, what }: Task) {
    match what {
        What::Watch { id } => {
            if name.begin_direct(mode, id) && waiter::wait_directly(&name, mode).is_err() {
                try_directly(name, mode);
            }
        }
        What::PollDirectly => try_directly(name, mode),
        What::Poll { next } => {
            let is_served = match try_in_line(&name, mode) {
                Tried::NotWanted => return,
                Tried::Served if !name.goes_on(mode) => return,
                Tried::Served => true,
                Tried::InVain => false,
            };
            let next = if is_served { FIRST_TRY } else { (2 * next).min(SELDOMEST_TRY) };
            add(next, Task { name, mode, what: What::Poll { next } });
        }
    }
}

/// What came of a try for a line.
enum Tried {
    /// The first one who waits got it, or an error.
    Served,
    /// It was not to be had.
    InVain,
    /// Nobody waits any more: the line is no longer looked after.
    NotWanted,
}

/// Tries for the turn, and with it for the lock.
fn try_in_line(name: &Arc<Name>, mode: Mode) -> Tried {
    if name.waited(mode).is_none() {
        // Whoever comes meanwhile is looked after.
        return if name.goes_on(mode) { Tried::InVain } else { Tried::NotWanted };
    }
    if !name.is_next(mode) {
        match name.files.try_lock(Part::Turn, Mode::Exclusive) {
            Ok(Some(turn)) => {
                if !name.take_turn(mode, turn) {
                    return Tried::NotWanted;
                }
            }
            Ok(None) => return Tried::InVain,
            Err(failure) => {
                name.fail(mode, failure);
                return Tried::Served;
            }
        }
    }
    match name.files.try_lock(Part::Lock, mode) {
        Ok(Some(lock)) => name.grant(mode, lock),
        Ok(None) => return Tried::InVain,
        Err(failure) => name.fail(mode, failure),
    }
    Tried::Served
}

fn try_directly(name: Arc<Name>, mode: Mode) {
    let is_wanted = name.waited(mode).is_some();
    if is_wanted && let Ok(Some(lock)) = name.files.try_lock(Part::Lock, Mode::Exclusive) {
        name.grant(mode, lock);
    }
    if name.waited(mode).is_some() {
        add(SELDOMEST_TRY, Task { name, mode, what: What::PollDirectly });
    } else {
        name.end_direct(mode);
    }
}
