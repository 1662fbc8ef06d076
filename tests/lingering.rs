//! A waiter that looks on before it sleeps is handed the word at once, and nobody who has waited long is passed by for it.
#![cfg(not(loom))]

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sablock::agent::{Agent, Timers, WaitId};
use sablock::lot::{Lot, Patience};
use sablock::mutex::{Attempt, Limit};
use sablock::shared_word::SharedWord;

const PROMPT: Duration = Duration::from_secs(20);

struct NoTimers;

impl Timers for NoTimers {
    fn deadline(&self, _: &Arc<Agent>, _: WaitId, _: Instant) -> io::Result<()> {
        Ok(())
    }
    fn cancel(&self, _: WaitId) {}
    fn lease(&self, _: usize, _: u64, _: Instant) {}
}

struct World {
    lot: Lot,
    word: AtomicU32,
    is_over: AtomicBool,
}

impl World {
    fn new(patience: Patience) -> Self {
        let lot = Lot::new(1, 70_000, patience, Box::new(NoTimers));
        Self { lot, word: AtomicU32::new(0), is_over: AtomicBool::new(false) }
    }

    fn shared(&self) -> SharedWord {
        // SAFETY: the word outlives every call: the threads are joined before it goes.
        unsafe { SharedWord::new(NonNull::from(&self.word), 0) }
    }

    fn enter(&self, thread: u32) -> Arc<Agent> {
        self.lot.agents.enter(thread).unwrap()
    }

    fn exchange(&self, from: u32, to: u32) -> bool {
        self.word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// As JS does: one compare-exchange, and the core only if that fails.
    fn lock(&self, agent: &Arc<Agent>) {
        if self.exchange(0, agent.id) {
            return;
        }
        let attempt = self.lot.lock(agent, self.shared(), false, Limit::Endless, &mut || true).unwrap();
        assert_eq!(attempt, Attempt::Acquired { abandoned_by: None });
    }

    fn unlock(&self, agent: &Arc<Agent>) {
        if !self.exchange(agent.id, 0) {
            self.lot.unlock(agent, self.shared(), false).unwrap();
        }
    }

    /// Holds the word until another thread is queued for it and somewhat longer, again and again, until `is_enough` or too late.
    /// Answers whether it was enough.
    fn alternate(&self, is_enough: impl Fn(&Self) -> bool) -> bool {
        let started_at = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| {
                let agent = self.enter(2);
                while !self.is_over.load(Ordering::SeqCst) {
                    self.lock(&agent);
                    self.unlock(&agent);
                }
            });
            let agent = self.enter(1);
            let mut longer = (0..50).cycle().map(|step| Duration::from_micros(5) * step);
            while !is_enough(self) && started_at.elapsed() < PROMPT {
                // Not by waiting: a spin would see that the other's holds are short.
                if !self.exchange(0, agent.id) {
                    continue;
                }
                while self.lot.tally().blocked == 0 && started_at.elapsed() < PROMPT {
                    thread::yield_now();
                }
                // It is queued, and about to look on.
                let until = Instant::now() + longer.next().unwrap();
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                self.unlock(&agent);
            }
            self.is_over.store(true, Ordering::SeqCst);
        });
        is_enough(self)
    }
}

/// Long spins, so that every hold of [`World::alternate`] is seen to be long; nobody is ever handed the word asleep.
fn patience(linger: Duration) -> Patience {
    Patience { grant_after: Duration::MAX, spin: Duration::from_micros(200), linger, ..Patience::default() }
}

#[test]
fn who_lingers_is_handed_the_word() {
    if thread::available_parallelism().is_ok_and(|count| count.get() == 1) {
        return; // nobody lingers where the holder could not go on meanwhile
    }
    let world = World::new(patience(Duration::from_secs(60)));
    assert!(world.alternate(|world| world.lot.tally().handovers > 0));
}

#[test]
fn who_sleeps_is_woken_and_handed_nothing() {
    let world = World::new(patience(Duration::ZERO));
    assert!(world.alternate(|world| world.lot.tally().contended > 20));
    assert_eq!(world.lot.tally().handovers, 0);
}
