//! The requests of a thread for locks that are kept outside of the process, and their holds (see `outer.rs`).

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::agents::{Agent, Message, Notice};
use crate::desk::{Answer, Asker, Desk, Lease, Loss};
use crate::engine::{Engine, Expiry, TakesBack};
use crate::memory::Place;
use crate::primitives::outer::OUTER;
use crate::sync::{AtomicU32, Mutex};

/// A request that is not over.
pub(super) struct OuterRequest {
    /// Its address tells its wait from all others.
    word: AtomicU32,
    pub(super) number: u32,
    engine: &'static Engine,
    agent: Arc<Agent>,
    desk: Arc<Desk>,
    pub(super) answer: Mutex<Option<Answer>>,
    is_shared: bool,
}

impl OuterRequest {
    pub(super) fn new(engine: &'static Engine, agent: &Arc<Agent>, desk: &Arc<Desk>, is_shared: bool) -> Arc<Self> {
        let (word, number, answer) = (AtomicU32::new(0), Desk::number(), Mutex::new(None));
        Arc::new(Self { word, number, engine, agent: Arc::clone(agent), desk: Arc::clone(desk), answer, is_shared })
    }

    pub(super) fn place(&self) -> Place {
        // SAFETY: an aligned atomic. Whoever waits or settles has the request.
        unsafe { Place::name(NonNull::from(&self.word), self.number as usize) }
    }

    pub(super) fn take(&self) -> Option<Answer> {
        self.answer.lock().take()
    }

    /// Withdraws it, or gives back its grant, once its wait is over, so that no answer comes in between. Nothing the second time.
    pub(super) fn give_up(&self) {
        self.take();
        self.desk.withdraw(self.number);
    }

    /// The hold that this answer grants.
    fn hold(&self, answer: &Answer) -> Option<OuterHold> {
        let Answer::Granted { lease, .. } = answer else { return None };
        let (desk, lease) = (Arc::clone(&self.desk), Arc::clone(lease));
        Some(OuterHold { desk, number: self.number, lease, is_shared: self.is_shared, is_in: true })
    }
}

impl Asker for OuterRequest {
    fn answer(&self, answer: Answer) -> bool {
        let is_granted = matches!(answer, Answer::Granted { .. });
        if fault!(AnswerComesLate) {
            let is_wanted = self.engine.settle(&OUTER, self.place(), is_granted, || {});
            *self.answer.lock() = Some(answer);
            return is_wanted;
        }
        self.engine.settle(&OUTER, self.place(), is_granted, || *self.answer.lock() = Some(answer))
    }

    fn lost(&self) {
        self.agent.notify(Notice::Message(Message::Lost(self.number)));
    }

    #[cfg(feature = "audit")]
    fn left(&self, is_answered: bool) -> Option<String> {
        use crate::agents::Standing;
        use crate::engine::Space;
        let Agent { id, thread, .. } = *self.agent;
        if self.engine.agents.standing(id) == Standing::Ended {
            return Some(format!("of thread {thread}, which has ended"));
        }
        let address = self.place().address();
        let is_over = !is_answered && self.engine.contents(Space::Outer, address).queue(address).is_none();
        is_over.then(|| format!("of thread {thread}, which waits for it no more"))
    }
}

/// A wait whose time is over before its loop has come: what it was granted goes back, and what was asked for together with it.
pub(super) struct Late {
    pub(super) request: Arc<OuterRequest>,
    pub(super) beside: Option<Arc<dyn Expiry>>,
}

impl Expiry for Late {
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

/// A hold outside.
#[derive(Clone)]
pub struct OuterHold {
    pub(super) desk: Arc<Desk>,
    pub(super) number: u32,
    pub(super) lease: Arc<Lease>,
    pub(super) is_shared: bool,
    /// Whether code runs with it: not while others are waited for that are asked for together with it.
    pub(super) is_in: bool,
}

impl OuterHold {
    /// Releases it; if `has_ended`, with the mark of who ended inside, where that leaves one. Nothing the second time.
    pub fn release(&self, has_ended: bool) {
        self.desk.release(self.number, has_ended && !self.is_shared && self.is_in);
    }
}

/// A request that was answered.
pub struct Answered {
    pub(super) request: Arc<OuterRequest>,
    pub(super) answer: Answer,
}

/// The requests of one thread, by number.
#[derive(Default)]
pub(super) struct OuterRequests {
    pub(super) waits: FxHashMap<u32, Arc<OuterRequest>>,
    pub(super) holds: FxHashMap<u32, OuterHold>,
    pub(super) lost: VecDeque<u32>,
    /// The answer to the wait that was returned last, until its thread takes it.
    pub(super) answer: Option<(u32, Answer)>,
    /// The number of the request whose wait was returned last, of which the thread's code may not know.
    unaccepted: Option<u32>,
}

impl OuterRequests {
    /// A wait is over.
    pub(super) fn settle(&mut self, number: u32, is_timed_out: bool) {
        let Some(request) = self.waits.remove(&number) else { return };
        self.unaccepted = Some(number);
        match request.take() {
            Some(answer) if !is_timed_out => self.answer = Some(self.take_in(Answered { request, answer })),
            _ => request.give_up(),
        }
    }

    /// A wait is gone.
    pub(super) fn give_up(&mut self, number: u32) {
        if let Some(request) = self.waits.remove(&number) {
            request.give_up();
        }
    }

    pub(super) fn take_in(&mut self, Answered { request, answer }: Answered) -> (u32, Answer) {
        self.holds.extend(request.hold(&answer).map(|hold| (request.number, hold)));
        (request.number, answer)
    }

    /// The thread's code knows of the wait that was returned last.
    pub(super) fn accept(&mut self) {
        self.unaccepted = None;
    }

    /// It will not.
    pub(super) fn refuse(&mut self) {
        if let Some(number) = self.unaccepted.take() {
            self.release(number, false);
        }
    }

    pub(super) fn note_lost(&mut self, number: u32) {
        self.lost.push_back(number);
    }

    /// Returns how it was lost before, if it was.
    pub(super) fn release(&mut self, number: u32, has_ended: bool) -> Option<Loss> {
        let hold = self.holds.remove(&number)?;
        let lost = hold.lease.lost();
        hold.release(has_ended);
        lost
    }

    /// The thread has ended, and its waits are gone.
    pub(super) fn end(&mut self) {
        self.refuse();
        for (_, hold) in self.holds.drain() {
            hold.release(true);
        }
    }
}
