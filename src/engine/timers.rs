//! What the engine asks of the background thread that keeps times.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use crate::agents::{Agent, WaitId};

/// Keeps deadlines and leases, and says when they have passed; decides nothing.
pub trait Timers: Send + Sync {
    /// After `at`, the agent gets a [`crate::agents::Notice::Expired`] with `id`. Fails if no thread can be had to keep time.
    fn deadline(&self, agent: &Arc<Agent>, id: WaitId, at: Instant) -> io::Result<()>;
    /// The deadline of `id` is of no more interest.
    fn cancel(&self, id: WaitId);
    /// At `at`, the lease `generation` on the primitive at `address` is over.
    fn lease(&self, address: usize, generation: u64, at: Instant);
}

/// For tests in which no time comes.
#[cfg(all(test, not(loom)))]
pub(super) struct NoClock;

#[cfg(all(test, not(loom)))]
impl Timers for NoClock {
    fn deadline(&self, _: &Arc<Agent>, _: WaitId, _: Instant) -> io::Result<()> {
        Ok(())
    }
    fn cancel(&self, _: WaitId) {}
    fn lease(&self, _: usize, _: u64, _: Instant) {}
}
