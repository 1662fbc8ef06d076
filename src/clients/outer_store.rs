//! Requests for locks in stores, which a lock worker answers from its desk (see `outer.rs`).

use std::sync::Arc;

use super::held::{Held, StoreHold, Told};
use super::outer_requests::{OuterRequest, Outside};
use crate::agents::{Message, Notice};
use crate::desk::{Answer, Asker, Desk, Question};

/// A lock in a store.
pub struct InStore {
    desk: Arc<Desk>,
    is_shared: bool,
    is_part: bool,
}

impl InStore {
    /// At this desk. `is_part`: until [`StoreHold::note_in`] says so, no code is in with it alone.
    pub fn at(desk: &Arc<Desk>, question: &Question, is_part: bool) -> Self {
        Self { desk: Arc::clone(desk), is_shared: question.is_shared, is_part }
    }
}

impl Outside for InStore {
    type Question = Question;
    type Answer = Answer;

    fn ask(request: &Arc<OuterRequest<Self>>, question: Question) {
        request.kind.desk.ask(request.number, question, Arc::clone(request) as _);
    }

    fn is_granted(answer: &Answer) -> bool {
        matches!(answer, Answer::Granted { .. })
    }

    fn take_in(&self, number: u64, answer: Answer) -> (Option<Held>, Told) {
        let Answer::Granted { lease, .. } = &answer else { return (None, Told::Store(answer)) };
        let hold = StoreHold::new(&self.desk, number, lease, self.is_shared, !self.is_part);
        (Some(Held::Store(hold)), Told::Store(answer))
    }

    fn give_up(request: &Arc<OuterRequest<Self>>, _: Option<Answer>) {
        request.kind.desk.withdraw(request.number);
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
