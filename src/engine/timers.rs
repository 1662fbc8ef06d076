//! The timers that the engine asks for: the background thread keeps them.

use std::io;
use std::time::Instant;

use super::primitive::Primitive;
use super::queue::{Ticket, WaiterId};
use crate::memory::Place;

/// Keeps deadlines and leases, and tells the engine when they have passed; decides nothing.
pub trait Timers: Send + Sync {
    /// After `at`, [`super::Engine::expire`] is called with it. Fails if no thread can be had to keep time.
    fn deadline(&self, deadline: Deadline, at: Instant) -> io::Result<()>;
    /// The deadline of this serial is of no more interest.
    fn cancel(&self, serial: u64);
    /// At `at`, the lease `generation` on the primitive at `address` is over.
    fn lease(&self, address: usize, generation: u64, at: Instant);
    /// The deadlines that are of interest still, as far as they can be told.
    #[cfg(feature = "audit")]
    fn kept(&self) -> Vec<Deadline> {
        Vec::new()
    }
}

/// The deadline of a pending promise.
#[derive(Clone, Copy)]
pub struct Deadline {
    /// Tells it from every other in the process.
    pub serial: u64,
    pub(super) primitive: &'static dyn Primitive,
    pub(super) place: Place,
    /// The promise's waiter, whose number is used again once it is gone, and its ticket, which is not.
    pub(super) waiter: WaiterId,
    pub(super) ticket: Ticket,
}

/// For tests in which no time comes.
#[cfg(all(test, not(loom)))]
pub(super) struct NoClock;

#[cfg(all(test, not(loom)))]
impl Timers for NoClock {
    fn deadline(&self, _: Deadline, _: Instant) -> io::Result<()> {
        Ok(())
    }
    fn cancel(&self, _: u64) {}
    fn lease(&self, _: usize, _: u64, _: Instant) {}
}
