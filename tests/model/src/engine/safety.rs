//! The properties that must hold in every state.

use stateright::Property;

use super::enabled::has_deadline;
use super::setting::{Count, Engine};
use super::state::{Agent, At, Life, State, Waiter, Wrong};
use super::step::Way;
use crate::primitives::{Id, NOBODY, Request, Word};

pub fn properties() -> Vec<Property<Engine>> {
    vec![
        Property::always("a writer is alone", exclusion),
        Property::always("nothing is made, and nothing lost", |e, s| words(e).all(|word| adds_up(e, s, word))),
        Property::always("what is lost was in doubt", |_, s: &State| nothing_lost(s)),
        Property::always("no lost wake-up", |e, s: &State| {
            !is_quiet(s) || words(e).all(|word| somebody_comes(e, s, word))
        }),
        Property::always("nobody overtakes who may not", |_, s: &State| s.wrong != Some(Wrong::Overtaken)),
        Property::always("no silent deadlock", |e, s: &State| e.quits || !is_deadlocked(e, s)),
        Property::always("what is done was finished, and nobody runs it", |e, s: &State| {
            words(e).filter(|word| s.words[*word].is_passed()).all(|word| {
                let runs = |a: &Agent| a.is_running() && a.parts[word].inside.is_some();
                s.finished && !s.agents.iter().any(runs)
            })
        }),
        Property::always("nothing is left to the dead", |e, s: &State| words(e).all(|word| no_remains(s, word))),
    ]
}

fn words(engine: &Engine) -> std::ops::Range<usize> {
    0..engine.words.len()
}

fn exclusion(engine: &Engine, s: &State) -> bool {
    words(engine).all(|word| {
        let inside = s.agents.iter().filter(|a| a.is_running()).filter_map(|a| a.parts[word].inside);
        let (writers, all) = inside.fold((0, 0), |(w, n), r| (w + u8::from(r == Request::Exclusive), n + 1));
        let alone = writers == 0 || all == 1;
        let within = match engine.words[word].0 {
            Word::Semaphore(start) => {
                let inside = s.agents.iter().filter(|a| a.is_running()).filter_map(|a| a.parts[word].inside);
                inside.map(Request::count).sum::<u8>() <= start.available
            }
            _ => true,
        };
        alone && within
    })
}

/// Whether the word says what its threads have taken.
fn adds_up(engine: &Engine, s: &State, word: usize) -> bool {
    if s.frozen.is_some_and(|frozen| frozen.section.word() == word) {
        return true;
    }
    let granted = |a: &Agent| a.parts[word].granted.map_or(0, |(_, request)| request.count());
    let taken: u8 = s.agents.iter().map(|a| a.parts[word].has + granted(a)).sum();
    let reserved = if s.reserved_for[word] == NOBODY { 0 } else { s.kept[word].count() };
    match (s.words[word], engine.words[word].0) {
        (Word::Semaphore(now), Word::Semaphore(start)) => now.available + taken + reserved == start.available,
        (Word::RwLock(now), _) if engine.count != Count::Slots => now.readers == taken,
        _ => true,
    }
}

fn nothing_lost(s: &State) -> bool {
    s.agents.iter().filter(|a| a.life == Life::Gone).all(|a| a.parts.iter().all(|part| part.has == 0 || part.in_doubt))
}

/// Whether nobody is in the middle of anything: whatever was to be looked at has been.
fn is_quiet(s: &State) -> bool {
    let is_idle = |a: &Agent| match a.life {
        Life::Running => matches!(a.at, At::Js | At::Parked(_)),
        Life::Gone => true,
        _ => false,
    };
    s.frozen.is_none() && s.agents.iter().all(is_idle)
}

/// Whether everybody who could be served comes for it, or is granted it; or a lease is to end. A loop that is stalled is not
/// counted on.
fn somebody_comes(engine: &Engine, s: &State, word: usize) -> bool {
    if s.reserved_for[word] != NOBODY {
        return true;
    }
    let sum = (engine.count == Count::Slots).then(|| s.sum_of_slots(word, true));
    let owner = s.words[word].owner();
    let dead_owner = owner != NOBODY && s.agent(owner).is_marked_dead();
    let value = if dead_owner { s.words[word].ended() } else { s.words[word] };
    let mut is_first = true;
    for waiter in s.waiters(word) {
        let Waiter { agent, way, request, woken, .. } = *waiter;
        let part = s.part(agent, word);
        let is_asked_first = request.gathers() && !part.claimed;
        let passed = !engine.is_strict(word) && way == Way::Async && (part.offered || is_asked_first);
        match value.grant(request, agent, sum) {
            // A loop that was offered it and does not come holds up nobody.
            None if passed => continue,
            None => return true,
            Some(_) if waiter.away => continue,
            Some(_) => {}
        }
        let comes = match way {
            Way::Blocked => woken,
            Way::Async => s.part(agent, word).offered,
        };
        let strict = engine.is_strict(word) && is_first;
        if strict || !comes && (way == Way::Blocked || s.agent(agent).turns()) {
            let somebody_woken = s.waiters(word).any(|w| w.woken);
            return !strict && somebody_woken;
        }
        if way == Way::Blocked && request != Request::Shared {
            return true; // it takes what there is, or sees who does, and looks who else may
        }
        is_first = false;
    }
    true
}

/// Blocked threads that wait for nobody but each other: what is left once all are let in that somebody who goes on could let in.
/// (The search in `cycle` is not asked.)
fn is_deadlocked(engine: &Engine, s: &State) -> bool {
    let is_blocked = |id: &Id| matches!(s.agent(*id).at, At::Parked(_)) && s.agent(*id).is_running();
    let mut stuck: Vec<Id> = if is_quiet(s) { s.ids().filter(is_blocked).collect() } else { Vec::new() };
    loop {
        let left: Vec<Id> = stuck.iter().copied().filter(|id| waits_for_one_of(engine, s, *id, &stuck)).collect();
        if left.len() == stuck.len() {
            return !stuck.is_empty();
        }
        stuck = left;
    }
}

fn waits_for_one_of(engine: &Engine, s: &State, id: Id, stuck: &[Id]) -> bool {
    let At::Parked(word) = s.agent(id).at else { return false };
    let Some(place) = s.place(id, word) else { return false };
    if matches!(s.words[word], Word::Semaphore(_)) {
        return false;
    }
    let request = s.queue[place].request;
    let owner = s.words[word].owner();
    // A wait that the clock ends shuts nobody out.
    let is_shut_out = stuck.contains(&owner) && !has_deadline(engine, s, owner, word);
    let lasts = |w: &&Waiter| w.word == word && stuck.contains(&w.agent) && !has_deadline(engine, s, w.agent, word);
    let is_read = stuck.iter().any(|other| s.part(*other, word).inside == Some(Request::Shared));
    let is_behind = s.queue[..place].iter().filter(lasts).any(|w| {
        engine.is_strict(word) || w.way == Way::Blocked && w.request == Request::Exclusive && request == Request::Shared
    });
    is_shut_out || request == Request::Exclusive && is_read || is_behind
}

fn no_remains(s: &State, word: usize) -> bool {
    s.ids().all(|id| {
        let agent = s.agent(id);
        let gone = agent.life == Life::Gone;
        let remains = s.place(id, word).is_some() || agent.parts[word].granted.is_some();
        let stuck = s.words[word].owner() == id && s.waiters(word).next().is_some() && s.frozen.is_none();
        !(gone && (remains || stuck))
    })
}
