//! The steps that are done under the bucket's lock.
//!
//! A section begins with `fetch_or(W)`: neither fast path can change the word from there on, so the section decides on
//! what it read. It ends with a plain store of the word by [`Locked::close`]'s rule.

mod claim;
mod hand_off;
mod leave;
mod park;
mod verb;

use crate::barging::agent::{At, Hold, Id, NOBODY, Thread};
use crate::barging::fault::Fault;
use crate::barging::queue::Way;
use crate::barging::setting::Barging;
use crate::barging::state::{State, Wrong};
use crate::barging::step::Section;
use crate::primitives::Mutex;

/// The state, with the bucket locked.
pub struct Locked<'a> {
    protocol: &'a Barging,
    state: &'a mut State,
    /// The thread that runs the section, and will deliver the offers made in it.
    thread: Thread,
}

impl<'a> Locked<'a> {
    pub fn run(protocol: &'a Barging, state: &'a mut State, section: Section) {
        if let Some(frozen) = state.bucket.take() {
            state.word = frozen.word; // whatever others did to it since is overwritten
        }
        let thread = section.thread();
        let mut locked = Locked { protocol, state, thread };
        match section {
            Section::Verb(id) => locked.verb(id),
            Section::Woken(id) => locked.woken(id),
            Section::Deadline(id) => locked.deadline(id),
            Section::SliceOver(id) => locked.slice_over(id),
            Section::Back(id) => locked.back(id),
            Section::Claim(id) => locked.claim(id, false),
            Section::ClaimOrPark(id) => locked.claim(id, true),
            Section::ParkOver(id) => locked.park_over(id),
            Section::Abort(id, way) => locked.leave(id, way),
            Section::MarkConsistent(_) => locked.mark_consistent(),
            Section::Leave(id) => locked.die_out(id),
            Section::Scan(id) => locked.scan(id),
            Section::LeaseOver => locked.lease_over(),
        }
        locked.close(section);
    }

    /// The closing rule. W says that an unlock must look at the queue; on a plainly free word it stays clear, since
    /// somebody comes already. An abandonment that nobody was warned of outlives the queue in the word itself: a dead
    /// owner's id is the marker that every slow path understands.
    fn close(&mut self, section: Section) {
        let State { word, queue, abandoned_by, .. } = &mut *self.state;
        if queue.is_empty() && *abandoned_by != NOBODY {
            let dead = std::mem::replace(abandoned_by, NOBODY);
            if !self.protocol.has(Fault::AbandonmentDropped) {
                *word = word.left_to(dead);
            }
        }
        *word = word.closed(!queue.is_empty());
        let lost = matches!(section, Section::Woken(id) if queue.find(id, Way::Blocked).is_some());
        if lost && self.protocol.has(Fault::LoserForgetsW) {
            word.waiters = false;
        }
    }

    /// A dead owner's word is free, and abandoned. Returns whether it was such a word.
    fn free_dead_owner(&mut self) -> bool {
        let dead = self.state.owner_is_marked_dead();
        if dead {
            self.abandon(self.state.word.owner);
        }
        dead
    }

    /// The word is free since its holder died inside; whoever takes it next has to say so.
    fn abandon(&mut self, dead: Id) {
        self.state.word = self.state.word.ended();
        self.remember(dead);
    }

    fn remember(&mut self, dead: Id) {
        if dead != NOBODY && self.state.abandoned_by != NOBODY {
            self.state.ghost.wrong = Some(Wrong::WarningForgotten);
        }
        self.state.abandoned_by = dead;
    }

    /// The free word goes to this agent, whose code does not know yet, and with it the duty to warn.
    fn grant_to(&mut self, id: Id) {
        self.state.word = self.state.word.grant(id).unwrap_or(Mutex { owner: id, ..self.state.word });
        let dead = std::mem::replace(&mut self.state.abandoned_by, NOBODY);
        let agent = self.state.agent_mut(id);
        agent.hold = Hold::Granted;
        agent.unreported = dead;
    }

    /// A thread takes the free word for itself, and is about to return to JavaScript with it.
    fn take(&mut self, id: Id) {
        self.grant_to(id);
        self.state.agent_mut(id).at = At::Returning;
    }

    fn reserve_for_nobody(&mut self) {
        self.state.word = self.state.word.reserve(false);
        self.state.reserved_for = NOBODY;
    }

    fn mark_consistent(&mut self) {
        self.state.word = self.state.word.consistent();
        self.state.ghost.dirty = false;
    }
}
