//! The requests for names of one thread, and what their holds come to.
//!
//! Each has a number in a table of its thread, which tells its hold from all others of the thread. The holds themselves stand in
//! the bucket of the entry, so that each can be shown, stolen, or given back when its thread ends.

use std::collections::VecDeque;
use std::sync::Arc;

use super::arena::Arena;
use super::holders::Holder;
use super::names::{Entry, Name};
use super::primitive::{Corrupt, Hold, Mode, Primitive, Space};
use super::section::Section;
use super::table::Engine;
use crate::agents::{AgentId, Notice, WaitId, is_sparse};
use crate::memory::Place;
use crate::sync;

impl Section<'_> {
    /// Somebody holds it now: of a name this is written down.
    pub(super) fn note_holder(&mut self, agent: AgentId, hold: Hold) {
        if self.primitive.space() == Space::Names {
            let holder = Holder { agent, hold, since: sync::now(), is_in: true };
            self.contents.holders.entry(self.place.address()).or_default().push(holder);
        }
    }

    /// Somebody does not hold it any more. False if it does not hold that name.
    pub(super) fn forget_holder(&mut self, agent: AgentId, hold: Hold) -> bool {
        if self.primitive.space() != Space::Names {
            return true;
        }
        let address = self.place.address();
        let all = &mut self.contents.holders;
        let Some(holders) = all.get_mut(&address) else { return false };
        let is_it = |holder: &Holder| holder.is(agent, hold) || fault!(AnyHoldOfANameWillDo);
        let Some(index) = holders.iter().position(is_it) else { return false };
        holders.swap_remove(index);
        if holders.is_empty() {
            all.remove(&address);
            if is_sparse(all.len(), all.capacity()) {
                all.shrink_to(2 * all.len());
            }
        }
        true
    }

    /// `agent` takes it from all who hold it, and before all who wait. They are told.
    fn steal(&mut self, agent: AgentId, hold: Hold) -> Option<AgentId> {
        let holders = self.contents.holders.remove(&self.place.address()).unwrap_or_default();
        if !holders.is_empty() {
            self.state = self.primitive.ended(self.state);
        }
        self.free_ended_owner();
        for Holder { agent, hold, .. } in holders {
            let id = WaitId { token: hold.of, serial: u64::from(hold.count) };
            if let Some(agent) = self.engine.agents.get(agent).filter(|_| !fault!(ThiefTellsNobody))
                && agent.post(Notice::Stolen(id))
            {
                self.wakes.turn(agent);
            }
        }
        self.state = self.primitive.grant(self.state, hold, agent).expect("nobody holds it any more");
        self.note_holder(agent, hold);
        self.take_report()
    }

    /// Whether the request holds it at this moment.
    pub(crate) fn is_holder(&mut self, agent: AgentId, hold: Hold) -> bool {
        self.contents.holder(self.place.address(), agent, hold).is_some()
    }

    /// The thread of `agent` has ended with this hold: others get in. It is marked if its code was in.
    fn end_hold(&mut self, agent: AgentId, hold: Hold) {
        let holder = self.contents.holder(self.place.address(), agent, hold);
        let was_in = holder.is_some_and(|holder| holder.is_in || fault!(EndBesideANameMarksIt));
        if !self.forget_holder(agent, hold) {
            return;
        }
        if was_in && hold.mode == Mode::Exclusive && !fault!(EndedHolderOfANameIsNotMarked) {
            self.abandoned_by = Some(agent);
            self.state = self.primitive.ended(self.state);
        } else if let Some(state) = self.primitive.release(self.state, hold, agent) {
            self.state = state;
        }
        self.hand_off();
    }
}

/// A request for a name, from the moment at which it is made until it is refused, or what it was granted is released.
struct NamedRequest {
    entry: Arc<Entry>,
    generation: u32,
    mode: Mode,
}

/// The requests of one thread, by number.
#[derive(Default)]
pub(super) struct NamedRequests {
    all: Arena<NamedRequest>,
    generation: u32,
    /// Those whose holds were stolen, until the thread's code is told.
    stolen: VecDeque<WaitId>,
}

/// A request for a name, as its thread has it.
#[derive(Clone, Copy)]
pub struct Ticket {
    /// By which the thread knows it.
    pub number: u32,
    /// Of the name.
    pub place: Place,
    /// What it is for.
    pub hold: Hold,
}

impl NamedRequests {
    /// A request for a name, of which nobody else knows yet.
    pub(super) fn make(
        &mut self,
        engine: &Engine,
        primitive: &'static dyn Primitive,
        name: Name,
        mode: Mode,
    ) -> Ticket {
        let entry = engine.names().enter(name, primitive, || engine.serial());
        let place = entry.place();
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let number = self.all.insert(NamedRequest { entry, generation, mode });
        Ticket { number, place, hold: Hold::named(mode, number, generation) }
    }

    /// The request of a number; `None` once it is over.
    pub(super) fn get(&self, number: u32) -> Option<Ticket> {
        let NamedRequest { entry, generation, mode } = self.all.get(number)?;
        Some(Ticket { number, place: entry.place(), hold: Hold::named(*mode, number, *generation) })
    }

    /// A request is over: nobody is queued for it, and it holds nothing.
    pub(super) fn forget(&mut self, engine: &Engine, number: u32) {
        if let Some(request) = self.all.try_remove(number) {
            engine.names().leave(request.entry);
        }
    }

    /// A wait is over without what it was for; if that was a name, its request is over.
    pub(super) fn forget_wait(&mut self, engine: &Engine, place: Place, hold: Option<Hold>) {
        if let Some(hold) = hold.filter(|_| place.is_name()) {
            self.forget(engine, hold.of);
        }
    }

    /// What a request holds was stolen.
    pub(super) fn note_stolen(&mut self, id: WaitId) {
        self.stolen.push_back(id);
    }

    /// The number of the next request whose hold was stolen and whose code does not know it. The request is over.
    pub(super) fn next_stolen(&mut self, engine: &Engine) -> Option<u32> {
        while let Some(WaitId { token: number, serial }) = self.stolen.pop_front() {
            // Its code may have found out by itself, and the number be another's by now.
            let is_it = |request: &Ticket| u64::from(request.hold.count) == serial || fault!(StolenNumberIsAnyRequest);
            if self.get(number).filter(is_it).is_some() {
                self.forget(engine, number);
                return Some(number);
            }
        }
        None
    }

    /// The thread of `agent` has ended, and its waits are gone: what its requests still hold goes to others.
    pub(super) fn end(&mut self, engine: &Engine, agent: AgentId) {
        let requests = std::mem::take(&mut self.all);
        for (number, NamedRequest { entry, generation, mode }) in requests.iter() {
            if let Ok(mut section) = engine.open(entry.primitive, entry.place()) {
                section.end_hold(agent, Hold::named(*mode, number, *generation));
                section.finish();
            }
        }
        for request in requests {
            engine.names().leave(request.entry);
        }
    }
}

impl Engine {
    /// A request takes the name from all who hold it. Returns the ended agent that it has to report.
    pub(crate) fn steal(
        &self,
        primitive: &'static dyn Primitive,
        ticket: Ticket,
        agent: AgentId,
    ) -> Result<Option<AgentId>, Corrupt> {
        let mut section = self.open(primitive, ticket.place)?;
        let abandoned_by = section.steal(agent, ticket.hold);
        section.finish();
        Ok(abandoned_by)
    }

    /// What a request of `agent` holds does not suffice yet, or, `is_in`, does from now on.
    pub(crate) fn note_in(&self, Ticket { place, hold, .. }: Ticket, agent: AgentId, is_in: bool) {
        let mut contents = self.contents(Space::Names, place.address());
        if let Some(holder) = contents.holder(place.address(), agent, hold) {
            holder.is_in = is_in;
            holder.since = sync::now();
        }
    }
}
