//! Once: one runs, all others wait until it is done. In strict order: after one that failed, or ended, the next in line runs.

use super::types::{Id, NOBODY};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Once {
    /// The runner; one that is dead and that nobody has noticed yet; or nobody.
    pub runner: Id,
    pub done: bool,
    pub waiters: bool,
}

impl Once {
    /// A look at the word is enough once it is done.
    pub fn fast_acquire(self) -> Option<Self> {
        self.done.then_some(self)
    }

    /// It runs; or, once it is done, it passes and the word stays.
    pub fn grant(self, who: Id) -> Option<Self> {
        let runs = Once { runner: who, ..self };
        if self.done { Some(self) } else { (self.runner == NOBODY).then_some(runs) }
    }

    /// The run has failed, or its thread has ended.
    pub fn release(self) -> Self {
        Once { runner: NOBODY, ..self }
    }

    pub fn finished(self) -> Self {
        Once { runner: NOBODY, done: true, ..self }
    }

    pub fn closed(self, anybody_queued: bool) -> Self {
        Once { waiters: anybody_queued, ..self }
    }
}
