//! The steps that are done under the bucket's lock.
//!
//! A section begins by setting W, which stops all fast paths but additions, decides on what it read, and ends with a plain
//! store, or, on words that fast paths add to, by adding what it decided.

use super::cycle;
use super::fault::Fault;
use super::setting::{Count, Engine};
use super::state::{At, Frozen, Life, State, Verb, Waiter};
use super::step::{Section, Way};
use crate::primitives::{Id, NOBODY, Request, Word};

/// The state, with the bucket locked.
pub struct Locked<'a> {
    pub(super) engine: &'a Engine,
    pub(super) state: &'a mut State,
    pub(super) word: usize,
    /// The word as it will be at the end.
    pub(super) value: Word,
    sum: Option<u8>,
    /// A dead owner was freed: somebody has to look whose turn it is.
    freed: bool,
}

pub fn freeze(engine: &Engine, state: &mut State, section: Section) {
    let word = section.word();
    let read = state.words[word];
    let early = engine.has(Fault::SumsBeforeMark);
    let sum = early.then(|| state.sum_of_slots(word, true));
    state.frozen = Some(Frozen { section, read, sum });
    state.words[word] = read.with_waiters(!early || read.has_waiters());
}

pub fn run(engine: &Engine, state: &mut State, section: Section) {
    let word = section.word();
    let frozen = state.frozen.take();
    let read = frozen.map_or(state.words[word], |frozen| frozen.read);
    let sum = frozen.and_then(|frozen| frozen.sum);
    let mut locked = Locked { engine, state, word, value: read, sum, freed: false };
    locked.freed = locked.free_dead_owner();
    match section {
        Section::Call(id, _) => locked.call(id),
        Section::Woken(id, _) | Section::Back(id, _) => locked.arrive(id, false),
        Section::GoesAway(id, _) => locked.arrive(id, true),
        Section::Claim(id, _) => locked.claim(id),
        Section::Accept(id, _) => locked.accept(id),
        Section::Quit(id, _) => locked.quit(id),
        Section::AsksNext(id, _, request) => locked.ask_next(id, request),
        Section::LeaseOver(_) => {
            locked.reserve_for_nobody();
            locked.hand_off();
        }
        Section::Expire(id, _) => locked.expire(id),
        Section::Leave(id, _) => locked.leave(id),
        Section::Scan(..) => {
            if locked.freed {
                locked.hand_off();
            }
        }
    }
    let anybody_queued = locked.state.waiters(word).next().is_some();
    let barges = matches!(locked.value, Word::Semaphore(_)) && !engine.is_strict(word);
    let is_waiting = if barges { locked.must_look() } else { anybody_queued };
    let decided = locked.value.closed(is_waiting, engine.is_strict(word));
    let adds = engine.count == Count::WordByAdding && !engine.has(Fault::StoresOverAdditions);
    state.words[word] = match (state.words[word], read, decided) {
        (Word::Semaphore(now), Word::Semaphore(read), Word::Semaphore(decided)) if adds => {
            Word::Semaphore(now.added(read, decided))
        }
        _ => decided,
    };
    if let Section::Scan(id, last) = section {
        let ends = last + 1 == engine.words.len() || engine.has(Fault::EndFreesOneWord);
        state.agent_mut(id).life = if ends { Life::Gone } else { Life::Scanning(last + 1) };
    }
}

impl Locked<'_> {
    /// True if there was one.
    fn free_dead_owner(&mut self) -> bool {
        let owner = self.value.owner();
        let is_dead = owner != NOBODY && self.state.agent(owner).is_marked_dead();
        if is_dead {
            self.value = match self.value {
                Word::Once(word) if self.engine.has(Fault::EndOfRunnerIsDone) => Word::Once(word.finished()),
                value => value.ended(),
            };
        }
        is_dead
    }

    /// Returns the word as it would be with this granted.
    pub(super) fn granted(&self, request: Request, id: Id) -> Option<Word> {
        let slots = self.engine.count == Count::Slots;
        let grants = !self.engine.has(Fault::SumForgetsGrants);
        let sum = slots.then(|| self.sum.unwrap_or_else(|| self.state.sum_of_slots(self.word, grants)));
        self.value.grant(request, id, sum)
    }

    /// The thread itself takes it, if nobody is before it.
    fn take(&mut self, id: Id, request: Request) -> bool {
        let Some(value) = self.granted(request, id) else { return false };
        self.value = value;
        self.enter(id, request);
        true
    }

    /// On its own thread: its code runs with it, and its slot says so.
    fn enter(&mut self, id: Id, request: Request) {
        let in_slots = self.engine.is_in_slots(request);
        let is_passed = self.value.is_passed();
        let part = self.state.part_mut(id, self.word);
        part.inside = (!is_passed).then_some(request);
        part.slot.count += request.count();
        part.has += if in_slots { 0 } else { request.count() };
        if matches!(self.state.agent(id).at, At::Calling(..) | At::Parked(_)) {
            self.state.agent_mut(id).at = At::Js;
        }
    }

    pub(super) fn take_out(&mut self, id: Id) -> Option<Waiter> {
        let place = self.state.place(id, self.word)?;
        let part = self.state.part_mut(id, self.word);
        part.claimed = false;
        part.offered = false;
        if self.state.reserved_for[self.word] == id {
            self.reserve_for_nobody();
        }
        Some(self.state.queue.remove(place))
    }

    pub(super) fn reserve_for_nobody(&mut self) {
        let reserved_for = std::mem::replace(&mut self.state.reserved_for[self.word], NOBODY);
        let kept = std::mem::replace(&mut self.state.kept[self.word], Request::Exclusive);
        if reserved_for != NOBODY {
            self.value = self.value.unreserve(kept);
        }
    }

    fn call(&mut self, id: Id) {
        let At::Calling(_, request, verb) = self.state.agent(id).at else { unreachable!("a call of native code") };
        match verb {
            Verb::Release => self.release(id, request),
            Verb::HandOff => {
                self.state.agent_mut(id).at = At::Js;
                self.hand_off();
            }
            Verb::Try => {
                if !(self.may_go_first(request) && self.take(id, request)) {
                    self.state.agent_mut(id).at = At::Js;
                }
                self.hand_off(); // its fast path may have stood in a writer's way
            }
            Verb::Acquire(way) => self.acquire(id, request, way),
            Verb::ChangeMode => self.change_mode(id, request),
            Verb::Finish => self.finish(id),
        }
    }

    /// Whether a newcomer may be served at once: a writer barges, readers queue behind whoever waits; permits are left to
    /// whoever gathers them.
    fn may_go_first(&self, request: Request) -> bool {
        let barges = !self.engine.is_strict(self.word);
        match request {
            Request::Exclusive if barges => true,
            Request::Permits(_) if barges => {
                let gathers = self.is_behind_a_gatherer(self.state.queue.len());
                !gathers || self.engine.has(Fault::NewcomersPassGatherers)
            }
            _ => self.state.waiters(self.word).next().is_none(),
        }
    }

    fn release(&mut self, id: Id, request: Request) {
        self.value = self.value.release(request);
        let part = self.state.part_mut(id, self.word);
        part.slot.count -= request.count();
        part.has -= request.count();
        self.state.agent_mut(id).at = At::Js;
        if !(matches!(self.value, Word::Once(_)) && self.engine.has(Fault::FailureLetsNobodyRun)) {
            self.hand_off();
        }
    }

    fn acquire(&mut self, id: Id, request: Request, way: Way) {
        if self.may_go_first(request) {
            let gathers = self.is_behind_a_gatherer(self.state.queue.len());
            if self.take(id, request) {
                self.note_gatherer(gathers);
                return;
            }
        }
        self.state.queue.push(Waiter {
            word: self.word,
            agent: id,
            way,
            request,
            woken: false,
            aged: false,
            away: false,
        });
        self.state.agent_mut(id).at = if way == Way::Blocked { At::Parked(self.word) } else { At::Js };
        let was_kept = way == Way::Blocked && self.state.reserved_for[self.word] == id;
        if was_kept {
            self.reserve_for_nobody();
        }
        let endless = way == Way::Blocked && !self.engine.quits;
        if endless && !self.engine.has(Fault::NobodySearches) {
            // The cycle is looked for in the words as they are, this one included.
            self.state.words[self.word] = self.value;
            if cycle::is_in_cycle(self.engine, self.state, id) {
                self.take_out(id);
                self.state.agent_mut(id).at = At::Js;
            }
        }
        // A reader may pass those who could have come, and have not.
        let is_strict = self.engine.is_strict(self.word);
        if self.freed
            || was_kept
            || (is_strict || request == Request::Shared) && !self.engine.has(Fault::QueuesWithoutLooking)
        {
            self.hand_off();
        }
    }

    /// A blocked thread tries, between two slices of its sleep or because it was woken.
    fn arrive(&mut self, id: Id, goes_away: bool) {
        let Some(place) = self.state.place(id, self.word) else { return };
        let request = self.state.queue[place].request;
        self.state.queue[place].woken = false;
        self.state.queue[place].away = goes_away;
        let waits_on = self.must_not_pass(place) && !self.engine.has(Fault::SliceEndsBeforeWriters);
        let gets_in = !waits_on && self.granted(request, id).is_some();
        if gets_in {
            self.note_order(self.state.queue[place]);
            self.take_out(id);
            self.take(id, request);
        }
        if gets_in && request != Request::Exclusive && !self.engine.has(Fault::WokenOneIsAlone) || self.freed {
            self.hand_off();
        }
    }

    fn claim(&mut self, id: Id) {
        let part = self.state.part_mut(id, self.word);
        part.offered = false;
        part.claimed = false;
        self.state.agent_mut(id).resumed = false;
        let Some(place) = self.state.place(id, self.word) else { return };
        let request = self.state.queue[place].request;
        let was_kept = self.state.reserved_for[self.word] == id;
        if self.may_claim(id, place, request) && self.granted(request, id).is_some() {
            if !was_kept {
                self.note_order(self.state.queue[place]);
            }
            self.take_out(id);
            self.take(id, request);
            if request != Request::Exclusive {
                self.hand_off();
            }
        } else {
            self.state.part_mut(id, self.word).claimed = self.value.owner() != id;
            if self.freed && !self.engine.has(Fault::ClaimInVainFreesSilently)
                || was_kept && !self.engine.has(Fault::ClaimInVainOpensSilently)
            {
                self.hand_off();
            }
        }
    }

    /// A reservation for it ends when it comes. Beside readers that it is kept for it may read; what is kept for a loop behind it
    /// it takes over, if it can use it.
    fn may_claim(&mut self, id: Id, place: usize, request: Request) -> bool {
        let reserved_for = self.state.reserved_for[self.word];
        if reserved_for == id {
            self.reserve_for_nobody();
            return true;
        }
        if self.must_not_pass(place) && !self.engine.has(Fault::ClaimsBeforeWriters) {
            return false;
        }
        if reserved_for == NOBODY || self.granted(request, id).is_some() {
            return true;
        }
        let is_ahead = self.state.place(reserved_for, self.word).is_none_or(|other| place < other);
        let kept = self.value;
        self.value = kept.unreserve(self.state.kept[self.word]);
        let open = self.value;
        let takes_over = is_ahead && (self.granted(request, id).is_some() || self.engine.has(Fault::TakesOverInVain));
        if takes_over {
            self.reserve_for_nobody();
            self.value = open;
            self.state.part_mut(reserved_for, self.word).claimed = true;
        } else {
            self.value = kept;
        }
        takes_over
    }

    pub(super) fn accept(&mut self, id: Id) {
        let Some((_, request)) = self.state.part_mut(id, self.word).granted.take() else { return };
        self.state.agent_mut(id).resumed = false;
        self.enter(id, request);
    }

    /// Returns the hold that this agent has of the word, if any: it has one at most.
    pub(super) fn unit(&self, id: Id) -> Request {
        if matches!(self.value, Word::RwLock(_)) {
            return Request::Shared;
        }
        let asks = self.engine.kind(id).asks.iter();
        let counted = |request: &Request| *request != Request::Exclusive;
        asks.filter(|ask| ask.0 == self.word).map(|ask| ask.1).find(counted).unwrap_or(Request::Exclusive)
    }
}
