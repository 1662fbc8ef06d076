//! Locks by name, as one thread asks for them: each request has a number, by which the thread's JS knows it.

use std::sync::Arc;

use super::held::Held;
use super::names::{Name, Names};
use super::requests::RequestHandle;
use super::{ClientLoop, Whose};
use crate::agents::{AgentId, Message, Notice};
use crate::engine::{
    Change, Corrupt, Expiry, Hold, Holder, Limit, Mode, Outcome, Primitive, Reply, ReplyError, Request, TakesBack,
};
use crate::primitives::named::{self, NAMED};

/// The holds of requests that were asked for together with one that waits.
struct HeldBeside {
    names: &'static Names<'static>,
    agent: AgentId,
    /// Each with the ended agent that is still to be reported.
    holds: Vec<(Name, Hold, Option<AgentId>)>,
    outer: Vec<Held>,
}

impl Expiry for HeldBeside {
    fn expired(&self, engine: &dyn TakesBack) {
        self.outer.iter().rev().for_each(|held| held.give_back(true));
        for (name, hold, report) in self.holds.iter().rev() {
            // The entry stays while it is looked at; what its code has given back by itself changes nothing.
            self.names.look(name, |entry| engine.take_back(self.agent, &NAMED, entry.place(), *hold, *report));
        }
    }

    fn gives_back(&self, address: usize) -> bool {
        let is_it = |name| self.names.look(name, |entry| entry.place().address() == address);
        self.holds.iter().any(|(name, ..)| is_it(name) == Some(true))
    }
}

impl ClientLoop<'static> {
    /// The holds of these requests for names, each with the ended agent that is still to be reported, and of those outside of the
    /// process: they go back with a wait for what was asked for together with them, if the clock ends that.
    pub fn held_by(&self, requests: impl Iterator<Item = (u32, Option<AgentId>)>, outer: &[i64]) -> Arc<dyn Expiry> {
        let (names, agent) = (self.clients.names.names, self.agent().id);
        let hold = |(number, report)| self.clients.names.hold(number).map(|(name, hold)| (name, hold, report));
        let outer =
            outer.iter().filter_map(|number| self.clients.outer.holds.get(&(*number as u64)).cloned()).collect();
        Arc::new(HeldBeside { names, agent, holds: requests.filter_map(hold).collect(), outer })
    }
}

impl ClientLoop<'_> {
    /// Makes a request for a name, of which nobody else knows yet. `is_part`: until [`ClientLoop::note_in`] says so, its code is not
    /// in with the name alone.
    pub fn make_request(&mut self, name: Name, mode: Mode, is_part: bool) -> RequestHandle {
        self.clients.names.make(name, mode, is_part)
    }

    /// The request of a number; `None` once it is over.
    pub fn request(&self, number: u32) -> Option<RequestHandle> {
        self.clients.names.get(number)
    }

    /// A request is over: nobody is queued for it, and it holds nothing.
    pub fn forget_request(&mut self, request: RequestHandle) {
        self.clients.names.forget(request.number);
    }

    /// The number of the next request whose hold was stolen and whose code does not know it. The request is over.
    pub fn next_stolen(&mut self) -> Option<u32> {
        self.clients.names.next_stolen()
    }

    /// Asks for a name, as [`ClientLoop::make_request`] does. Later it is known by its number; one that is refused at once is over.
    pub fn request_name(
        &mut self,
        name: Name,
        mode: Mode,
        is_part: bool,
        limit: Limit,
    ) -> Result<(RequestHandle, Reply), ReplyError> {
        let request = self.make_request(name, mode, is_part);
        let reply = self.wait(&NAMED, request.place, Request::Hold(request.hold), limit);
        match reply {
            Ok(Reply::Pending { token, .. }) => self.belongs_to(token, Whose::Name(request.number)),
            Ok(Reply::Now(Outcome::Granted { .. })) => {}
            Ok(Reply::Now(_)) | Err(_) => self.forget_request(request),
        }
        Ok((request, reply?))
    }

    /// Takes a name from all who hold it. With the ended agent that is to be reported.
    pub fn steal_name(&mut self, name: Name) -> Result<(RequestHandle, Option<AgentId>), Corrupt> {
        let request = self.make_request(name, Mode::Exclusive, false);
        let mut section = self.engine().open(&NAMED, request.place)?;
        for Holder { agent, hold, .. } in section.evict() {
            if !fault!(ThiefTellsNobody) {
                section.tell(agent, Notice::Message(Message::Stolen(hold.request)));
            }
        }
        let abandoned_by = section.let_in(self.agent().id, request.hold);
        section.finish();
        Ok((request, abandoned_by))
    }

    /// The hold of a request does not suffice yet, or, `is_in`, does from now on. False if it was stolen.
    pub fn note_in(&self, request: RequestHandle, is_in: bool) -> bool {
        self.engine().note_in(request.place, self.agent().id, request.hold, is_in)
    }

    /// Releases what a request holds; it is over. False if it holds nothing any more.
    pub fn release_name(&mut self, number: u32) -> Result<bool, Corrupt> {
        let Some(request) = self.request(number) else { return Ok(false) };
        let is_released = self.engine().release(self.agent(), &NAMED, request.place, request.hold)?;
        self.forget_request(request);
        Ok(is_released)
    }

    /// As [`ClientLoop::release_name`], but the number stays taken: whoever has it may release it again, to no effect.
    pub fn let_go_of_name(&self, number: u32) -> Result<bool, Corrupt> {
        let Some(request) = self.request(number) else { return Ok(false) };
        self.engine().release(self.agent(), &NAMED, request.place, request.hold)
    }

    /// Takes back what a request was granted, of which its code will not learn; `abandoned_by` is what it would have reported.
    pub fn give_back_name(&mut self, number: u32, abandoned_by: Option<AgentId>) {
        let Some(request) = self.request(number) else { return };
        self.engine().give_back(self.agent(), &NAMED, request.place, request.hold, abandoned_by);
        self.forget_request(request);
    }

    /// Takes the mark off a name. False if the request does not hold it alone.
    pub fn mark_name_consistent(&self, number: u32) -> Result<bool, Corrupt> {
        let Some(RequestHandle { place, hold, .. }) = self.request(number) else { return Ok(false) };
        let mut section = self.engine().open(&NAMED, place)?;
        let is_marked = hold.is_exclusive()
            && section.is_holder(self.agent().id, hold)
            && section.change(Change::MarkConsistent, self.agent().id);
        section.finish();
        Ok(is_marked)
    }

    /// Whether the name of a request is marked.
    pub fn is_name_abandoned(&self, number: u32) -> bool {
        self.request(number).is_some_and(|request| named::is_abandoned(NAMED.read(request.place)))
    }
}
