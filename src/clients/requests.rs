//! The requests for names of one thread, and what their holds come to.
//!
//! Each has a number in a table of its thread, which tells its hold from all others of the thread. The holds themselves stand in
//! the bucket of the entry, so that each can be shown, stolen, or given back when its thread ends.

use std::collections::VecDeque;
use std::sync::Arc;

use super::names::{Entry, Name, Names};
use crate::agents::{AgentId, RequestId};
use crate::engine::{Arena, Corrupt, Hold, ListedHold, Mode, Outcome};
use crate::memory::Place;
use crate::primitives::named::NAMED;

/// A request for a name, from the moment at which it is made until it is refused, or what it was granted is released.
struct NamedRequest {
    entry: Arc<Entry>,
    /// Its hold, or the one that it asks for.
    hold: ListedHold,
}

impl NamedRequest {
    fn handle(&self) -> RequestHandle {
        let Self { entry, hold } = self;
        RequestHandle { number: hold.request.number, place: entry.place(), hold: Hold::Listed(*hold) }
    }
}

/// The requests of one thread, by number.
pub(super) struct NamedRequests<'e> {
    pub(super) names: &'e Names<'e>,
    all: Arena<NamedRequest>,
    generation: u32,
    /// Requests whose holds were stolen, until the thread's code knows.
    stolen: VecDeque<RequestId>,
}

/// A request for a name, as its thread has it.
#[derive(Clone, Copy)]
pub struct RequestHandle {
    /// By which the thread knows it.
    pub number: u32,
    /// The place of the name.
    pub place: Place,
    /// The hold that it is for.
    pub hold: Hold,
}

impl<'e> NamedRequests<'e> {
    pub(super) fn new(names: &'e Names<'e>) -> Self {
        Self { names, all: Arena::default(), generation: 0, stolen: VecDeque::new() }
    }

    /// A request for a name, of which nobody else knows yet.
    pub(super) fn make(&mut self, name: Name, mode: Mode, is_part: bool) -> RequestHandle {
        let entry = self.names.enter(name);
        self.generation = self.generation.wrapping_add(1);
        let id = RequestId { number: self.all.vacant_id(), generation: self.generation };
        let request = NamedRequest { entry, hold: ListedHold { request: id, mode, is_part } };
        let handle = request.handle();
        self.all.insert(request);
        handle
    }

    /// The request of a number; `None` once it is over.
    pub(super) fn get(&self, number: u32) -> Option<RequestHandle> {
        self.all.get(number).map(NamedRequest::handle)
    }

    /// The name of a request, and its hold; `None` once it is over.
    pub(super) fn hold(&self, number: u32) -> Option<(Name, Hold)> {
        let request = self.all.get(number)?;
        Some((request.entry.key(), Hold::Listed(request.hold)))
    }

    /// A request is over: nobody is queued for it, and it holds nothing.
    pub(super) fn forget(&mut self, number: u32) {
        if let Some(request) = self.all.try_remove(number) {
            self.names.leave(request.entry);
        }
    }

    /// A wait for a name is over: without the name, its request is too.
    pub(super) fn settle(&mut self, number: u32, outcome: Result<Outcome, Corrupt>) {
        if !matches!(outcome, Ok(Outcome::Granted { .. })) {
            self.forget(number);
        }
    }

    /// The hold of a request was stolen.
    pub(super) fn note_stolen(&mut self, id: RequestId) {
        self.stolen.push_back(id);
    }

    /// The number of the next request whose hold was stolen and whose code does not know it. The request is over.
    pub(super) fn next_stolen(&mut self) -> Option<u32> {
        while let Some(id) = self.stolen.pop_front() {
            // Its code may have found out by itself, and the number be another's by now.
            let is_it = |request: &NamedRequest| request.hold.request == id || fault!(StolenNumberIsAnyRequest);
            if self.all.get(id.number).is_some_and(is_it) {
                self.forget(id.number);
                return Some(id.number);
            }
        }
        None
    }

    /// The thread of `agent` has ended, and its waits are gone: what its requests still hold goes to others.
    pub(super) fn end(&mut self, agent: AgentId) {
        let requests = std::mem::take(&mut self.all);
        for (_, request) in requests.iter() {
            if let Ok(mut section) = self.names.engine.open(&NAMED, request.entry.place()) {
                section.end_hold(agent, Hold::Listed(request.hold));
                section.finish();
            }
        }
        for request in requests {
            self.names.leave(request.entry);
        }
    }
}
