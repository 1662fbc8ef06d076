//! A counter under each of the locks that are compared.

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use parking_lot::FairMutex;
use sablock::agents::Agent;
use sablock::engine::clock::Clock;
use sablock::engine::{Engine, Patience};
use sablock::engine::{Hold, HoldOwner, Limit, Outcome, Request};
use sablock::memory::Place;
use sablock::primitives::mutex::MUTEX;

/// The hold that everybody asks for.
pub const HOLD: Hold = Hold::exclusive(HoldOwner::Thread);

/// The process's engine, as the addon has it.
pub fn engine() -> &'static Engine {
    static LOT: OnceLock<Engine> = OnceLock::new();
    LOT.get_or_init(|| Engine::new(256, 70_000, Patience::default(), Box::new(Clock::new(engine))))
}

/// A thread in the engine, until it is dropped.
pub struct Visitor(pub Arc<Agent>);

impl Default for Visitor {
    fn default() -> Self {
        Self(engine().agents.add(0).expect("ids are left"))
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        engine().thread_ended(self.0.id);
    }
}

/// A number that only the holder of a lock may touch.
pub trait Counter: Default + Sync {
    /// The data that a thread needs in order to take the lock.
    type Thread: Default;
    /// One hold.
    fn hold(&self, thread: &Self::Thread, inside: impl FnOnce(&mut u64));
    /// Returns what has been counted.
    fn total(self) -> u64;
}

impl Counter for Mutex<u64> {
    type Thread = ();
    fn hold(&self, (): &(), inside: impl FnOnce(&mut u64)) {
        inside(&mut self.lock().expect("nobody panics with it"));
    }
    fn total(self) -> u64 {
        self.into_inner().expect("nobody panics with it")
    }
}

impl Counter for parking_lot::Mutex<u64> {
    type Thread = ();
    fn hold(&self, (): &(), inside: impl FnOnce(&mut u64)) {
        inside(&mut self.lock());
    }
    fn total(self) -> u64 {
        self.into_inner()
    }
}

impl Counter for FairMutex<u64> {
    type Thread = ();
    fn hold(&self, (): &(), inside: impl FnOnce(&mut u64)) {
        inside(&mut self.lock());
    }
    fn total(self) -> u64 {
        self.into_inner()
    }
}

/// As JS locks: one compare-exchange, and the engine when it fails. Without `FAST`, through the engine always.
#[derive(Default)]
pub struct Sablock<const FAST: bool> {
    word: AtomicU32,
    count: UnsafeCell<u64>,
}

// SAFETY: `count` is touched by the holder of `word` only.
unsafe impl<const FAST: bool> Sync for Sablock<FAST> {}

impl<const FAST: bool> Sablock<FAST> {
    /// SeqCst, as everything in `Atomics` is.
    fn exchange(&self, from: u32, to: u32) -> bool {
        FAST && self.word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

impl<const FAST: bool> Counter for Sablock<FAST> {
    type Thread = Visitor;
    fn hold(&self, Visitor(agent): &Visitor, inside: impl FnOnce(&mut u64)) {
        // SAFETY: an aligned atomic; every thread has ended its waits before the counter ends.
        let word = unsafe { Place::new(NonNull::from(&self.word), 0) };
        if !self.exchange(0, agent.id) {
            let attempt = engine().wait(agent, &MUTEX, word, Request::Hold(HOLD), Limit::Endless, &mut || true);
            assert!(matches!(attempt, Ok(Outcome::GRANTED)));
        }
        // SAFETY: this thread holds the word.
        inside(unsafe { &mut *self.count.get() });
        if !self.exchange(agent.id, 0) {
            engine().release(agent, &MUTEX, word, HOLD).expect("it is held");
        }
    }
    fn total(self) -> u64 {
        assert_eq!(self.word.into_inner(), 0, "left locked");
        self.count.into_inner()
    }
}

/// A bound that no lock can beat: the two atomic instructions, for one thread alone.
#[derive(Default)]
pub struct TwoExchanges {
    word: AtomicU32,
    count: UnsafeCell<u64>,
}

// SAFETY: it has no lock, and so is given to one thread only.
unsafe impl Sync for TwoExchanges {}

impl Counter for TwoExchanges {
    type Thread = ();
    fn hold(&self, (): &(), inside: impl FnOnce(&mut u64)) {
        assert!(self.word.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_ok());
        // SAFETY: one thread only.
        inside(unsafe { &mut *self.count.get() });
        assert!(self.word.compare_exchange(1, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok());
    }
    fn total(self) -> u64 {
        self.count.into_inner()
    }
}
