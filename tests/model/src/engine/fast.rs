//! JavaScript's own steps, one atomic operation at a time. The thread may end between any two of them.

use super::fault::Fault;
use super::order::gathers_ahead;
use super::setting::{Count, Engine};
use super::state::{At, Intent, Slot, Stage, State, Verb, Wrong};
use crate::primitives::{Id, Request, Word};

/// The first step.
pub fn begin(engine: &Engine, state: &mut State, id: Id, word: usize, request: Request, verb: Verb) {
    let releases = verb == Verb::Release;
    if releases {
        state.part_mut(id, word).inside = None;
    }
    let part = state.part_mut(id, word);
    let at = if request == Request::Exclusive {
        return exclusive(engine, state, id, word, verb);
    } else if engine.is_in_slots(request) {
        if !releases {
            return peek(engine, state, id, word, request, verb);
        }
        part.slot.count -= 1;
        Stage::Look
    } else {
        if !engine.has(Fault::NoIntentMark) {
            part.slot.intent = if releases { Intent::Release } else { Intent::Acquire };
        }
        Stage::Change
    };
    state.agent_mut(id).at = At::Fast(word, request, verb, at);
}

/// A reader that counts itself in vain stands in a writer's way, so it looks before it does.
fn peek(engine: &Engine, state: &mut State, id: Id, word: usize, request: Request, verb: Verb) {
    let counts = lets_in(state.words[word]) || engine.has(Fault::CountsBeforeLooking);
    state.agent_mut(id).at =
        if counts { At::Fast(word, request, verb, Stage::Count) } else { At::Calling(word, request, verb) };
}

fn lets_in(seen: Word) -> bool {
    matches!(seen, Word::RwLock(word) if word.lets_slots_in())
}

/// A hold that the word tells by its owner needs no slot: one compare-exchange is all.
fn exclusive(engine: &Engine, state: &mut State, id: Id, word: usize, verb: Verb) {
    let before = state.words[word];
    let after = match verb {
        Verb::Release => before.fast_release(Request::Exclusive, id),
        _ => acquire(engine, before, Request::Exclusive, id),
    };
    let Some(after) = after else {
        state.agent_mut(id).at = At::Calling(word, Request::Exclusive, verb);
        return;
    };
    state.words[word] = after;
    if verb != Verb::Release {
        note_overtaking(engine, state, word);
        entered(state, id, word, Request::Exclusive);
    }
}

fn acquire(engine: &Engine, before: Word, request: Request, id: Id) -> Option<Word> {
    let seen = if engine.has(Fault::FastOvertakes) { before.with_waiters(false) } else { before };
    seen.fast_acquire(request, id).map(|after| after.with_waiters(before.has_waiters()))
}

fn note_overtaking(engine: &Engine, state: &mut State, word: usize) {
    let is_reserved_to_others = match state.words[word] {
        _ if engine.is_strict(word) => state.waiters(word).next().is_some(),
        // A waiter that was woken may come too late, as for a mutex.
        Word::Semaphore(_) => gathers_ahead(state, word, state.queue.len()) && !state.waiters(word).any(|w| w.woken),
        _ => false,
    };
    if is_reserved_to_others {
        state.wrong = Some(Wrong::Overtaken);
    }
}

fn entered(state: &mut State, id: Id, word: usize, request: Request) {
    state.part_mut(id, word).inside = (!state.words[word].is_passed()).then_some(request);
    state.agent_mut(id).at = At::Js;
}

pub fn step(engine: &Engine, state: &mut State, id: Id) {
    let At::Fast(word, request, verb, stage) = state.agent(id).at else { unreachable!("only in a fast path") };
    let releases = verb == Verb::Release;
    let calling = At::Calling(word, request, verb);
    let at = match stage {
        Stage::Change => At::Fast(word, request, verb, change(engine, state, id, word, request, releases)),
        Stage::Settle(waiters) => {
            settle(state, id, word, request, releases);
            if !releases {
                return entered(state, id, word, request);
            }
            if waiters { At::Calling(word, request, Verb::HandOff) } else { At::Js }
        }
        Stage::Undo => {
            state.part_mut(id, word).slot.intent = Intent::None;
            calling
        }
        Stage::Count => {
            state.part_mut(id, word).slot.count += 1;
            At::Fast(word, request, verb, Stage::Look)
        }
        Stage::Look => look(state, id, word, request, verb),
        Stage::BackOff => {
            state.part_mut(id, word).slot.count -= 1;
            let is_try = verb == Verb::Try;
            if is_try && engine.has(Fault::BackOffSilently) { At::Js } else { calling }
        }
    };
    state.agent_mut(id).at = at;
}

fn change(engine: &Engine, state: &mut State, id: Id, word: usize, request: Request, releases: bool) -> Stage {
    let before = state.words[word];
    let waiters = before.has_waiters();
    let after = match (releases, engine.count) {
        (true, Count::WordByAdding) => Some(before.release(request)),
        (true, _) => before.fast_release(request, id),
        (false, _) => acquire(engine, before, request, id),
    };
    let Some(after) = after else { return Stage::Undo };
    state.words[word] = after;
    if !releases {
        note_overtaking(engine, state, word);
    }
    let has = &mut state.part_mut(id, word).has;
    *has = if releases { *has - request.count() } else { *has + request.count() };
    Stage::Settle(releases && waiters)
}

fn settle(state: &mut State, id: Id, word: usize, request: Request, releases: bool) {
    let slot = &mut state.part_mut(id, word).slot;
    let count = if releases { slot.count - request.count() } else { slot.count + request.count() };
    *slot = Slot { count, intent: Intent::None };
}

fn look(state: &mut State, id: Id, word: usize, request: Request, verb: Verb) -> At {
    let seen = state.words[word];
    if verb == Verb::Release {
        return if seen.has_waiters() { At::Calling(word, request, Verb::HandOff) } else { At::Js };
    }
    if lets_in(seen) {
        entered(state, id, word, request);
        At::Js
    } else {
        At::Fast(word, request, verb, Stage::BackOff)
    }
}
