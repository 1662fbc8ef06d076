//! The requests of a thread for what is kept outside of its process, and what it has of them (see `outer.rs`).

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustc_hash::FxHashMap;

use super::held::{Held, Told};
use crate::agents::Agent;
use crate::engine::{Arena, Caller, Engine, Expiry, Failure, TakesBack};
use crate::memory::Place;
use crate::primitives::futex::OUTER;
use crate::sync::{AtomicU32, Mutex};

/// A kind of requests to outsiders.
pub trait Outside: Send + Sync + Sized + 'static {
    /// The request, for the outsider.
    type Question;
    /// Its outcome.
    type Answer: Send + 'static;

    /// Asks: the answer comes to [`OuterRequest::answer`], on any thread.
    fn ask(request: &Arc<OuterRequest<Self>>, question: Self::Question);
    /// As [`Self::ask`], on a thread that is about to block for it, and may see to it itself until this time.
    fn ask_here(request: &Arc<OuterRequest<Self>>, question: Self::Question, _until: Instant) {
        Self::ask(request, question);
    }
    /// Whether it grants something.
    fn is_granted(answer: &Self::Answer) -> bool;
    /// Takes the answer to the request of this number apart: what the thread holds by it, and what its code is told.
    fn take_in(&self, number: u64, answer: Self::Answer) -> (Option<Held>, Told);
    /// Withdraws a request that is over, or gives back its answer. Nothing the second time.
    fn give_up(request: &Arc<OuterRequest<Self>>, answer: Option<Self::Answer>);
    /// Blocks the thread that has given up a request until nothing of that is left.
    fn leave_blocking(_: &Arc<OuterRequest<Self>>, _: &mut dyn Caller) -> Result<(), Failure> {
        Ok(())
    }
    /// The place at which threads wait, while it holds 0, until nothing is left of a request that was given up; `None` if nothing ever
    /// is.
    fn remains(&self) -> Option<Place> {
        None
    }
}

/// A number of a request or of what was granted to one, above those of requests for names. None comes twice: what has it may be kept for
/// as long as the process lives.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << u32::BITS);
    // Relaxed: only that it is another.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A request that is not over.
pub struct OuterRequest<K: Outside> {
    /// 1 once it was given up. Its address tells its wait from all others.
    is_given_up: AtomicU32,
    pub(super) number: u64,
    pub(super) engine: &'static Engine,
    pub(super) agent: Arc<Agent>,
    pub(super) kind: K,
    answer: Mutex<Option<K::Answer>>,
}

impl<K: Outside> OuterRequest<K> {
    pub(super) fn new(engine: &'static Engine, agent: &Arc<Agent>, kind: K) -> Arc<Self> {
        let (is_given_up, number, agent) = (AtomicU32::new(0), next_number(), Arc::clone(agent));
        Arc::new(Self { is_given_up, number, engine, agent, kind, answer: Mutex::new(None) })
    }

    pub(super) fn place(&self) -> Place {
        // SAFETY: an aligned atomic. Whoever waits or settles has the request.
        unsafe { Place::name(NonNull::from(&self.is_given_up), self.number as usize) }
    }

    /// Ends its wait with this answer, once at most. Returns it if nobody wants it any more.
    pub(super) fn answer(&self, answer: K::Answer) -> Option<K::Answer> {
        let (is_granted, mut answer) = (K::is_granted(&answer), Some(answer));
        if fault!(AnswerComesLate) {
            let is_wanted = self.engine.settle(&OUTER, self.place(), is_granted, || {});
            let unwanted = if is_wanted { None } else { answer.take() };
            *self.answer.lock() = answer;
            return unwanted;
        }
        self.engine.settle(&OUTER, self.place(), is_granted, || *self.answer.lock() = answer.take());
        answer
    }

    fn take(&self) -> Option<K::Answer> {
        self.answer.lock().take()
    }

    /// Withdraws it, or gives back its grant, once its wait is over, so that no answer comes in between. Nothing the second time.
    pub(super) fn give_up(self: &Arc<Self>) {
        self.is_given_up.store(1, Ordering::SeqCst);
        K::give_up(self, self.take());
    }

    /// It was asked for: takes it back if its time was over before.
    pub(super) fn asked(self: &Arc<Self>) {
        if self.is_given_up.load(Ordering::SeqCst) != 0 && !fault!(AskedAfterItsTime) {
            self.give_up();
        }
    }
}

/// A wait whose time is over before its loop has come: what it was granted goes back, and what was asked for together with it.
pub(super) struct Late<K: Outside> {
    pub(super) request: Arc<OuterRequest<K>>,
    pub(super) beside: Option<Arc<dyn Expiry>>,
}

impl<K: Outside> Expiry for Late<K> {
    fn expired(&self, engine: &dyn TakesBack) {
        self.request.give_up();
        if let Some(beside) = &self.beside {
            beside.expired(engine);
        }
    }

    fn gives_back(&self, address: usize) -> bool {
        self.beside.as_ref().is_some_and(|beside| beside.gives_back(address))
    }
}

/// A request that was answered: its number, what the thread holds by it, and what its code is told.
pub struct Answered {
    number: u64,
    held: Option<Held>,
    told: Told,
}

/// A request of a loop, of whatever kind.
pub(super) trait OuterWait: Send + Sync {
    /// Takes its answer, if it has one.
    fn collect(&self) -> Option<Answered>;
    /// Gives it up.
    fn forget(self: Arc<Self>);
    /// As [`Outside::remains`].
    fn remains(&self) -> Option<Place>;
    fn is_answered(&self) -> bool;
}

impl<K: Outside> OuterWait for OuterRequest<K> {
    fn collect(&self) -> Option<Answered> {
        let (number, answer) = (self.number, self.take()?);
        let (held, told) = self.kind.take_in(number, answer);
        Some(Answered { number, held, told })
    }

    fn forget(self: Arc<Self>) {
        self.give_up();
    }

    fn remains(&self) -> Option<Place> {
        self.kind.remains()
    }

    fn is_answered(&self) -> bool {
        self.answer.lock().is_some()
    }
}

/// The requests of one thread, and what it has of them by their numbers.
#[derive(Default)]
pub(super) struct OuterRequests {
    pub(super) waits: Arena<Arc<dyn OuterWait>>,
    pub(super) holds: FxHashMap<u64, Held>,
    /// The news of the wait that was returned last, until its thread takes them.
    pub(super) told: Option<(u64, Told)>,
    /// The request that was given up last.
    pub(super) given_up: Option<Arc<dyn OuterWait>>,
    /// The number of the request whose wait was returned last, of which the thread's code may not know.
    unaccepted: Option<u64>,
    /// The holds that were lost, until the thread's code knows.
    pub(super) lost: VecDeque<u64>,
}

impl OuterRequests {
    /// A wait is over.
    pub(super) fn settle(&mut self, index: u32, is_timed_out: bool) {
        let request = self.waits.remove(index);
        // A grant that was not collected in time goes back, though the clock may not have come to that yet.
        match if is_timed_out { None } else { request.collect() } {
            Some(answered) => {
                self.unaccepted = Some(answered.number);
                self.told = Some(self.take_in(answered));
            }
            None => self.forget(request),
        }
    }

    /// A wait is gone.
    pub(super) fn give_up(&mut self, index: u32) {
        if let Some(request) = self.waits.try_remove(index) {
            self.forget(request);
        }
    }

    fn forget(&mut self, request: Arc<dyn OuterWait>) {
        Arc::clone(&request).forget();
        self.given_up = Some(request);
    }

    pub(super) fn take_in(&mut self, Answered { number, held, told }: Answered) -> (u64, Told) {
        self.holds.extend(held.map(|held| (number, held)));
        (number, told)
    }

    /// Takes in what the thread has without a wait: `make` makes it for a number, which this returns.
    pub(super) fn insert(&mut self, make: impl FnOnce(u64) -> Held) -> u64 {
        let number = next_number();
        self.holds.insert(number, make(number));
        number
    }

    /// The thread's code knows of the wait that was returned last.
    pub(super) fn accept(&mut self) {
        self.unaccepted = None;
    }

    /// It will not.
    pub(super) fn refuse(&mut self) {
        if let Some(held) = self.unaccepted.take().and_then(|number| self.holds.remove(&number)) {
            held.give_back(false);
        }
    }

    /// The thread has ended; its waits are gone, and what was returned last was refused.
    pub(super) fn end(&mut self) {
        // The last ones first: with that of its store, which came before, nothing of a store can be given back any more.
        let mut holds: Vec<_> = self.holds.drain().collect();
        holds.sort_unstable_by_key(|(number, _)| Reverse(*number));
        holds.into_iter().for_each(|(_, held)| held.end());
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
