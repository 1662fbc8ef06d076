//! Locks that are wanted together, and those of them that an event loop has while it waits for the next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::agents::{Agent, AgentId};
use crate::engine::{Engine, Expiry, Hold, Limit, Outcome, Primitive, Settled, TakesBack};
use crate::memory::Place;
use crate::sync::Mutex;

/// A lock of a set.
pub(super) struct Part {
    pub(super) primitive: &'static dyn Primitive,
    pub(super) place: Place,
    pub(super) hold: Hold,
    /// Its place in the list of whoever asked.
    pub(super) index: usize,
    /// The agent whose thread ended inside, which whoever gets the set has to report.
    abandoned_by: Option<AgentId>,
    /// It was held, and the clock has given it back.
    is_back: bool,
}

/// A wait for one lock of a set that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartWait {
    /// Which lock, as its place in the list of whoever asked.
    pub index: usize,
    /// The agent that held it alone when the wait began; 0 for none.
    pub owner: AgentId,
    /// Since when.
    pub since: Instant,
    /// The time that it took.
    pub waited: Duration,
}

/// Locks that are wanted together.
#[derive(Default)]
pub struct LockSet {
    /// In the order in which they are taken; each lock once.
    parts: Vec<Part>,
    /// The number of those that are held: the first ones.
    held: usize,
    /// The number of those that are beside a wait: the first ones.
    aside: usize,
    /// The lock that was awaited last, or could not be had, as its place in the list of whoever asked.
    pub stopped_at: Option<usize>,
    /// The waits of a thread that blocked for it.
    pub waits: Vec<PartWait>,
}

impl LockSet {
    /// A lock that is named several times counts once: exclusively, if that is asked for once.
    pub fn new(wanted: impl IntoIterator<Item = (&'static dyn Primitive, Place, Hold)>) -> Self {
        let part = |(index, (primitive, place, hold))| Part {
            primitive,
            place,
            hold,
            index,
            abandoned_by: None,
            is_back: false,
        };
        let mut parts: Vec<Part> = wanted.into_iter().enumerate().map(part).collect();
        parts.sort_by_key(|part| (part.place.address(), !part.hold.is_exclusive()));
        parts.dedup_by(|other, first| {
            other.place.address() == first.place.address() && other.primitive.is(first.primitive)
        });
        Self { parts, ..Self::default() }
    }

    /// As if all of them were held, and these agents' ends were still to be reported, each with the lock's place in the list.
    #[must_use]
    pub fn all_held(mut self, reports: &[(usize, AgentId)]) -> Self {
        self.held = self.parts.len();
        for part in &mut self.parts {
            let report = reports.iter().find(|(index, _)| *index == part.index);
            part.abandoned_by = report.map(|(_, agent)| *agent);
        }
        self
    }

    /// The locks' places in the list of whoever asked, each lock once, in the order in which they are taken.
    pub fn indices(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().map(|part| part.index)
    }

    /// The ended agents that whoever has got the set has to report, each with the lock's place in the list.
    pub fn reports(&self) -> impl Iterator<Item = (usize, AgentId)> {
        self.parts.iter().filter_map(|part| Some((part.index, part.abandoned_by?)))
    }

    /// Their places.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.parts.iter().map(|part| part.place)
    }

    /// The lock that is taken next; `None` if all of them are held.
    pub(super) fn next(&self) -> Option<&Part> {
        self.parts.get(self.held)
    }

    pub(super) fn granted(&mut self, abandoned_by: Option<AgentId>) {
        self.parts[self.held].abandoned_by = abandoned_by;
        self.held += 1;
    }

    /// Gives back what is held, as if it had not been acquired.
    pub fn give_back(&mut self, engine: &Engine, here: &Arc<Agent>) {
        self.bring_back(engine, here.id);
        for part in self.parts[..self.held].iter_mut().rev().filter(|part| !part.is_back) {
            engine.give_back(here, part.primitive, part.place, part.hold, part.abandoned_by.take());
        }
        self.held = 0;
    }

    /// Sets what is held beside a wait; it stays there until [`LockSet::bring_back`], for the waits that follow as well.
    pub(super) fn set_aside(&mut self, engine: &Engine, agent: AgentId) {
        for part in &self.parts[self.aside..self.held] {
            engine.set_aside(part.primitive, part.place, agent, part.hold);
        }
        self.aside = self.held;
    }

    /// No wait follows: what is held is its loop's again.
    pub(super) fn bring_back(&mut self, engine: &Engine, agent: AgentId) {
        for part in self.parts[..self.aside].iter().filter(|part| !part.is_back) {
            engine.bring_back(part.primitive, part.place, agent, part.hold);
        }
        self.aside = 0;
    }
}

/// A set of an event loop that waits for its next lock.
pub(super) struct WaitingSet {
    agent: AgentId,
    set: Mutex<LockSet>,
}

impl WaitingSet {
    pub(super) fn new(agent: AgentId, set: LockSet) -> Arc<Self> {
        Arc::new(Self { agent, set: Mutex::new(set) })
    }

    /// The wait is over.
    fn take(&self) -> LockSet {
        std::mem::take(&mut *self.set.lock())
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&LockSet) -> T) -> T {
        look(&self.set.lock())
    }
}

/// Its holds go back at once.
impl Expiry for WaitingSet {
    fn expired(&self, engine: &dyn TakesBack) {
        // Until this is over the loop does not go on, so that the locks' memory stays.
        let LockSet { parts, held, .. } = &mut *self.set.lock();
        for part in parts[..*held].iter_mut().rev() {
            let Part { primitive, place, hold, .. } = *part;
            engine.take_back(self.agent, primitive, place, hold, part.abandoned_by.take());
            part.is_back = true;
        }
    }

    fn gives_back(&self, address: usize) -> bool {
        self.look(|set| set.parts[..set.held].iter().any(|part| part.place.address() == address))
    }
}

/// The sets of an event loop that are not its code's yet.
#[derive(Default)]
pub(super) struct PendingSets {
    /// By the token of the wait for the lock that comes next.
    pub(super) waiting: FxHashMap<u32, (Arc<WaitingSet>, Limit)>,
    /// The set of the wait that was settled last, until the next is: the thread's code may not know of it yet.
    pub(super) settled: Option<(LockSet, Limit)>,
}

impl PendingSets {
    /// The thread's code knows of the set that was settled last; it had to go on with it if it is not complete.
    pub(super) fn accept(&mut self, engine: &Engine, here: &Arc<Agent>) {
        if let Some((mut set, _)) = self.settled.take()
            && set.next().is_some()
        {
            set.give_back(engine, here);
        }
    }

    /// The set that was settled last is not wanted.
    pub(super) fn refuse(&mut self, engine: &Engine, here: &Arc<Agent>) {
        if let Some((mut set, _)) = self.settled.take() {
            set.give_back(engine, here);
        }
    }

    /// The wait for a lock of a set was settled: the set has that lock, or none any more.
    pub(super) fn settle(&mut self, engine: &Engine, here: &Arc<Agent>, settled: &Settled) {
        let Some((waiting, limit)) = self.waiting.remove(&settled.token) else { return };
        let mut set = waiting.take();
        if let Ok(Outcome::Granted { abandoned_by, .. }) = settled.outcome {
            set.granted(abandoned_by);
            if set.next().is_none() {
                set.bring_back(engine, here.id);
            }
        } else if !fault!(FailedSetKeepsItsLocks) {
            set.give_back(engine, here);
        }
        self.settled = Some((set, limit));
    }

    /// The wait is gone.
    pub(super) fn cancel(&mut self, engine: &Engine, here: &Arc<Agent>, token: u32) {
        if let Some((waiting, _)) = self.waiting.remove(&token) {
            waiting.take().give_back(engine, here);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr::NonNull;

    use super::*;
    use crate::engine::HoldOwner;
    use crate::primitives::mutex::MUTEX;
    use crate::sync::AtomicU32;

    #[test]
    fn all_that_a_waiting_set_has_goes_back_with_it_and_nothing_that_it_has_not() {
        let words: [AtomicU32; 3] = Default::default();
        // SAFETY: aligned atomics, of which only the addresses are used.
        let places = [0, 1, 2].map(|index| unsafe { Place::new(NonNull::from(&words[index]), 4 * index) });
        let mutex: &'static dyn Primitive = &MUTEX;
        let mut set = LockSet::new(places.map(|place| (mutex, place, Hold::exclusive(HoldOwner::Guard))));
        set.granted(None);
        set.granted(None);
        let waiting = WaitingSet::new(70_000, set);
        assert_eq!(places.map(|place| waiting.gives_back(place.address())), [true, true, false]);
    }
}
