//! The steps as a state machine for stateright.

use stateright::{Model, Property};

use super::fault::Fault;
use super::safety;
use super::setting::{Named, Role};
use super::state::{Agent, Ask, At, Entry, State};
use crate::check::Protocol;
use crate::primitives::Id;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// It looks the name up, and keeps its entry.
    Find(Id),
    /// It asks: gets in, is queued, or takes the name from its holders.
    Ask(Id),
    /// It learns of its grant.
    Learn(Id),
    /// A deadline or an abort.
    Quit(Id),
    Release(Id),
    /// It hears of a theft.
    Hear(Id),
    /// It gives up its entry, which is forgotten if nobody needs it.
    Forget(Id),
    End(Id),
    /// The ending thread's hold or wait is taken out.
    Cleanup(Id),
}

impl Named {
    fn ask_of(&self, s: &State, id: Id) -> Ask {
        Ask { agent: id, generation: s.agent(id).generation, shares: self.is_shared(id) }
    }

    fn find(&self, s: &mut State, id: Id) {
        let entry = s.known.unwrap_or_else(|| {
            // There are as many as agents, each of which keeps one at most.
            let free = s.entries.iter().position(|entry| entry.references == 0).unwrap_or_default();
            s.entries[free] = Entry::default();
            free
        });
        s.known = Some(entry);
        s.entries[entry].references += 1;
        let agent = s.agent_mut(id);
        *agent = Agent { at: At::Found, entry, generation: agent.generation + 1, ..agent.clone() };
    }

    fn ask(&self, s: &mut State, id: Id) {
        let ask = self.ask_of(s, id);
        let place = s.agent(id).entry;
        let steals = self.role(id) == Role::Steals;
        if steals && !self.has(Fault::ThiefJoins) {
            self.rob(s, place);
        }
        let entry = &mut s.entries[place];
        let goes_in = steals || entry.lets_in(ask) && (entry.queue.is_empty() || self.has(Fault::Overtakes));
        if goes_in {
            s.overtaken |= !steals && !entry.queue.is_empty();
            entry.holders.push(ask);
        } else {
            entry.queue.push(ask);
        }
        s.agent_mut(id).at = if goes_in { At::Inside } else { At::Waiting };
    }

    fn rob(&self, s: &mut State, place: usize) {
        let holders = std::mem::take(&mut s.entries[place].holders);
        if !holders.is_empty() {
            s.entries[place].marked = true;
            s.has_been_left = true;
        }
        for Ask { agent, generation, .. } in holders {
            if !matches!(s.agent(agent).at, At::Dead | At::Gone) && !self.has(Fault::ThiefTellsNobody) {
                s.agent_mut(agent).inbox.push(generation);
            }
        }
    }

    /// Takes out the hold or the wait of this request; returns whether it held.
    fn take_out(&self, s: &mut State, id: Id, any: bool) -> bool {
        let ask = self.ask_of(s, id);
        let entry = &mut s.entries[s.agents[id as usize - 1].entry];
        entry.queue.retain(|other| *other != ask);
        let held = entry.holders.iter().position(|other| *other == ask || any);
        if let Some(place) = held {
            entry.holders.remove(place);
        }
        held.is_some()
    }

    fn hand_off(&self, s: &mut State, place: usize) {
        let entry = &mut s.entries[place];
        while let Some(first) = entry.queue.first().copied()
            && entry.lets_in(first)
        {
            entry.queue.remove(0);
            entry.holders.push(first);
        }
    }

    fn release(&self, s: &mut State, id: Id) {
        let place = s.agent(id).entry;
        if self.take_out(s, id, self.has(Fault::ReleasesAnyHold)) {
            self.hand_off(s, place);
        }
        s.agent_mut(id).at = At::Over;
    }

    /// Granted already, it goes back: the code has not begun.
    fn quit(&self, s: &mut State, id: Id) {
        let place = s.agent(id).entry;
        if !(self.has(Fault::QuitAfterGrant) && s.holds(id)) {
            self.take_out(s, id, false);
            self.hand_off(s, place);
        }
        s.agent_mut(id).at = At::Over;
    }

    fn hear(&self, s: &mut State, id: Id) {
        let agent = s.agent_mut(id);
        let generation = agent.inbox.remove(0);
        let is_this = agent.generation == generation || self.has(Fault::StolenMeansAnyRequest);
        if is_this && matches!(agent.at, At::Waiting | At::Inside) {
            agent.at = At::Over;
        }
    }

    fn forget(&self, s: &mut State, id: Id) {
        let place = s.agent(id).entry;
        let entry = &mut s.entries[place];
        entry.references -= 1;
        let is_unused = entry.holders.is_empty() && entry.queue.is_empty();
        let nobody_needs_it = entry.references == 0 || is_unused && self.has(Fault::ForgetsWhatIsFound);
        let has_to_stay = entry.marked && !self.has(Fault::ForgetsMark);
        if nobody_needs_it && !has_to_stay && s.known == Some(place) {
            s.known = None;
        }
        let agent = s.agent_mut(id);
        agent.at = if agent.at == At::Dead { At::Gone } else { At::Js };
    }

    fn clean_up(&self, s: &mut State, id: Id) {
        let Agent { entry: place, ended_at, .. } = *s.agent(id);
        let was_granted = ended_at == At::Waiting && s.holds(id);
        if !(was_granted && self.has(Fault::EndKeepsGrant)) {
            let held = self.take_out(s, id, false);
            if held && ended_at == At::Inside && !self.is_shared(id) {
                s.entries[place].marked |= !self.has(Fault::EndLeavesNoMark);
                s.has_been_left = true;
            }
            if !self.has(Fault::EndLetsNobodyIn) {
                self.hand_off(s, place);
            }
        }
        s.agent_mut(id).at = At::Dead;
    }
}

impl Model for Named {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            entries: self.roles.iter().map(|_| Entry::default()).collect(),
            known: None,
            agents: self.roles.iter().map(|_| Agent::default()).collect(),
            deaths: 0,
            has_been_left: false,
            overtaken: false,
        }]
    }

    fn actions(&self, s: &State, steps: &mut Vec<Step>) {
        for id in s.ids() {
            let agent = s.agent(id);
            match agent.at {
                At::Js if agent.generation < self.requests => steps.push(Step::Find(id)),
                At::Js | At::Gone => {}
                At::Found => steps.push(Step::Ask(id)),
                At::Waiting => {
                    if s.holds(id) {
                        steps.push(Step::Learn(id));
                    }
                    steps.push(Step::Quit(id));
                }
                At::Inside => steps.push(Step::Release(id)),
                At::Over | At::Dead => steps.push(Step::Forget(id)),
                At::Dying => steps.push(Step::Cleanup(id)),
            }
            let lives = !matches!(agent.at, At::Dying | At::Dead | At::Gone);
            if lives && !agent.inbox.is_empty() {
                steps.push(Step::Hear(id));
            }
            if lives && s.deaths < self.deaths {
                steps.push(Step::End(id));
            }
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut s = before.clone();
        match step {
            Step::Find(id) => self.find(&mut s, id),
            Step::Ask(id) => self.ask(&mut s, id),
            Step::Learn(id) => s.agent_mut(id).at = At::Inside,
            Step::Quit(id) => self.quit(&mut s, id),
            Step::Release(id) => self.release(&mut s, id),
            Step::Hear(id) => self.hear(&mut s, id),
            Step::Forget(id) => self.forget(&mut s, id),
            Step::End(id) => {
                s.deaths += 1;
                let agent = s.agent_mut(id);
                agent.ended_at = agent.at;
                agent.at = match agent.at {
                    At::Js => At::Gone,
                    At::Found | At::Over => At::Dead,
                    _ => At::Dying,
                };
            }
            Step::Cleanup(id) => self.clean_up(&mut s, id),
        }
        Some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        safety::properties()
    }
}

/// Everything here ends, so that what must come some time is asked of each state.
impl Protocol for Named {
    type Waiter = ();

    fn name(&self) -> &str {
        &self.name
    }

    fn show(&self, s: &State) -> String {
        let line =
            |asks: &[Ask]| asks.iter().map(|ask| format!("{}.{}", ask.agent, ask.generation)).collect::<Vec<_>>();
        let entry = |entry: &Entry| {
            let mark = if entry.marked { "!" } else { "" };
            format!("x{}{mark} {:?} < {:?}", entry.references, line(&entry.holders), line(&entry.queue))
        };
        let entries: Vec<String> = s.entries.iter().map(entry).collect();
        let agents: Vec<String> =
            s.ids().map(|id| format!("{id} {:?} {:?}", s.agent(id).at, s.agent(id).inbox)).collect();
        format!("{:?} {} | {}", s.known, entries.join("; "), agents.join(" | "))
    }
}
