//! The steps as a state machine for stateright, and what must hold in every state.

use stateright::{Model, Property};

use super::fault::Fault;
use super::state::{At, Client, Holder, Message, State, Ticket, Verb};
use crate::check::Protocol;

#[derive(Clone, Debug)]
pub struct Leases {
    pub name: String,
    pub clients: u8,
    /// The number of requests that each makes.
    pub requests: u8,
    /// The length of a lease, and how far time goes.
    pub lease: u8,
    pub end: u8,
    pub losses: u8,
    pub doubles: u8,
    /// The number of times that the server forgets all tickets: it is emptied, or begins again.
    pub forgets: u8,
    pub fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Tick,
    Request(Client),
    Renew(Client),
    /// Releases, or gives up.
    Leave(Client),
    /// A message arrives.
    Deliver(usize),
    /// ... and is on its way once more.
    Double(usize),
    Lose(usize),
    Forget,
}

impl Leases {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn call(&self, s: &mut State, client: Client, verb: Verb) -> bool {
        let Holder { generation, renewals: number, .. } = s.clients[client as usize];
        let sent = s.now;
        s.send(Message::Call { client, generation, verb, sent, number })
    }

    /// The one script of the server: drops what is over, does what was asked for, grants the first.
    fn serve(&self, s: &mut State, (client, generation, verb, sent, number): (Client, u8, Verb, u8, u8)) -> bool {
        let now = s.now;
        if !self.has(Fault::NobodyExpires) {
            s.tickets.retain(|ticket| ticket.deadline > now);
        }
        let is_it = |ticket: &Ticket| ticket.client == client && ticket.generation == generation;
        let place = s.tickets.iter().position(is_it);
        match verb {
            Verb::Release if self.has(Fault::ReleasesHead) && !s.tickets.is_empty() => {
                s.tickets.remove(0);
            }
            Verb::Release => s.tickets.retain(|ticket| !is_it(ticket)),
            Verb::Enqueue | Verb::Renew => match place {
                Some(place) => {
                    let ticket = &mut s.tickets[place];
                    (ticket.deadline, ticket.heard) = (now + self.lease, now);
                }
                None => {
                    let revives = verb == Verb::Renew && self.has(Fault::RenewalRevives);
                    if (verb == Verb::Enqueue || revives) && !s.tickets.is_full() {
                        let fence = revives.then_some(s.last_fence);
                        s.tickets.push(Ticket { client, generation, deadline: now + self.lease, fence, heard: now });
                    }
                }
            },
        }
        if let Some(first) = s.tickets.first_mut()
            && first.fence.is_none()
        {
            let fence = if self.has(Fault::FenceRepeats) { s.last_fence.max(1) } else { s.last_fence + 1 };
            s.repeated |= fence <= s.last_fence;
            first.fence = Some(fence);
            s.last_fence = fence;
            if self.has(Fault::GrantRenews) {
                first.deadline = now + self.lease;
            }
            let granted = *first;
            // The client that asks learns it from the answer.
            let (Ticket { client, generation, .. }, epoch) = (granted, s.forgets);
            if !is_it(&granted) && !s.send(Message::Grant { client, generation, fence, epoch }) {
                return false;
            }
        }
        if verb == Verb::Release {
            return true;
        }
        let known = s.tickets.iter().find(|ticket| is_it(ticket));
        let (is_known, fence) = (known.is_some(), known.and_then(|ticket| ticket.fence));
        s.send(Message::Answer { client, generation, sent, number, is_known, fence, epoch: s.forgets })
    }

    fn hear(&self, s: &mut State, answer: Message) -> bool {
        let Message::Answer { client, generation, sent, number, is_known, fence, epoch } = answer else { return false };
        let now = s.now;
        let holder = &mut s.clients[client as usize];
        let is_mine = holder.at != At::Idle && (holder.generation == generation || self.has(Fault::AnyAnswerWillDo));
        if !is_mine {
            // A message that came late has made a ticket that nobody wants.
            let strays = is_known && !self.has(Fault::StrayTicketStays);
            return !strays || s.send(Message::Call { client, generation, verb: Verb::Release, sent: now, number });
        }
        // The ticket may have gone since, and a message that came twice may have made another.
        if number < holder.heard && !self.has(Fault::AnswersInAnyOrder) {
            return true;
        }
        (holder.heard, holder.epoch) = (number, epoch);
        // A call that came twice may have made another ticket, in a server that has forgotten the first.
        let is_other = fence != Some(holder.fence) && !self.has(Fault::AnyFenceWillDo);
        if holder.at == At::Inside && (!is_known || is_other || now >= holder.until) {
            // It was lost: its code learns of it, and may go on.
            holder.until = 0;
            return true;
        }
        if is_known {
            let begins = if self.has(Fault::CountsFromAnswer) { now } else { sent };
            holder.until = holder.until.max(begins + self.lease);
        }
        if let Some(fence) = fence {
            self.enter(s, client, fence);
        }
        true
    }

    fn enter(&self, s: &mut State, client: Client, fence: u8) {
        let now = s.now;
        let holder = &mut s.clients[client as usize];
        if holder.at == At::Waiting && (now < holder.until || self.has(Fault::TakesGrantLate)) {
            (holder.at, holder.fence) = (At::Inside, fence);
            if self.has(Fault::TakesGrantLate) {
                holder.until = holder.until.max(now + 1);
            }
        }
    }

    fn deliver(&self, s: &mut State, message: Message) -> bool {
        match message {
            Message::Call { client, generation, verb, sent, number } => {
                self.serve(s, (client, generation, verb, sent, number))
            }
            Message::Answer { .. } => self.hear(s, message),
            Message::Grant { client, generation, fence, epoch } => {
                let now = s.now;
                let holder = &mut s.clients[client as usize];
                let is_mine = holder.generation == generation || self.has(Fault::AnyGrantWillDo);
                if holder.at != At::Waiting || !is_mine {
                    return true;
                }
                if now < holder.until || self.has(Fault::TakesMessageLate) {
                    holder.epoch = epoch;
                    holder.until = holder.until.max(now + u8::from(self.has(Fault::TakesMessageLate)));
                    self.enter(s, client, fence);
                    return true;
                }
                // Its ticket may have gone: the answer says what there is.
                holder.renewals += 1;
                self.call(s, client, Verb::Renew)
            }
        }
    }
}

impl Model for Leases {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: 0,
            tickets: Default::default(),
            last_fence: 0,
            clients: (0..self.clients).map(|_| Holder::default()).collect(),
            messages: Default::default(),
            losses: 0,
            doubles: 0,
            forgets: 0,
            repeated: false,
        }]
    }

    fn actions(&self, s: &State, steps: &mut Vec<Step>) {
        if s.now < self.end {
            steps.push(Step::Tick);
        }
        if s.forgets < self.forgets {
            steps.push(Step::Forget);
        }
        for client in 0..self.clients {
            let holder = &s.clients[client as usize];
            if holder.at == At::Idle && holder.generation < self.requests {
                steps.push(Step::Request(client));
            }
            if holder.at != At::Idle {
                steps.push(Step::Leave(client));
                if holder.renewals == 0 {
                    steps.push(Step::Renew(client));
                }
            }
        }
        for place in 0..s.messages.len() {
            // Equal ones are alike.
            if place > 0 && s.messages[place] == s.messages[place - 1] {
                continue;
            }
            steps.push(Step::Deliver(place));
            if s.doubles < self.doubles {
                steps.push(Step::Double(place));
            }
            if s.losses < self.losses {
                steps.push(Step::Lose(place));
            }
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut s = before.clone();
        let is_possible = match step {
            Step::Tick => {
                s.now += 1;
                true
            }
            Step::Forget => {
                s.forgets += 1;
                s.tickets.clear();
                true
            }
            Step::Request(client) => {
                let generation = s.clients[client as usize].generation + 1;
                s.clients[client as usize] = Holder { at: At::Waiting, generation, ..Holder::default() };
                self.call(&mut s, client, Verb::Enqueue)
            }
            Step::Renew(client) => {
                s.clients[client as usize].renewals += 1;
                self.call(&mut s, client, Verb::Renew)
            }
            Step::Leave(client) => {
                let was_waiting = s.clients[client as usize].at == At::Waiting;
                s.clients[client as usize].at = At::Idle;
                was_waiting && self.has(Fault::QuitSaysNothing) || self.call(&mut s, client, Verb::Release)
            }
            Step::Deliver(place) => {
                let message = s.messages.remove(place);
                self.deliver(&mut s, message)
            }
            Step::Double(place) => {
                s.doubles += 1;
                let message = s.messages[place];
                s.send(message)
            }
            Step::Lose(place) => {
                s.losses += 1;
                s.messages.remove(place);
                true
            }
        };
        is_possible.then_some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("who has not learned of a loss is alone", |_, s: &State| {
                (0..s.clients.len() as Client).filter(|client| s.may_believe(*client)).count() <= 1
            }),
            Property::always("who has not learned of a loss has the largest fence", |_, s: &State| {
                (0..s.clients.len() as Client)
                    .all(|client| !s.may_believe(client) || s.clients[client as usize].fence == s.last_fence)
            }),
            Property::always("each grant has a larger fence", |_, s: &State| !s.repeated),
            Property::always("one ticket at most is granted, the first", |_, s: &State| {
                s.tickets.iter().skip(1).all(|ticket| ticket.fence.is_none())
                    && s.tickets.first().is_none_or(|ticket| ticket.fence.is_some())
            }),
            Property::always("a ticket lasts a lease from when its client was heard", |leases: &Leases, s: &State| {
                s.tickets.iter().all(|ticket| ticket.deadline == ticket.heard + leases.lease)
            }),
            Property::always("once all is heard, nobody who went has a ticket", |_, s: &State| {
                let has_gone = |ticket: &Ticket| {
                    let client = &s.clients[ticket.client as usize];
                    client.at == At::Idle || client.generation != ticket.generation
                };
                s.losses > 0 || !s.messages.is_empty() || !s.tickets.iter().any(has_gone)
            }),
            Property::always("no ticket outlives its time by more than a step", |leases: &Leases, s: &State| {
                // The next to ask drops it: what was granted since is granted to somebody whose time is not over.
                s.tickets
                    .iter()
                    .all(|ticket| ticket.heard + leases.lease >= s.tickets.iter().map(|t| t.heard).max().unwrap_or(0))
            }),
        ]
    }
}

/// Everything here ends, so that what must come some time is asked of each state.
impl Protocol for Leases {
    type Waiter = ();

    fn name(&self) -> &str {
        &self.name
    }

    fn show(&self, s: &State) -> String {
        format!("t={} {:?} | {:?} | {:?}", s.now, s.tickets, s.clients, s.messages)
    }
}
