//! The agents that are sure to go on. What is not due here (calls, deadlines, aborts, ends, the end of a stall) may never come.

use super::enabled::{lease_may_end, may_expire, next_to_age};
use super::setting::Engine;
use super::state::{At, Life, State};
use super::step::{Section, Step, Way};
use crate::check::{Class, Classes};
use crate::primitives::Id;

fn native(id: Id) -> Class {
    Class(id)
}

fn turn(id: Id) -> Class {
    Class(8 + id)
}

fn cleanup(id: Id) -> Class {
    Class(16 + id)
}

fn release(id: Id, word: usize) -> Class {
    Class(24 + 8 * word as u8 + id)
}

fn lease(word: usize) -> Class {
    Class(48 + word as u8)
}

const AGE: Class = Class(56);

fn deadline(id: Id) -> Class {
    Class(56 + id)
}

pub fn class(step: Step) -> Option<Class> {
    Some(match step {
        Step::Fast(id) => native(id),
        Step::Release(id, word) => release(id, word),
        Step::Mark(id) => cleanup(id),
        Step::Age => AGE,
        Step::Run(section) => match section {
            Section::Call(id, _) | Section::Woken(id, _) => native(id),
            Section::Claim(id, _) | Section::Accept(id, _) => turn(id),
            Section::Leave(id, _) | Section::Scan(id, _) => cleanup(id),
            Section::LeaseOver(word) => lease(word),
            Section::Expire(id, _) => deadline(id),
            Section::GoesAway(..) | Section::Back(..) | Section::Quit(..) | Section::AsksNext(..) => return None,
        },
        _ => return None,
    })
}

/// The bucket's lock is fair, so waiting for it does not count.
pub fn due(engine: &Engine, state: &State) -> Classes {
    let mut due = Classes::default();
    for id in state.ids() {
        let agent = state.agent(id);
        match agent.life {
            Life::Gone => continue,
            Life::Running => {}
            _ => {
                due.add_if(true, cleanup(id));
                continue;
            }
        }
        let blocked_grant = |word: usize| agent.parts[word].granted.is_some_and(|(way, _)| way == Way::Blocked);
        let (woken, granted) = match agent.at {
            At::Parked(word) => {
                let woken = state.place(id, word).map(|place| state.queue[place]).is_some_and(|w| w.woken && !w.away);
                (woken, blocked_grant(word))
            }
            _ => (false, false),
        };
        due.add_if(matches!(agent.at, At::Fast(..) | At::Calling(..)) || woken, native(id));
        let comes = agent.parts.iter().any(|part| part.offered || part.granted.is_some());
        due.add_if(granted || comes && agent.turns(), turn(id));
        for word in 0..engine.words.len() {
            due.add_if(agent.parts[word].inside.is_some(), release(id, word));
        }
    }
    for word in 0..engine.words.len() {
        due.add_if(lease_may_end(engine, state, word), lease(word));
        state.ids().for_each(|id| due.add_if(may_expire(engine, state, id, word), deadline(id)));
    }
    due.add_if(next_to_age(engine, state).is_some(), AGE);
    due
}
