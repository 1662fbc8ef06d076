//! Clients of the engine and its primitives: each a way to wait that is more than one request to one primitive.
//!
//! Several locks at once and names have a part in each event loop ([`Clients`]), which is asked what becomes of their waits.

use std::sync::Arc;

use crate::agents::{Agent, Message};
use crate::engine::{Client, Engine, EventLoop, Outcome, Settled};

pub mod condition;
mod held;
pub mod lent;
mod lock_all;
mod lock_set;
mod name_views;
mod named;
mod names;
pub mod outer;
mod outer_file;
mod outer_requests;
mod outer_store;
mod requests;

pub use held::{Held, StoreHold, ThreadHold, Told};
use lock_set::PendingSets;
pub use lock_set::{LockSet, PartWait};
pub use name_views::{NameHold, NameView, NameViews, QueuedName};
pub use names::{Name, Names, is_of_store};
pub use outer_file::{FileHolders, InFile};
use outer_requests::OuterRequests;
pub use outer_requests::Outside;
pub use outer_store::InStore;
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
    /// Its requests for what is kept outside of the process.
    outer: OuterRequests,
}

/// Whose a wait is.
#[derive(Clone, Copy, Default)]
pub enum Whose {
    /// The code that waits.
    #[default]
    Code,
    /// A set of locks.
    Set,
    /// The request with this number for a name.
    Name(u32),
    /// The request with this index for what is kept outside of the process.
    Outer(u32),
}

impl<'e> Clients<'e> {
    /// For one event loop of the engine of these names.
    pub fn new(names: &'e Names<'e>) -> Self {
        Self {
            engine: names.engine,
            sets: PendingSets::default(),
            names: NamedRequests::new(names),
            outer: OuterRequests::default(),
        }
    }
}

impl Client for Clients<'_> {
    type Of = Whose;

    fn settled(&mut self, here: &Arc<Agent>, of: Whose, settled: &Settled) -> bool {
        let is_timed_out = settled.outcome == Ok(Outcome::TimedOut);
        match of {
            Whose::Code => return false,
            Whose::Set => self.sets.settle(self.engine, here, settled),
            Whose::Name(number) => self.names.settle(number, settled.outcome),
            Whose::Outer(index) => self.outer.settle(index, is_timed_out),
        }
        !matches!(of, Whose::Name(_))
    }

    fn left(&mut self, here: &Arc<Agent>, of: Whose, token: u32) {
        match of {
            Whose::Code => {}
            Whose::Set => self.sets.cancel(self.engine, here, token),
            Whose::Name(number) => self.names.forget(number),
            Whose::Outer(index) => self.outer.give_up(index),
        }
    }

    fn accepted(&mut self, here: &Arc<Agent>) {
        self.sets.accept(self.engine, here);
        self.outer.accept();
    }

    fn refused(&mut self, here: &Arc<Agent>) {
        self.sets.refuse(self.engine, here);
        self.outer.refuse();
    }

    fn takes_back_granted(&self, of: Whose) -> bool {
        !matches!(of, Whose::Code | Whose::Set)
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Stolen(request) => self.names.note_stolen(request),
            Message::Lost(number) => self.outer.lost.push_back(number),
        }
    }

    fn ended(&mut self, here: &Arc<Agent>) {
        // First what is locked outside of the process: others of the process are let in then.
        self.outer.end();
        self.names.end(here.id);
    }
}
