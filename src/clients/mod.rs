//! Clients of the engine and its primitives: each a way to wait that is more than one request to one primitive.
//!
//! Several locks at once and names have a part in each event loop ([`Clients`]), which is asked what becomes of their waits.

use std::sync::Arc;

use crate::agents::{Agent, Message};
use crate::engine::{Client, Engine, EventLoop, Hold, Outcome, Settled};

pub mod condition;
mod futex;
pub mod lent;
mod lock_all;
mod lock_set;
mod name_views;
mod named;
mod names;
mod outer;
mod outer_requests;
mod requests;

use lock_set::PendingSets;
pub use lock_set::{LockSet, PartWait};
pub use name_views::{NameHold, NameView, NameViews, QueuedName};
pub use names::{Name, Names, is_of_store};
use outer_requests::OuterRequests;
pub use outer_requests::{Answered, OuterHold};
use requests::NamedRequests;
pub use requests::RequestHandle;

/// An event loop with its part of all clients.
pub type ClientLoop<'e> = EventLoop<'e, Clients<'e>>;

/// The part of the clients in one event loop.
pub struct Clients<'e> {
    engine: &'e Engine,
    /// Sets of several locks at once.
    sets: PendingSets,
    /// Its requests for names.
    names: NamedRequests<'e>,
    /// Its requests for locks outside.
    outers: OuterRequests,
}

/// Whose a wait is.
#[derive(Clone, Copy, Default)]
pub enum Whose {
    /// The code that waits.
    #[default]
    Code,
    /// A set of locks.
    Set,
    /// A request for a name.
    Name,
    /// The request of this number for a lock outside.
    Outer(u32),
}

impl<'e> Clients<'e> {
    /// For one event loop of the engine of these names.
    pub fn new(names: &'e Names<'e>) -> Self {
        let (sets, outers) = (PendingSets::default(), OuterRequests::default());
        Self { engine: names.engine, sets, names: NamedRequests::new(names), outers }
    }
}

impl Client for Clients<'_> {
    type Of = Whose;

    fn settled(&mut self, here: &Arc<Agent>, of: Whose, hold: Option<Hold>, settled: &Settled) -> bool {
        match of {
            Whose::Code => return false,
            Whose::Set => self.sets.settle(self.engine, here, settled),
            Whose::Name => self.names.settle(hold, settled.outcome),
            Whose::Outer(number) => self.outers.settle(number, settled.outcome == Ok(Outcome::TimedOut)),
        }
        matches!(of, Whose::Set | Whose::Outer(_))
    }

    fn left(&mut self, here: &Arc<Agent>, of: Whose, token: u32, hold: Option<Hold>) {
        match of {
            Whose::Code => {}
            Whose::Set => self.sets.cancel(self.engine, here, token),
            Whose::Name => self.names.forget_wait(hold),
            Whose::Outer(number) => self.outers.give_up(number),
        }
    }

    fn accepted(&mut self, here: &Arc<Agent>) {
        self.sets.accept(self.engine, here);
        self.outers.accept();
    }

    fn refused(&mut self, here: &Arc<Agent>) {
        self.sets.refuse(self.engine, here);
        self.outers.refuse();
    }

    fn takes_back_granted(&self, of: Whose) -> bool {
        matches!(of, Whose::Name | Whose::Outer(_))
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Stolen(request) => self.names.note_stolen(request),
            Message::Lost(number) => self.outers.note_lost(number),
        }
    }

    fn ended(&mut self, here: &Arc<Agent>) {
        // First what is locked outside of the process: others of the process are let in then.
        self.outers.end();
        self.names.end(here.id);
    }
}
