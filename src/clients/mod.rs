//! Clients of the engine and its primitives: each a way to wait that is more than one request to one primitive.
//!
//! Several locks at once and names have a part in each event loop ([`Clients`]), which is asked what becomes of their waits.

use std::collections::VecDeque;
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
pub mod outer;
mod outer_file;
mod outer_requests;
mod outer_store;
mod requests;

use lock_set::PendingSets;
pub use lock_set::{LockSet, PartWait};
pub use name_views::{NameHold, NameView, NameViews, QueuedName};
pub use names::{Name, Names, is_of_store};
pub use outer_file::{FileHolders, HolderList, InFile, ThreadHold};
use outer_requests::OuterRequests;
pub use outer_store::{InStore, StoreHold};
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
    /// Its requests for locks in stores,
    in_stores: OuterRequests<InStore>,
    /// and what they held until it was lost, until the thread's code knows.
    lost: VecDeque<u64>,
    /// Its requests for locks of files.
    in_files: OuterRequests<InFile>,
    /// Its requests for lists of their holders.
    file_holders: OuterRequests<FileHolders>,
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
    /// The request with this index for a lock in a store,
    InStore(u32),
    /// of a file,
    InFile(u32),
    /// or for the holders of such.
    FileHolders(u32),
}

impl<'e> Clients<'e> {
    /// For one event loop of the engine of these names.
    pub fn new(names: &'e Names<'e>) -> Self {
        Self {
            engine: names.engine,
            sets: PendingSets::default(),
            names: NamedRequests::new(names),
            in_stores: OuterRequests::default(),
            lost: VecDeque::new(),
            in_files: OuterRequests::default(),
            file_holders: OuterRequests::default(),
        }
    }
}

impl Client for Clients<'_> {
    type Of = Whose;

    fn settled(&mut self, here: &Arc<Agent>, of: Whose, hold: Option<Hold>, settled: &Settled) -> bool {
        let is_timed_out = settled.outcome == Ok(Outcome::TimedOut);
        match of {
            Whose::Code => return false,
            Whose::Set => self.sets.settle(self.engine, here, settled),
            Whose::Name => self.names.settle(hold, settled.outcome),
            Whose::InStore(index) => self.in_stores.settle(index, is_timed_out),
            Whose::InFile(index) => self.in_files.settle(index, is_timed_out),
            Whose::FileHolders(index) => self.file_holders.settle(index, is_timed_out),
        }
        !matches!(of, Whose::Name)
    }

    fn left(&mut self, here: &Arc<Agent>, of: Whose, token: u32, hold: Option<Hold>) {
        match of {
            Whose::Code => {}
            Whose::Set => self.sets.cancel(self.engine, here, token),
            Whose::Name => self.names.forget_wait(hold),
            Whose::InStore(index) => self.in_stores.give_up(index),
            Whose::InFile(index) => self.in_files.give_up(index),
            Whose::FileHolders(index) => self.file_holders.give_up(index),
        }
    }

    fn accepted(&mut self, here: &Arc<Agent>) {
        self.sets.accept(self.engine, here);
        self.in_stores.accept();
        self.in_files.accept();
        self.file_holders.accept();
    }

    fn refused(&mut self, here: &Arc<Agent>) {
        self.sets.refuse(self.engine, here);
        self.in_stores.refuse();
        self.in_files.refuse();
        self.file_holders.refuse();
    }

    fn takes_back_granted(&self, of: Whose) -> bool {
        !matches!(of, Whose::Code | Whose::Set)
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Stolen(request) => self.names.note_stolen(request),
            Message::Lost(number) => self.lost.push_back(number),
        }
    }

    fn ended(&mut self, here: &Arc<Agent>) {
        // First what is locked outside of the process: others of the process are let in then.
        self.in_stores.end();
        self.in_files.end();
        self.names.end(here.id);
    }
}
