//! What tests of the core have in common; each uses a part of it.
#![allow(dead_code)]

use std::io;
use std::sync::Arc;
use std::time::Instant;

use sablock::agent::{Agent, Timers, WaitId};
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

    use sablock::agent::Agent;
    use sablock::event_loop::{EventLoop, Request};
    use sablock::lot::{Lot, Patience};
    use sablock::mutex::{Attempt, Limit};
    use sablock::shared_word::SharedWord;

    use super::Leases;

    /// Long enough for whatever is sure to come.
    pub const PROMPT: Duration = Duration::from_secs(20);
    pub const ACQUIRED: Attempt = Attempt::Acquired { abandoned_by: None };

    /// A lot of its own with one word.
    pub struct World {
        pub lot: Lot,
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
            let lot = Lot::new(4, 70_000, patience, Box::new(leases.clone()));
            Self { lot, leases, word: AtomicU32::new(0) }
        }

        pub fn shared(&self) -> SharedWord {
            // SAFETY: an aligned atomic that outlives all waits, which end inside the test.
            unsafe { SharedWord::new(NonNull::from(&self.word), 0) }
        }

        pub fn agent(&self, thread: u32) -> Arc<Agent> {
            self.lot.agents.enter(thread).unwrap()
        }

        pub fn lock(&self, agent: &Arc<Agent>, limit: Limit) -> Attempt {
            self.lot.lock(agent, self.shared(), false, limit, &mut || true).unwrap()
        }

        pub fn unlock(&self, agent: &Arc<Agent>) {
            self.lot.unlock(agent, self.shared(), false).unwrap();
        }

        pub fn queue(&self, waits: &mut EventLoop<'_>) -> u32 {
            match waits.lock(self.shared(), false, Limit::Endless).unwrap() {
                Request::Pending(token) => token,
                now => panic!("{now:?}"),
            }
        }

        pub fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
            let start = Instant::now();
            while !holds(self) {
                assert!(start.elapsed() < PROMPT, "never came: {what}; {:?}", self.lot.tally());
                thread::yield_now();
            }
        }
    }
}
