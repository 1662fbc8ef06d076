//! The requests for names of one thread, and what their holds come to.
//!
//! Each has a number in a table of its thread, which tells its hold from all others of the thread. The holds themselves stand in
//! the bucket of the entry, so that each can be shown, stolen, or given back when its thread ends.

use std::collections::VecDeque;
use std::sync::Arc;

use super::names::{Entry, Name, Names};
use crate::agents::{AgentId, WaitId};
use crate::engine::{Arena, Corrupt, Hold, Mode, Outcome};
use crate::memory::Place;
use crate::primitives::named::NAMED;

/// A request for a name, from the moment at which it is made until it is refused, or what it was granted is released.
struct NamedRequest {
    entry: Arc<Entry>,
    generation: u32,
    mode: Mode,
    is_part: bool,
}

impl NamedRequest {
    /// Its hold, or the one that it asks for, under this number.
    fn hold(&self, number: u32) -> Hold {
        Hold::listed(self.mode, number, self.generation, self.is_part)
    }
}

/// The requests of one thread, by number.
pub(super) struct NamedRequests<'e> {
    pub(super) names: &'e Names<'e>,
    all: Arena<NamedRequest>,
    generation: u32,
    /// Requests whose holds were stolen, until the thread's code knows.
    stolen: VecDeque<WaitId>,
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
        let (place, generation) = (entry.place(), self.generation);
        let number = self.all.insert(NamedRequest { entry, generation, mode, is_part });
        RequestHandle { number, place, hold: Hold::listed(mode, number, generation, is_part) }
    }

    /// The request of a number; `None` once it is over.
    pub(super) fn get(&self, number: u32) -> Option<RequestHandle> {
        let request = self.all.get(number)?;
        Some(RequestHandle { number, place: request.entry.place(), hold: request.hold(number) })
    }

    /// The name of a request, and its hold; `None` once it is over.
    pub(super) fn hold(&self, number: u32) -> Option<(Name, Hold)> {
        let request = self.all.get(number)?;
        Some((request.entry.key(), request.hold(number)))
    }

    /// A request is over: nobody is queued for it, and it holds nothing.
    pub(super) fn forget(&mut self, number: u32) {
        if let Some(request) = self.all.try_remove(number) {
            self.names.leave(request.entry);
        }
    }

    /// A wait for a name is over: without the name, its request is too.
    pub(super) fn settle(&mut self, hold: Option<Hold>, outcome: Result<Outcome, Corrupt>) {
        if !matches!(outcome, Ok(Outcome::Granted { .. })) {
            self.forget_wait(hold);
        }
    }

    /// A wait is gone, without what it was for: its request is over.
    pub(super) fn forget_wait(&mut self, hold: Option<Hold>) {
        if let Some(hold) = hold {
            self.forget(hold.of);
        }
    }

    /// The hold of a request was stolen.
    pub(super) fn note_stolen(&mut self, id: WaitId) {
        self.stolen.push_back(id);
    }

    /// The number of the next request whose hold was stolen and whose code does not know it. The request is over.
    pub(super) fn next_stolen(&mut self) -> Option<u32> {
        while let Some(WaitId { token: number, serial }) = self.stolen.pop_front() {
            // Its code may have found out by itself, and the number be another's by now.
            let is_it =
                |request: &RequestHandle| u64::from(request.hold.count) == serial || fault!(StolenNumberIsAnyRequest);
            if self.get(number).filter(is_it).is_some() {
                self.forget(number);
                return Some(number);
            }
        }
        None
    }

    /// The thread of `agent` has ended, and its waits are gone: what its requests still hold goes to others.
    pub(super) fn end(&mut self, agent: AgentId) {
        let requests = std::mem::take(&mut self.all);
        for (number, request) in requests.iter() {
            if let Ok(mut section) = self.names.engine.open(&NAMED, request.entry.place()) {
                section.end_hold(agent, request.hold(number));
                section.finish();
            }
        }
        for request in requests {
            self.names.leave(request.entry);
        }
    }
}
