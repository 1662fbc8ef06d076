//! The semaphore: permits. In strict order W is set while anybody waits, so that nobody passes by the queue; when it barges, while
//! one of the first in line does not know that it may come.

use super::types::Request;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Semaphore {
    pub available: u8,
    pub waiters: bool,
}

impl Semaphore {
    pub fn fast_acquire(self, request: Request) -> Option<Self> {
        if self.waiters { None } else { self.grant(request) }
    }

    pub fn fast_release(self, request: Request) -> Option<Self> {
        (!self.waiters).then(|| self.release(request))
    }

    pub fn grant(self, request: Request) -> Option<Self> {
        Some(Semaphore { available: self.available.checked_sub(request.count())?, ..self })
    }

    pub fn release(self, request: Request) -> Self {
        Semaphore { available: self.available + request.count(), ..self }
    }

    pub fn closed(self, must_look: bool) -> Self {
        Semaphore { waiters: must_look, ..self }
    }

    /// A section's changes, added to what the word has become since the section read it.
    pub fn added(self, read: Semaphore, decided: Semaphore) -> Self {
        Semaphore { available: self.available + decided.available - read.available, waiters: decided.waiters }
    }
}
