//! The thread of the clock: one for all times that are kept, and none when there are none.
#![cfg(all(target_os = "linux", not(any(loom, shuttle))))]

mod common;

use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};
use std::{fs, thread};

use common::{Locks as _, LocksAsync as _, PROMPT, pending};
use sablock::engine::clock::Clock;
use sablock::engine::{Engine, EventLoop, HoldOwner, Limit, Outcome, Patience};
use sablock::memory::Place;

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new(1, 70_000, Patience::default(), Box::new(Clock::new(engine))))
}

/// The number of threads of this process.
fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PROMPT;
    while !is_so() {
        assert!(Instant::now() < end, "never came: {what}");
        thread::yield_now();
    }
}

// The only test here, since it counts threads.
#[test]
fn one_thread_keeps_all_times_ends_when_there_are_none_and_begins_again() {
    let word = Box::leak(Box::new(AtomicU32::new(0)));
    // SAFETY: an aligned atomic that is never freed.
    let place = unsafe { Place::new(NonNull::from(word), 0) };
    let [holder, agent] = [0, 1].map(|thread| engine().agents.add(thread).unwrap());
    let held = engine().lock(&holder, place, HoldOwner::Thread, Limit::Once, &mut || true);
    assert!(matches!(held, Ok(Outcome::GRANTED)));
    let mut waits = EventLoop::new(engine(), agent);
    let before = threads();
    for round in 0..2 {
        let mut wait = |time| pending(waits.lock(place, HoldOwner::Thread, Limit::after(time)).unwrap());
        let late = [(); 3].map(|()| wait(Duration::from_secs(3600)));
        let soon = wait(Duration::from_millis(20));
        assert_eq!(threads(), before + 1, "round {round}");
        let mut settled = None;
        until("the time that is over first", || {
            settled = waits.next_settled();
            settled.is_some()
        });
        let settled = settled.unwrap();
        assert_eq!((settled.token, settled.outcome), (soon, Ok(Outcome::TimedOut)), "round {round}");
        assert_eq!(threads(), before + 1, "round {round}: others are kept");
        late.into_iter().for_each(|token| assert!(waits.cancel(token).is_some()));
        until("the end of the thread", || threads() == before);
    }
}
