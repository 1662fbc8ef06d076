//! The keeper of a client deals with requests, answers, ends of sessions, and silence.

use super::fault::Fault;
use super::protocol::Sessions;
use super::state::{Answer, At, Client, Id, Link, Phase, Query, Request, State, client_of, home, is_home, waiting};

/// The number of times that what a late cancel has hit is said again.
const CLEANS: u8 = 2;

impl Sessions {
    /// Does what goes on by itself: requests are tried, the first in line gets the session that waits, queries are sent.
    pub fn settle(&self, s: &mut State) {
        for id in 0..s.requests.len() as Id {
            let home = home(self.client(id));
            let may_ask = !self.is_releasing(s, id) || self.has(Fault::AsksBeforeReleased);
            if s.request(id).at == At::Asks && s.link(home).is_open && may_ask {
                if self.has(Fault::FenceFirst) {
                    s.push(home, Query::Fence(id));
                }
                s.push(home, Query::Try(id));
                let request = s.request(id);
                (request.at, request.link) = (At::Tried, Some(home));
            }
        }
        for client in 0..self.clients {
            let link = waiting(client);
            let has_use = s.requests.iter().any(|request| request.link == Some(link));
            let connection = s.link(link);
            let is_idle = connection.is_open && connection.phase == Phase::Idle && connection.queue.is_empty();
            if is_idle && !has_use && !s.lines[usize::from(client)].is_empty() {
                let id = s.lines[usize::from(client)].remove(0);
                s.push(link, Query::Lock(id));
                let connection = s.link(link);
                (connection.said, connection.tried) = (false, false);
                (connection.cleans, connection.missed) = (0, 0);
                s.requests.iter_mut().for_each(|request| request.is_late = false);
                (s.request(id).at, s.request(id).link) = (At::Waits, Some(link));
            }
        }
        let now = s.now;
        for connection in &mut s.links {
            if connection.is_open && connection.phase == Phase::Idle && !connection.queue.is_empty() {
                connection.query = Some(connection.queue.remove(0));
                (connection.phase, connection.sent) = (Phase::Asked, now);
            }
        }
    }

    pub fn client(&self, id: Id) -> Client {
        self.requests[usize::from(id)].0
    }

    /// Whether a session that waits has the name of this request still, though nobody of this process does.
    fn is_releasing(&self, s: &State, id: Id) -> bool {
        let (client, name) = self.requests[usize::from(id)];
        let link = waiting(client);
        let connection = &s.links[usize::from(link)];
        let releases = |query: &Query| match query {
            Query::Unlock(other, _) => *other == name,
            Query::UnlockAll => true,
            _ => false,
        };
        let is_under_way = connection.phase != Phase::Idle && connection.query.as_ref().is_some_and(releases);
        let is_given_up = |(other, request): (usize, &Request)| {
            self.requests[other] == (client, name)
                && request.withdrawn
                && request.link == Some(link)
                && matches!(request.at, At::Waits | At::Fenced)
        };
        connection.is_open
            && (is_under_way || connection.queue.iter().any(releases) || s.requests.iter().enumerate().any(is_given_up))
    }

    /// Whether a request asks the store beside those of its process: nobody does, or all share.
    fn is_let_in(&self, s: &State, id: Id) -> bool {
        let is_before = |(other, request): (usize, &Request)| {
            let is_there = !matches!(request.at, At::Out | At::Done) && !request.withdrawn;
            let shares = self.is_shared(id) && self.is_shared(other as Id) && request.at != At::Behind;
            let is_same = other != usize::from(id) && self.requests[other] == self.requests[usize::from(id)];
            // The requests behind are let in one after the other.
            is_same && is_there && !shares && (request.at != At::Behind || s.requests[usize::from(id)].at == At::Out)
        };
        !s.requests.iter().enumerate().any(is_before)
    }

    /// The request needs its name no more: the next of its process ask.
    pub fn call_next(&self, s: &mut State, id: Id) {
        for next in 0..s.requests.len() as Id {
            let is_same = self.requests[usize::from(next)] == self.requests[usize::from(id)];
            if is_same && s.request(next).at == At::Behind {
                if !self.is_let_in(s, next) {
                    return;
                }
                s.request(next).at = At::Asks;
            }
        }
    }

    pub fn ask(&self, s: &mut State, id: Id) {
        s.request(id).at = match self.is_let_in(s, id) {
            true => At::Asks,
            false if self.is_try(id) => At::Done,
            false => At::Behind,
        };
    }

    pub fn withdraw(&self, s: &mut State, id: Id) {
        let at = s.request(id).at;
        match at {
            At::Behind | At::Asks => s.request(id).at = At::Done,
            At::InLine => {
                s.lines[usize::from(self.client(id))].retain(|other| *other != id);
                s.request(id).at = At::Done;
            }
            _ => {}
        }
        s.request(id).withdrawn = true;
        if at != At::Behind && !self.has(Fault::NextIsNotAsked) {
            self.call_next(s, id);
        }
    }

    pub fn leave(&self, s: &mut State, id: Id) {
        if let Some(link) = s.request(id).link {
            self.release(s, id, link);
        }
        self.over(s, id);
        self.call_next(s, id);
    }

    fn release(&self, s: &mut State, id: Id, link: Link) {
        let other = home(client_of(link));
        let by = if self.has(Fault::ReleasesElsewhere) && s.link(other).is_open { other } else { link };
        s.push(by, Query::Unlock(self.requests[usize::from(id)].1, self.is_shared(id)));
    }

    fn over(&self, s: &mut State, id: Id) {
        (s.request(id).at, s.request(id).link) = (At::Done, None);
    }

    /// It begins again, if anybody wants it still.
    fn retry(&self, s: &mut State, id: Id) {
        s.request(id).link = None;
        s.request(id).at = if s.request(id).withdrawn { At::Done } else { At::Asks };
    }

    fn granted(&self, s: &mut State, id: Id, link: Link, grant: u8) {
        let request = s.request(id);
        (request.link, request.grant) = (Some(link), grant);
        if request.withdrawn {
            if !self.has(Fault::GrantToNobodyStays) {
                self.release(s, id, link);
            }
            self.over(s, id);
        } else if self.fenced && request.fence == 0 {
            request.at = At::Fenced;
            s.push(link, Query::Fence(id));
        } else {
            request.at = At::In;
        }
    }

    fn get_in_line(&self, s: &mut State, id: Id) {
        (s.request(id).at, s.request(id).link) = (At::InLine, None);
        s.lines[usize::from(self.client(id))].push(id);
    }

    /// The client is done with a session: all that it holds is lost, and what it was asked has failed.
    pub fn end(&self, s: &mut State, link: Link) {
        let connection = s.link(link);
        connection.is_open = false;
        let is_under_way = connection.phase != Phase::Idle;
        let mut failed = std::mem::take(&mut connection.queue);
        if let Some(query) = connection.query.filter(|_| is_under_way) {
            failed.insert(0, query);
        }
        // The server does what it has got already.
        if !connection.lives || matches!(connection.phase, Phase::Answered(_)) {
            connection.phase = Phase::Idle;
        }
        for id in 0..s.requests.len() as Id {
            let request = s.request(id);
            if request.link == Some(link) {
                if request.at == At::In {
                    (request.knows_loss, request.link) = (true, None);
                } else {
                    self.retry(s, id);
                }
            }
        }
        for query in failed {
            match query {
                Query::TryInLine(id) => s.request(id).is_tried = false,
                Query::Cancel(number) => {
                    let other = waiting(client_of(link));
                    if s.link(other).is_open && s.link(other).number == number {
                        self.end(s, other);
                    }
                }
                _ => {}
            }
        }
    }

    /// An answer arrives, perhaps with the end of its session right behind it.
    pub fn hear(&self, s: &mut State, link: Link, with_end: bool) {
        let (now, holds) = (s.now, s.holds(link));
        let connection = s.link(link);
        let Phase::Answered(answer) = connection.phase else { return };
        let Some(query) = connection.query else { return };
        if with_end {
            self.end(s, link);
            if let (Query::Try(id) | Query::Lock(id), Answer::Yes(grant)) = (query, answer)
                && self.has(Fault::AnswerOfEndedGrants)
            {
                let request = s.request(id);
                (request.at, request.grant) = (At::In, grant);
            }
            return;
        }
        if holds && now >= connection.until {
            return self.end(s, link);
        }
        let begins = if self.has(Fault::CountsFromAnswer) { now } else { connection.sent };
        let until = if self.timed && !self.has(Fault::WaitsForTheEnd) { begins + self.sure } else { u8::MAX };
        connection.until = if holds { connection.until.max(until) } else { until };
        connection.heard = connection.sent;
        connection.phase = Phase::Idle;
        let is_fresh = self.timed && now == connection.sent;
        self.go_on(s, link, query, answer, is_fresh);
    }

    fn go_on(&self, s: &mut State, link: Link, query: Query, answer: Answer, is_fresh: bool) {
        match (query, answer) {
            (Query::Try(id), Answer::Yes(grant)) => self.granted(s, id, link, grant),
            (Query::Try(id), _) if s.request(id).withdrawn => self.over(s, id),
            (Query::Try(id), _) if self.is_try(id) && !self.has(Fault::TryWaits) => {
                self.over(s, id);
                self.call_next(s, id);
            }
            (Query::Try(id), _) => self.get_in_line(s, id),
            (Query::TryInLine(id), answer) => {
                s.request(id).is_tried = false;
                let line = &mut s.lines[usize::from(client_of(link))];
                let place = line.iter().position(|other| *other == id);
                s.links[usize::from(waiting(client_of(link)))].tried |=
                    place.is_some() && s.requests[usize::from(id)].is_late;
                match (answer, place) {
                    (Answer::Yes(grant), Some(place)) => {
                        line.remove(place);
                        self.granted(s, id, link, grant);
                    }
                    (Answer::Yes(_), None) if !self.has(Fault::KeepsWhatItTried) => self.release(s, id, link),
                    _ => {}
                }
            }
            (Query::Lock(id), Answer::Yes(grant)) if !s.request(id).withdrawn => {
                s.request(id).grant = grant;
                if is_fresh {
                    self.granted(s, id, link, grant);
                } else {
                    s.push(link, Query::Ping(id));
                }
            }
            (Query::Ping(id), Answer::Yes(_)) if !s.request(id).withdrawn => {
                let grant = s.request(id).grant;
                self.granted(s, id, link, grant);
            }
            (Query::Lock(id), Answer::Cancelled) if self.has(Fault::CancelledHoldsNothing) => self.waited(s, id),
            (Query::Lock(id), Answer::Yes(_)) if self.has(Fault::LateGrantStays) => self.waited(s, id),
            (Query::Lock(id) | Query::Ping(id), _) => s.push(link, Query::Clean(id)),
            (Query::Clean(_) | Query::UnlockAll, Answer::Cancelled) if !self.has(Fault::CleansOnce) => {
                s.link(link).cleans += 1;
                if s.link(link).cleans == CLEANS {
                    self.end(s, link);
                } else {
                    s.push(link, query);
                }
            }
            (Query::Clean(id), _) => self.waited(s, id),
            (Query::Fence(id), Answer::Fence(fence)) => {
                s.request(id).fence = fence;
                if s.request(id).at != At::Fenced {
                    return;
                }
                s.request(id).at = At::In;
                if s.request(id).withdrawn {
                    self.release(s, id, link);
                    self.over(s, id);
                }
            }
            (Query::Fence(id), _) => {
                self.release(s, id, link);
                self.retry(s, id);
            }
            (Query::LookAfter(number), _) => {
                self.looked_after(s, client_of(link), number, matches!(answer, Answer::Yes(_)));
            }
            // Nothing that it holds is sure.
            (Query::Unlock(..), Answer::No) => self.end(s, link),
            (Query::Unlock(..), Answer::Cancelled) if !self.has(Fault::CancelledReleaseIsDone) => {
                s.link(link).cleans = 0;
                s.push(link, Query::UnlockAll);
            }
            _ => {}
        }
    }

    /// A wait that got nothing is over: if somebody wants it still, others had their turn.
    fn waited(&self, s: &mut State, id: Id) {
        if s.request(id).withdrawn { self.over(s, id) } else { self.get_in_line(s, id) }
    }

    /// Whether what blocks, or is asked after it, has to be ended: nobody wants it, or it is another's turn.
    pub fn can_interrupt(&self, s: &State, client: Client) -> bool {
        let (link, home) = (waiting(client), &s.links[usize::from(home(client))]);
        let Some(id) = s.waiter(link) else { return false };
        let withdrawn = s.requests[usize::from(id)].withdrawn;
        let is_turn = !s.lines[usize::from(client)].is_empty();
        let wait = &s.links[usize::from(link)];
        let is_asked = |query: &Query| matches!(query, Query::Cancel(_));
        let is_said =
            home.queue.iter().any(is_asked) || home.phase != Phase::Idle && home.query.as_ref().is_some_and(is_asked);
        let may = home.is_open || !self.has(Fault::NoHomeNoCancel);
        let again = !wait.said || !self.has(Fault::CancelsOnce);
        // A turn is longer than it takes to be asked, and to try for the others.
        let has_had_turn = wait.phase == Phase::Blocked && (wait.tried || !home.is_open);
        may && again
            && !(home.is_open && is_said)
            && (withdrawn && !self.has(Fault::QuitSaysNothing) || is_turn && has_had_turn)
    }

    pub fn interrupt(&self, s: &mut State, client: Client) {
        let (link, home) = (waiting(client), home(client));
        if !s.link(home).is_open {
            return self.end(s, link);
        }
        s.link(link).said = true;
        let number = s.link(link).number;
        s.push(home, Query::Cancel(number));
    }

    /// Whether the home asks the server for the wait in the other session. Here only once that is cut off: it is asked of each, but
    /// what is known of others, or has been granted, changes nothing.
    pub fn can_look_after(&self, s: &State, client: Client) -> bool {
        let home = &s.links[usize::from(home(client))];
        let is_asked = |query: &Query| matches!(query, Query::LookAfter(_));
        let is_pending =
            home.queue.iter().any(is_asked) || home.phase != Phase::Idle && home.query.as_ref().is_some_and(is_asked);
        home.is_open && self.is_cut_off(s, client) && !is_pending && !self.has(Fault::SilenceWhileBlocked)
    }

    /// Whether the session that waits blocks, and nothing passes between it and the server.
    pub fn is_cut_off(&self, s: &State, client: Client) -> bool {
        let wait = &s.links[usize::from(waiting(client))];
        let blocks = wait.phase != Phase::Idle && matches!(wait.query, Some(Query::Lock(_)));
        wait.is_open && wait.cut.is_some() && blocks
    }

    fn looked_after(&self, s: &mut State, client: Client, number: u8, is_known: bool) {
        let link = waiting(client);
        let wait = s.link(link);
        let blocks = wait.phase != Phase::Idle && matches!(wait.query, Some(Query::Lock(_)));
        if !wait.is_open || wait.number != number || !blocks {
            return;
        }
        wait.missed = if is_known { 0 } else { wait.missed + 1 };
        // Once, its answer may be on its way.
        if wait.missed > 1 {
            self.end(s, link);
        }
    }

    /// Whether the client finds out by itself that a session does not answer.
    pub fn can_look(&self, s: &State, link: Link) -> bool {
        let connection = &s.links[usize::from(link)];
        let is_under_way = connection.phase != Phase::Idle;
        let blocks = is_under_way && matches!(connection.query, Some(Query::Lock(_)));
        if !connection.is_open || self.has(Fault::WaitsForTheEnd) {
            return false;
        }
        if blocks {
            // An answer is not expected: see `can_look_after`.
            return false;
        }
        if !is_home(link) && s.waiter(link).is_some() && self.has(Fault::SilenceAfterWait) {
            return false;
        }
        if !self.timed {
            return connection.cut.is_some();
        }
        s.holds(link) && s.now >= connection.until || is_under_way && s.now >= connection.sent + self.sure
    }
}
