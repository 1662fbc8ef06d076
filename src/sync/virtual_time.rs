//! The clock of a schedule: time passes only when [`pass`] lets it, in one jump to the next alarm, so that where it passes is drawn
//! at random like everything else. What is further away than a horizon never comes: a thread that sleeps so long, and is not
//! woken, is a deadlock, which shuttle reports.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use shuttle::sync::Condvar;

/// A schedule's time ends here.
const HORIZON: Duration = Duration::from_secs(60);
type Then = Box<dyn FnOnce() + Send>;

shuttle::lazy_static! {
    static ref TIME: Time = Time::default();
}

/// The time of one schedule.
#[derive(Default)]
struct Time {
    state: Mutex<State>,
    changes: shuttle::sync::Mutex<u64>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    passed: Duration,
    serial: u64,
    alarms: BTreeMap<(Instant, u64), Then>,
    is_over: bool,
}

fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

impl Time {
    /// Never held where shuttle could run another thread.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn wake_keeper(&self) {
        *self.changes.lock().unwrap() += 1;
        self.changed.notify_one();
    }
}

/// The time that it is.
pub fn now() -> Instant {
    start() + TIME.state().passed
}

/// The time that has passed since then.
pub fn since(then: Instant) -> Duration {
    now().saturating_duration_since(then)
}

/// Whether that time has come.
pub fn has_come(time: Instant) -> bool {
    now() >= time
}

/// The same clock in nanoseconds, and never 0.
pub fn nanoseconds() -> u64 {
    TIME.state().passed.as_nanos() as u64 + 1
}

/// Calls a function when its time has come, unless it is dropped before.
pub struct Alarm(Option<(Instant, u64)>);

impl Alarm {
    /// Calls `then` at `at`, on the thread that lets time pass; never, if that is beyond the horizon.
    pub fn new(at: Instant, then: impl FnOnce() + Send + 'static) -> Self {
        if at > start() + HORIZON {
            return Self(None);
        }
        let mut state = TIME.state();
        state.serial += 1;
        let key = (at, state.serial);
        state.alarms.insert(key, Box::new(then));
        drop(state);
        TIME.wake_keeper();
        Self(Some(key))
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(key) = self.0 {
            let alarm = TIME.state().alarms.remove(&key);
            drop(alarm);
        }
    }
}

/// Lets time pass until [`end`]: before each jump to the next alarm it calls `dawdle`, which lets other threads run for a while.
pub fn pass(mut dawdle: impl FnMut()) {
    let mut seen = 0;
    loop {
        dawdle();
        let mut state = TIME.state();
        if state.is_over {
            return;
        }
        if let Some(((at, _), then)) = state.alarms.pop_first() {
            state.passed = state.passed.max(at.saturating_duration_since(start()));
            drop(state);
            then();
            continue;
        }
        drop(state);
        let mut changes = TIME.changes.lock().unwrap();
        while *changes == seen {
            changes = TIME.changed.wait(changes).unwrap();
        }
        seen = *changes;
    }
}

/// No more time passes, and nothing waits for it.
pub fn end() {
    let mut state = TIME.state();
    state.is_over = true;
    let alarms = std::mem::take(&mut state.alarms);
    drop(state);
    drop(alarms);
    TIME.wake_keeper();
}
