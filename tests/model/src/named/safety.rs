//! The properties that must hold in every state.

use stateright::Property;

use super::setting::Named;
use super::state::{Ask, At, State};
use crate::primitives::Id;

pub fn properties() -> Vec<Property<Named>> {
    vec![
        Property::always("who holds the name alone is alone", |_, s: &State| {
            is_exclusive(s.entries.iter().flat_map(|e| &e.holders))
        }),
        Property::always("whose code runs with it, and was not robbed, is alone", |named: &Named, s: &State| {
            let inside = s.ids().filter(|id| s.agent(*id).at == At::Inside && !was_robbed(s, *id));
            let asks: Vec<Ask> =
                inside.map(|agent| Ask { agent, generation: 0, shares: named.is_shared(agent) }).collect();
            is_exclusive(asks.iter())
        }),
        Property::always("nobody overtakes", |_, s: &State| !s.overtaken),
        Property::always("no lost wake-up", |_, s: &State| {
            s.entries.iter().all(|entry| entry.queue.first().is_none_or(|first| !entry.lets_in(*first)))
        }),
        Property::always("a hold has somebody who can release it", |_, s: &State| {
            s.entries.iter().flat_map(|entry| &entry.holders).all(|holder| has_owner(s, holder))
        }),
        Property::always("whoever was robbed hears of it", |_, s: &State| {
            s.ids().filter(|id| s.agent(*id).at == At::Inside).all(|id| s.holds(id) || was_robbed(s, id))
        }),
        Property::always("a mark stays", |_, s: &State| {
            !s.has_been_left || s.known.is_some_and(|known| s.entries[known].marked)
        }),
        Property::always("a name is forgotten when nobody needs it", |_, s: &State| {
            s.known.is_none_or(|known| s.entries[known].references > 0 || s.entries[known].marked)
        }),
    ]
}

fn is_exclusive<'a>(holders: impl Iterator<Item = &'a Ask>) -> bool {
    let (all, alone) = holders.fold((0, 0), |(all, alone), ask| (all + 1, alone + u8::from(!ask.shares)));
    alone == 0 || all == 1
}

/// Its request has lost the name, and the word of that is on its way.
fn was_robbed(s: &State, id: Id) -> bool {
    s.agent(id).inbox.contains(&s.agent(id).generation)
}

fn has_owner(s: &State, holder: &Ask) -> bool {
    let agent = s.agent(holder.agent);
    agent.generation == holder.generation && matches!(agent.at, At::Waiting | At::Inside | At::Dying)
}
