//! A waiter that spins before it parks is handed the word at once; one that parks is woken.
#![cfg(not(loom))]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use common::{ACQUIRED, World};
use sablock::agents::Agent;
use sablock::engine::Limit;
use sablock::engine::Patience;

/// For a spin to be met, which takes luck where the system leaves both threads on one busy processor: seconds, under Wine.
const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// The turn of the thread whose test may go on: each needs two processors at once.
static TURN: Mutex<()> = Mutex::new(());

/// Keeps this thread to the first or the second processor that it may use. Beside busy ones the system may leave both threads on one
/// for minutes, and then nobody is seen to spin.
#[cfg(target_os = "linux")]
fn keep_to(index: usize) {
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: a set of bits, which is valid when all are 0; the system writes and reads no more than its size.
    unsafe {
        let mut usable: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size, &raw mut usable), 0);
        let mut processors = (0..libc::CPU_SETSIZE as usize).filter(|processor| libc::CPU_ISSET(*processor, &usable));
        let Some(processor) = processors.nth(index) else { return };
        let mut own: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut own);
        assert_eq!(libc::sched_setaffinity(0, size, &raw const own), 0);
    }
}

#[cfg(not(target_os = "linux"))]
fn keep_to(_index: usize) {}

impl World {
    fn exchange(&self, from: u32, to: u32) -> bool {
        self.words[0].compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// As JS does: one compare-exchange, and the core only if that fails.
    fn take(&self, agent: &Arc<Agent>) {
        if self.exchange(0, agent.id) {
            return;
        }
        assert_eq!(self.lock(agent, Limit::Endless), ACQUIRED);
    }

    fn free(&self, agent: &Arc<Agent>) {
        if !self.exchange(agent.id, 0) {
            self.unlock(agent);
        }
    }

    /// Waits until so many threads are blocked, or all is over.
    fn wait_for_blocked(&self, count: u64, is_over: impl Fn() -> bool) {
        while self.engine.stats().blocked != count && !is_over() {
            thread::yield_now();
        }
    }

    /// Holds the word until another thread is queued for it and somewhat longer, again and again.
    fn hold_longer_and_longer(&self, agent: &Arc<Agent>, is_over: impl Fn() -> bool) {
        // In the end longer than a turn of the scheduler: a waiter that has no processor is not seen to spin.
        let mut longer = (0..50).cycle().map(|step| Duration::from_micros(5) * step * step);
        while !is_over() {
            // Not by waiting: a spin would see that the other's holds are short.
            if !self.exchange(0, agent.id) {
                thread::yield_now();
                continue;
            }
            self.wait_for_blocked(1, &is_over);
            // It is queued, and about to spin.
            let until = Instant::now() + longer.next().unwrap();
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            self.free(agent);
            // One that was woken has the word, or it might find it taken again each time that it comes.
            self.wait_for_blocked(0, &is_over);
        }
    }

    /// Takes and frees the word beside a thread that holds it longer and longer, until `is_enough` or too late. Returns whether it
    /// was enough.
    fn alternate(&self, is_enough: impl Fn(&Self) -> bool + Sync) -> bool {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let started_at = Instant::now();
        let is_over = AtomicBool::new(false);
        let (agent, other) = (self.agent(1), self.agent(2));
        // The engine counts the processors at the first wait: all of them, not the one that a thread is kept to below.
        assert_eq!(self.lock(&agent, Limit::Endless), ACQUIRED);
        self.unlock(&agent);
        thread::scope(|scope| {
            scope.spawn(|| {
                keep_to(1);
                while !is_over.load(Ordering::SeqCst) {
                    self.take(&other);
                    self.free(&other);
                }
            });
            scope.spawn(|| {
                keep_to(0);
                self.hold_longer_and_longer(&agent, || is_enough(self) || started_at.elapsed() >= LONG_ENOUGH);
                is_over.store(true, Ordering::SeqCst);
            });
        });
        is_enough(self)
    }
}

/// Long spins, so that every hold of [`World::alternate`] is seen to be long; nobody is ever handed the word while parked.
fn patience(spin_queued: Duration) -> Patience {
    Patience { grant_after: Duration::MAX, spin: Duration::from_micros(200), spin_queued, ..Patience::default() }
}

#[test]
fn a_waiter_that_spins_is_handed_the_word() {
    if thread::available_parallelism().is_ok_and(|count| count.get() == 1) {
        return; // nobody spins where the holder could not go on meanwhile
    }
    let world = World::with(patience(Duration::from_secs(60)));
    assert!(world.alternate(|world| world.engine.stats().handovers > 0));
}

#[test]
fn a_waiter_that_parks_is_woken_and_handed_nothing() {
    let world = World::with(patience(Duration::ZERO));
    assert!(world.alternate(|world| world.engine.stats().contended > 20));
    assert_eq!(world.engine.stats().handovers, 0);
}
