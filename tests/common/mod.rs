//! What tests of the core have in common; each uses a part of it.
#![allow(dead_code)]

use std::io;
use std::sync::Arc;
use std::time::Instant;

use sablock::agents::{Agent, WaitId};
use sablock::engine::Timers;
use sablock::sync::Mutex;

/// Leases that were started; they end when the test says so. Deadlines never come.
#[derive(Default, Clone)]
pub struct Leases(pub Arc<Mutex<Vec<(usize, u64)>>>);

impl Timers for Leases {
    fn deadline(&self, _: &Arc<Agent>, _: WaitId, _: Instant) -> io::Result<()> {
        Ok(())
    }
    fn cancel(&self, _: WaitId) {}
    fn lease(&self, address: usize, generation: u64, _: Instant) {
        self.0.lock().push((address, generation));
    }
}

#[cfg(not(loom))]
pub use world::*;

#[cfg(not(loom))]
mod world {
    use std::ptr::NonNull;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;
    use std::thread;
    use std::time::{Duration, Instant};

    use sablock::agents::Agent;
    use sablock::engine::HoldOwner;
    use sablock::engine::{Engine, Patience};
    use sablock::engine::{EventLoop, Reply};
    use sablock::engine::{Limit, Outcome};
    use sablock::memory::Place;

    use super::Leases;

    /// Long enough for whatever is sure to come.
    pub const PROMPT: Duration = Duration::from_secs(20);
    pub const ACQUIRED: Outcome = Outcome::GRANTED;

    /// A engine of its own with one word.
    pub struct World {
        pub engine: Engine,
        pub leases: Leases,
        pub word: AtomicU32,
    }

    impl World {
        /// Sleepers are handed the word directly if `grants`, else never.
        pub fn new(grants: bool) -> Self {
            let grant_after = if grants { Duration::ZERO } else { Duration::MAX };
            Self::with(Patience { grant_after, grant_every: Duration::ZERO, ..Patience::default() })
        }

        pub fn with(patience: Patience) -> Self {
            let leases = Leases::default();
            let engine = Engine::new(4, 70_000, patience, Box::new(leases.clone()));
            Self { engine, leases, word: AtomicU32::new(0) }
        }

        pub fn place(&self) -> Place {
            // SAFETY: an aligned atomic that outlives all waits, which end inside the test.
            unsafe { Place::new(NonNull::from(&self.word), 0) }
        }

        pub fn agent(&self, thread: u32) -> Arc<Agent> {
            self.engine.agents.add(thread).unwrap()
        }

        pub fn lock(&self, agent: &Arc<Agent>, limit: Limit) -> Outcome {
            self.engine.lock(agent, self.place(), HoldOwner::Thread, limit, &mut || true).unwrap()
        }

        pub fn unlock(&self, agent: &Arc<Agent>) {
            self.engine.unlock(agent, self.place(), HoldOwner::Thread).unwrap();
        }

        pub fn queue(&self, waits: &mut EventLoop<'_>) -> u32 {
            match waits.lock(self.place(), HoldOwner::Thread, Limit::Endless).unwrap() {
                Reply::Pending(token) => token,
                now => panic!("{now:?}"),
            }
        }

        pub fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
            let start = Instant::now();
            while !holds(self) {
                assert!(start.elapsed() < PROMPT, "never came: {what}; {:?}", self.engine.stats());
                thread::yield_now();
            }
        }
    }
}
