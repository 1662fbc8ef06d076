//! The steps as a state machine for stateright.

use stateright::{Model, Property};

use super::fault::Fault;
use super::state::{At, Client, Connection, Id, Link, Phase, Query, Request, State, client_of, home, is_home, waiting};
use crate::check::{Class, Classes, Protocol};

#[derive(Clone, Debug)]
pub struct Sessions {
    pub name: String,
    pub clients: u8,
    /// Whose each is, and for which name; each is made once.
    pub requests: Vec<(Client, u8)>,
    /// The clients that share, and those that are refused what they cannot have at once.
    pub shared: &'static [Id],
    pub tries: &'static [Id],
    pub fenced: bool,
    pub ends: u8,
    pub cuts: u8,
    pub quits: u8,
    /// Whether time is a number; else a cut is found out some time by either side.
    pub timed: bool,
    /// For how long after it was heard a session is surely there, and how far time goes.
    pub sure: u8,
    pub end: u8,
    /// Whether liveness is checked, or what must hold always.
    pub live: bool,
    /// One that need not leave once it is in.
    pub stays: Option<Id>,
    /// From this one on, requests have their locks already.
    pub held: Option<Id>,
    pub fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Tick,
    Ask(Id),
    Withdraw(Id),
    Leave(Id),
    /// The code of a holder writes to a register, with its fence.
    Write(Id),
    TryInLine(Id),
    Interrupt(Client),
    LookAfter(Client),
    Beat(Link),
    /// The client tells that a session does not answer.
    Look(Link),
    Open(Link),
    Serve(Link),
    /// A cancel hits the query; whether after its effect.
    ServeCancelled(Link, bool),
    Hear(Link),
    /// The end of the session is right behind the answer.
    HearWithEnd(Link),
    HearEnd(Link),
    /// The server ends a session.
    Take(Link),
    Cut(Link),
    /// The server notices that the client is gone.
    Free(Link),
}

/// A wait of somebody for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// For its lock.
    Served(Id),
    /// For the end of a wait that was withdrawn.
    Withdrawn(Id),
}

impl Sessions {
    pub fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    pub fn is_shared(&self, id: Id) -> bool {
        self.shared.contains(&id)
    }

    pub fn is_try(&self, id: Id) -> bool {
        self.tries.contains(&id)
    }

    fn connection(&self, now: u8, number: u8) -> Connection {
        let until = if self.timed && !self.has(Fault::WaitsForTheEnd) { now + self.sure } else { u8::MAX };
        Connection { lives: true, is_open: true, number, heard: now, until, ..Connection::default() }
    }

    /// Whether the server has found out that the other side is gone.
    fn can_free(&self, s: &State, link: Link) -> bool {
        let connection = &s.links[usize::from(link)];
        connection.lives
            && match connection.cut {
                Some(since) => !self.timed || s.now >= since + self.sure,
                None => !connection.is_open,
            }
    }

    fn is_needed(&self, s: &State, link: Link) -> bool {
        let client = client_of(link);
        let of_client = |id: usize| self.requests[id].0 == client;
        if is_home(link) {
            let asks = (0..s.requests.len()).any(|id| of_client(id) && s.requests[id].at == At::Asks);
            return asks || self.is_cut_off(s, client) && !self.has(Fault::NoHomeNoLook);
        }
        !s.lines[usize::from(client)].is_empty()
    }

    fn write(&self, s: &mut State, id: Id) {
        let Request { grant, fence, link, .. } = *s.request(id);
        let name = usize::from(self.requests[usize::from(id)].1);
        if fence >= s.written.1 {
            s.overlap |= grant < s.written.0;
            s.written = (grant, fence);
        } else {
            s.refused |= link.is_some_and(|link| s.names[name].has(link)) && s.names[name].grant == grant;
        }
    }

    fn steps_of_link(&self, s: &State, link: Link, steps: &mut Vec<Step>) {
        let connection = &s.links[usize::from(link)];
        let is_answered = matches!(connection.phase, Phase::Answered(_));
        let passes = connection.cut.is_none();
        if self.can_serve(s, link) && passes {
            steps.push(Step::Serve(link));
        }
        let is_at_it = matches!(connection.phase, Phase::Asked | Phase::Blocked);
        if connection.lives && connection.signal && is_at_it && passes {
            steps.push(Step::ServeCancelled(link, false));
            if connection.phase == Phase::Asked && !matches!(connection.query, Some(Query::Lock(_))) {
                steps.push(Step::ServeCancelled(link, true));
            }
        }
        if connection.is_open && is_answered {
            steps.push(Step::Hear(link));
            if !connection.lives && passes {
                steps.push(Step::HearWithEnd(link));
            }
        }
        if connection.is_open && !connection.lives && !is_answered && passes {
            steps.push(Step::HearEnd(link));
        }
        if connection.lives && connection.is_open && passes {
            if s.ends < self.ends {
                steps.push(Step::Take(link));
            }
            if s.cuts < self.cuts {
                steps.push(Step::Cut(link));
            }
        }
        if self.can_look(s, link) {
            steps.push(Step::Look(link));
        }
        let is_silent = connection.phase == Phase::Idle && s.now > connection.heard;
        if self.timed && connection.is_open && is_silent && s.holds(link) {
            steps.push(Step::Beat(link));
        }
        if self.can_free(s, link) {
            steps.push(Step::Free(link));
        }
        if !connection.lives && !connection.is_open && self.is_needed(s, link) {
            steps.push(Step::Open(link));
        }
    }
}

impl Model for Sessions {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let names = self.requests.iter().map(|(_, name)| name + 1).max().unwrap_or(0);
        let mut start = State {
            links: (0..2 * self.clients).map(|_| self.connection(0, 0)).collect(),
            names: (0..names).map(|_| Default::default()).collect(),
            requests: self.requests.iter().map(|_| Request::default()).collect(),
            lines: (0..self.clients).map(|_| Default::default()).collect(),
            ..State::default()
        };
        for id in self.held.into_iter().flat_map(|first| first..self.requests.len() as Id) {
            let link = home(self.client(id));
            self.grant(&mut start, usize::from(self.requests[usize::from(id)].1), link, self.is_shared(id));
            let grant = start.grants;
            let request = start.request(id);
            (request.at, request.link, request.grant) = (At::In, Some(link), grant);
        }
        vec![start]
    }

    fn actions(&self, s: &State, steps: &mut Vec<Step>) {
        if self.timed && s.now < self.end {
            steps.push(Step::Tick);
        }
        for id in 0..s.requests.len() as Id {
            let request = &s.requests[usize::from(id)];
            match request.at {
                At::Out => steps.push(Step::Ask(id)),
                At::In => {
                    steps.push(Step::Leave(id));
                    if self.fenced {
                        steps.push(Step::Write(id));
                    }
                }
                At::Done => {}
                _ if !request.withdrawn && s.quits < self.quits => steps.push(Step::Withdraw(id)),
                _ => {}
            }
            let is_open = s.links[usize::from(home(self.client(id)))].is_open;
            if request.at == At::InLine && !request.is_tried && is_open {
                steps.push(Step::TryInLine(id));
            }
        }
        for client in 0..self.clients {
            if self.can_interrupt(s, client) {
                steps.push(Step::Interrupt(client));
            }
            if self.can_look_after(s, client) {
                steps.push(Step::LookAfter(client));
            }
        }
        for link in 0..s.links.len() as Link {
            self.steps_of_link(s, link, steps);
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut s = before.clone();
        match step {
            Step::Tick => s.now += 1,
            Step::Ask(id) => self.ask(&mut s, id),
            Step::Withdraw(id) => {
                s.quits += 1;
                self.withdraw(&mut s, id);
            }
            Step::Leave(id) => self.leave(&mut s, id),
            Step::Write(id) => self.write(&mut s, id),
            Step::TryInLine(id) => {
                (s.request(id).is_tried, s.request(id).is_late) = (true, true);
                s.push(home(self.client(id)), Query::TryInLine(id));
            }
            Step::Interrupt(client) => self.interrupt(&mut s, client),
            Step::LookAfter(client) => {
                let number = s.link(waiting(client)).number;
                s.push(home(client), Query::LookAfter(number));
            }
            Step::Beat(link) => s.push(link, Query::Beat),
            Step::Look(link) => self.end(&mut s, link),
            Step::Open(link) => {
                let number = (s.link(link).number + 1) % 4;
                *s.link(link) = self.connection(s.now, number);
            }
            Step::Serve(link) => self.serve(&mut s, link),
            Step::ServeCancelled(link, has_effect) => self.serve_cancelled(&mut s, link, has_effect),
            Step::Hear(link) => self.hear(&mut s, link, false),
            Step::HearWithEnd(link) => self.hear(&mut s, link, true),
            Step::HearEnd(link) => self.end(&mut s, link),
            Step::Take(link) => {
                s.ends += 1;
                s.link(link).taken = true;
                self.end_backend(&mut s, link);
            }
            Step::Cut(link) => {
                s.cuts += 1;
                s.link(link).cut = Some(s.now);
            }
            Step::Free(link) => self.end_backend(&mut s, link),
        }
        self.settle(&mut s);
        (s != *before).then_some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties()
    }
}

impl Protocol for Sessions {
    type Waiter = Waiter;

    fn name(&self) -> &str {
        &self.name
    }

    fn is_live(&self) -> bool {
        self.live
    }

    fn class(&self, step: Step) -> Option<Class> {
        let number = match step {
            Step::Serve(link) | Step::ServeCancelled(link, _) => link,
            Step::Hear(link) | Step::HearWithEnd(link) | Step::HearEnd(link) => 8 + link,
            Step::Look(link) => 16 + link,
            Step::Open(link) => 24 + link,
            Step::Free(link) => 32 + link,
            Step::Leave(id) => 40 + id,
            Step::Interrupt(client) => 48 + client,
            Step::TryInLine(id) => 52 + id,
            Step::LookAfter(client) => 56 + client,
            _ => return None,
        };
        Some(Class(number))
    }

    /// Whatever comes by itself, but for an answer that a cut may have swallowed.
    fn due(&self, s: &State) -> Classes {
        let mut steps = Vec::new();
        self.actions(s, &mut steps);
        let mut due = Classes::default();
        for step in steps {
            let may_be_lost = matches!(step, Step::Hear(link) if s.links[usize::from(link)].cut.is_some());
            let stays = matches!(step, Step::Leave(id) if self.stays == Some(id));
            if let Some(class) = self.class(step) {
                due.add_if(!may_be_lost && !stays, class);
            }
        }
        due
    }

    fn waiters(&self) -> Vec<Waiter> {
        let ids = 0..self.requests.len() as Id;
        ids.flat_map(|id| [Waiter::Served(id), Waiter::Withdrawn(id)]).collect()
    }

    fn waits(&self, s: &State, waiter: Waiter) -> bool {
        match waiter {
            Waiter::Served(id) => {
                let name = |id: Id| self.requests[usize::from(id)].1;
                let request = &s.requests[usize::from(id)];
                let is_asking = !matches!(request.at, At::Out | At::In | At::Done) && !request.withdrawn;
                is_asking && self.stays.is_none_or(|other| name(other) != name(id))
            }
            Waiter::Withdrawn(id) => {
                let request = &s.requests[usize::from(id)];
                request.withdrawn && request.at != At::Done
            }
        }
    }

    fn show(&self, s: &State) -> String {
        format!("t={} {:?} | {:?} | {:?}", s.now, s.names, s.requests, s.links)
    }
}

/// Its code runs, and it has no reason to think that the lock is not its own, nor has the server taken it.
fn believes(s: &State, request: &Request) -> bool {
    let is_sure = |link: u8| {
        let connection = &s.links[usize::from(link)];
        s.now < connection.until && !connection.taken
    };
    request.at == At::In && !request.knows_loss && request.link.is_none_or(is_sure)
}

fn is_quiet(s: &State) -> bool {
    s.requests.iter().all(|request| matches!(request.at, At::Out | At::Done))
        && s.links.iter().all(|link| link.phase == Phase::Idle && link.queue.is_empty())
}

/// Returns the properties that must hold in every state.
fn properties() -> Vec<Property<Sessions>> {
    vec![
        Property::always("who has not learned of a loss is alone", |sessions: &Sessions, s: &State| {
            let of_name = |id: &usize, name: u8| sessions.requests[*id].1 == name && believes(s, &s.requests[*id]);
            let alone = |name: u8| {
                let inside = || (0..s.requests.len()).filter(|id| of_name(id, name));
                inside().count() <= 1 || inside().all(|id| sessions.is_shared(id as Id))
            };
            (0..s.names.len() as u8).all(alone)
        }),
        Property::always("a register that refuses smaller fences sees no overlap", |_, s: &State| !s.overlap),
        Property::always("a register refuses nobody who holds", |_, s: &State| !s.refused),
        Property::always("who is in by a session that lives has its lock", |sessions: &Sessions, s: &State| {
            (0..s.requests.len() as Id).all(|id| {
                let request = &s.requests[usize::from(id)];
                let Some(link) = request.link.filter(|_| request.at == At::In) else { return true };
                let name = usize::from(sessions.requests[usize::from(id)].1);
                !s.links[usize::from(link)].lives || s.names[name].has(link)
            })
        }),
        Property::always("once all is heard, nobody has anything", |_, s: &State| {
            let stays = |link: u8| {
                let connection = &s.links[usize::from(link)];
                connection.is_open && connection.cut.is_none()
            };
            !is_quiet(s)
                || !s.names.iter().any(|name| name.holds.iter().any(|hold| stays(hold.link)) || !name.queue.is_empty())
        }),
        Property::always("a try waits in no line", |sessions: &Sessions, s: &State| {
            (0..s.requests.len() as Id)
                .all(|id| !sessions.is_try(id) || !matches!(s.requests[usize::from(id)].at, At::InLine | At::Waits))
        }),
        Property::always("a try is refused only what another has or wants", |_, s: &State| !s.wronged),
        Property::always("a session that its client is done with is asked nothing", |_, s: &State| {
            s.links.iter().all(|link| link.is_open || link.queue.is_empty())
        }),
    ]
}
