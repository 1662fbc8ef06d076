//! Requests for locks in stores, which a lock worker answers from its desk (see `outer.rs`).

use std::sync::Arc;

use super::outer_requests::{OuterRequest, Outside};
use crate::agents::{Message, Notice};
use crate::desk::{Answer, Asker, Desk, Lease, Loss, Question};

/// A lock in a store.
pub struct InStore {
    desk: Arc<Desk>,
    is_shared: bool,
}

impl InStore {
    /// At this desk.
    pub fn at(desk: &Arc<Desk>, question: &Question) -> Self {
        Self { desk: Arc::clone(desk), is_shared: question.is_shared }
    }
}

impl Outside for InStore {
    type Question = Question;
    type Answer = Answer;
    type Told = Answer;
    type Hold = StoreHold;

    fn ask(request: &Arc<OuterRequest<Self>>, question: Question) {
        request.kind.desk.ask(request.number, question, Arc::clone(request) as _);
    }

    fn is_granted(answer: &Answer) -> bool {
        matches!(answer, Answer::Granted { .. })
    }

    fn take_in(&self, number: u64, answer: Answer) -> (Option<StoreHold>, Answer) {
        let Answer::Granted { lease, .. } = &answer else { return (None, answer) };
        let (desk, lease) = (Arc::clone(&self.desk), Arc::clone(lease));
        (Some(StoreHold { desk, number, lease, is_shared: self.is_shared, is_in: true }), answer)
    }

    fn give_up(request: &Arc<OuterRequest<Self>>, _: Option<Answer>) {
        request.kind.desk.withdraw(request.number);
    }

    fn release(hold: StoreHold, has_ended: bool) {
        hold.release(has_ended);
    }
}

impl Asker for OuterRequest<InStore> {
    fn answer(&self, answer: Answer) -> bool {
        Self::answer(self, answer).is_none()
    }

    fn lost(&self) {
        self.agent.notify(Notice::Message(Message::Lost(self.number)));
    }

    #[cfg(feature = "audit")]
    fn left(&self, is_answered: bool) -> Option<String> {
        use crate::agents::{Agent, Standing};
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

/// A lock in a store that is held.
#[derive(Clone)]
pub struct StoreHold {
    desk: Arc<Desk>,
    number: u64,
    lease: Arc<Lease>,
    is_shared: bool,
    /// Whether code runs with it: not while others are waited for that are asked for together with it.
    is_in: bool,
}

impl StoreHold {
    /// The request that the lock worker was told of.
    pub(super) fn told(desk: &Arc<Desk>, number: u64) -> Self {
        Self { desk: Arc::clone(desk), number, lease: Lease::endless(), is_shared: true, is_in: false }
    }

    /// Releases it; if `has_ended`, with the mark of who ended inside, where that leaves one. Nothing the second time.
    pub fn release(&self, has_ended: bool) {
        self.desk.release(self.number, has_ended && !self.is_shared && self.is_in);
    }

    /// Its loss, if there was one.
    pub fn lost(&self) -> Option<Loss> {
        self.lease.lost()
    }

    /// Whether code runs with it. Without it, the end of its thread leaves no mark.
    pub fn note_in(&mut self, is_in: bool) {
        self.is_in = is_in;
    }
}
