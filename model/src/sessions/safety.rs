//! What must hold in every state.

use stateright::Property;

use super::protocol::Sessions;
use super::state::{At, Id, Phase, Request, State};

/// Its code runs, and it has no reason to think that the lock is not its own, nor has the server taken it.
fn believes(s: &State, request: &Request) -> bool {
    let is_sure = |link: u8| {
        let connection = &s.links[usize::from(link)];
        s.now < connection.until && !connection.taken
    };
    request.at == At::In && !request.told && request.link.is_none_or(is_sure)
}

fn is_quiet(s: &State) -> bool {
    s.requests.iter().all(|request| matches!(request.at, At::Out | At::Done))
        && s.links.iter().all(|link| link.phase == Phase::Idle && link.queue.is_empty())
}

pub fn properties() -> Vec<Property<Sessions>> {
    vec![
        Property::always("who has not been told of a loss is alone", |sessions: &Sessions, s: &State| {
            let of_name = |id: &usize, name: u8| sessions.requests[*id].1 == name && believes(s, &s.requests[*id]);
            let alone = |name: u8| (0..s.requests.len()).filter(|id| of_name(id, name)).count() <= 1;
            (0..s.names.len() as u8).all(alone)
        }),
        Property::always("a register that refuses smaller fences sees no overlap", |_, s: &State| !s.overlap),
        Property::always("a register refuses nobody who holds", |_, s: &State| !s.refused),
        Property::always("who is in by a session that lives has its lock", |sessions: &Sessions, s: &State| {
            (0..s.requests.len() as Id).all(|id| {
                let request = &s.requests[usize::from(id)];
                let Some(link) = request.link.filter(|_| request.at == At::In) else { return true };
                let name = usize::from(sessions.requests[usize::from(id)].1);
                !s.links[usize::from(link)].lives || s.names[name].holder == Some(link)
            })
        }),
        Property::always("once all is heard, nobody has anything", |_, s: &State| {
            let stays = |link: u8| {
                let connection = &s.links[usize::from(link)];
                connection.is_open && connection.cut.is_none()
            };
            !is_quiet(s) || !s.names.iter().any(|name| name.holder.is_some_and(stays) || !name.queue.is_empty())
        }),
        Property::always("a session that its client is done with is asked nothing", |_, s: &State| {
            s.links.iter().all(|link| link.is_open || link.queue.is_empty())
        }),
    ]
}
