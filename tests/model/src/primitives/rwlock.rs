//! The read-write lock: one writer, or readers. They are counted in the word, or in slots of their threads, which whoever
//! asks for a transition has summed (`in_slots`).

use super::types::{Id, NOBODY, Request};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RwLock {
    /// The writer, a dead writer that nobody has noticed yet, or nobody.
    pub writer: Id,
    /// The number of readers that are in, where the word counts them.
    pub readers: u8,
    /// Readers may be in slots, so that writers have to sum those.
    pub biased: bool,
    /// Reserved for a loop group's first waiter, for this.
    pub reserved: Option<Request>,
    /// W: whoever leaves must look at the queue, and no reader enters by itself.
    pub waiters: bool,
}

impl RwLock {
    /// The fast paths, where the word counts: W and reservations are for native code.
    pub fn fast_acquire(self, request: Request, who: Id) -> Option<Self> {
        let is_plain = !self.waiters && self.reserved.is_none() && !self.biased;
        match request {
            Request::Shared if is_plain && self.writer == NOBODY => Some(RwLock { readers: self.readers + 1, ..self }),
            Request::Exclusive if self == RwLock::default() => Some(RwLock { writer: who, ..self }),
            _ => None,
        }
    }

    pub fn fast_release(self, request: Request) -> Option<Self> {
        (!self.waiters && self.reserved.is_none()).then(|| self.release(request))
    }

    /// Whether a reader that has counted itself in its slot sees in the word what it wants to.
    pub fn lets_slots_in(self) -> bool {
        self == RwLock { biased: true, ..RwLock::default() }
    }

    pub fn grant(self, request: Request, who: Id, in_slots: Option<u8>) -> Option<Self> {
        let is_free = self.writer == NOBODY;
        match (request, in_slots) {
            (Request::Shared, _) if !is_free || self.reserved == Some(Request::Exclusive) => None,
            (Request::Shared, Some(_)) => Some(RwLock { biased: true, ..self }),
            (Request::Shared, None) => Some(RwLock { readers: self.readers + 1, ..self }),
            (_, slots) => {
                let is_open = is_free && self.readers == 0 && slots.unwrap_or(0) == 0 && self.reserved.is_none();
                is_open.then_some(RwLock { writer: who, biased: false, ..self })
            }
        }
    }

    /// Readers that slots count have left by themselves.
    pub fn release(self, request: Request) -> Self {
        match request {
            Request::Shared => RwLock { readers: self.readers.saturating_sub(1), ..self },
            _ => RwLock { writer: NOBODY, ..self },
        }
    }

    /// Its writer reads on. Only where the word counts.
    pub fn downgraded(self) -> Self {
        RwLock { writer: NOBODY, readers: self.readers + 1, ..self }
    }

    /// Its only reader writes, if nobody waits; `beside`, under a fault: also beside others.
    pub fn upgraded(self, who: Id, beside: bool) -> Option<Self> {
        let is_alone = self.readers == 1 || beside;
        (is_alone && !self.waiters).then_some(RwLock { writer: who, readers: self.readers - 1, ..self })
    }

    pub fn closed(self, anybody_queued: bool) -> Self {
        let is_plainly_free = RwLock { waiters: false, ..self } == RwLock::default();
        RwLock { waiters: anybody_queued && !is_plainly_free, ..self }
    }
}
