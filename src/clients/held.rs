//! Locks outside of the process that a thread holds, each under the number of the request that it was granted to, and the news of
//! such requests (see `outer.rs`). The numbers of requests for names are below all of these.

use std::sync::Arc;

use crate::desk::{Answer, Desk, Lease, Loss};
use crate::files::reader::Listing;
use crate::files::{FileFailure, FileHold};
use crate::sync::Mutex;

/// A lock that a thread holds outside of the process. The clock may give it back before the thread's code knows of it.
#[derive(Clone)]
pub enum Held {
    /// The lock of a file.
    File(ThreadHold),
    /// A lock in a store; or a request that its lock worker was told of.
    Store(StoreHold),
}

impl Held {
    /// Gives it back, if that was not done: no code has run with it. Whoever finds it gone finds it free. `is_known`: its thread has
    /// learned of it, and reports the end inside that it has found.
    pub fn give_back(&self, is_known: bool) {
        match self {
            Self::File(hold) => hold.give_back(is_known),
            Self::Store(StoreHold { desk, number, .. }) => desk.release(*number, false),
        }
    }

    /// Its thread has ended inside.
    pub(super) fn end(self) {
        match self {
            Self::File(hold) => drop(hold.take().map(FileHold::end)),
            Self::Store(hold) => drop(hold.release(true)),
        }
    }
}

/// The news of a request for its thread.
pub enum Told {
    /// A file is locked, or why not.
    File(Result<(), FileFailure>),
    /// The answer of a store.
    Store(Answer),
    /// The holders of the names of a directory.
    Holders(Result<Listing, FileFailure>),
}

/// A hold of a file.
#[derive(Clone)]
pub struct ThreadHold(Arc<Mutex<Option<FileHold>>>);

impl ThreadHold {
    /// It is held.
    pub(super) fn new(hold: FileHold) -> Self {
        Self(Arc::new(Mutex::new(Some(hold))))
    }

    /// The hold; `None` if it has gone back.
    pub fn take(&self) -> Option<FileHold> {
        self.0.lock().take()
    }

    fn give_back(&self, is_known: bool) {
        let mut held = self.0.lock();
        match held.take() {
            Some(hold) if is_known => drop(hold.release()),
            Some(hold) => hold.give_back(),
            None => {}
        }
    }

    /// Has `act` look at it; `None` if it has gone back.
    pub fn with<T>(&self, act: impl FnOnce(&mut FileHold) -> T) -> Option<T> {
        self.0.lock().as_mut().map(act)
    }
}

/// A hold in a store.
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
    /// It is granted.
    pub(super) fn new(desk: &Arc<Desk>, number: u64, lease: &Arc<Lease>, is_shared: bool, is_in: bool) -> Self {
        Self { desk: Arc::clone(desk), number, lease: Arc::clone(lease), is_shared, is_in }
    }

    /// The request that the lock worker was told of; it leaves no mark, as what is shared.
    pub(super) fn told(desk: &Arc<Desk>, number: u64) -> Self {
        Self::new(desk, number, &Lease::endless(), true, true)
    }

    /// Releases it; if `has_ended`, or it was lost inside, with the mark of that, where that leaves one. Nothing the second time.
    /// Returns its loss, if there was one.
    pub fn release(&self, has_ended: bool) -> Option<Loss> {
        let lost = self.lost();
        let is_marked = (has_ended || lost.is_some()) && !self.is_shared && self.is_in;
        self.desk.release(self.number, is_marked);
        lost
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
