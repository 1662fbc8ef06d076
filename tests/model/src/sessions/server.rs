//! A backend deals with a query, and with its locks at the end.

use super::fault::Fault;
use super::protocol::Sessions;
use super::state::{Answer, Hold, Id, Link, Phase, Query, State, client_of, waiting};

impl Sessions {
    fn name_of(&self, id: Id) -> usize {
        usize::from(self.requests[usize::from(id)].1)
    }

    pub fn grant(&self, s: &mut State, name: usize, link: Link, is_shared: bool) {
        // Waits that take turns may be granted again and again.
        s.grants += u8::from(self.fenced);
        let of = &mut s.names[name];
        of.grant = s.grants;
        if !of.has(link) {
            of.holds.push(Hold { link, ..Hold::default() });
            of.holds.sort_by_key(|hold| hold.link);
        }
        of.holds.iter_mut().filter(|hold| hold.link == link).for_each(|hold| *hold.count(is_shared) += 1);
    }

    /// Gives what is free to those in line that nobody stands in the way of.
    fn pass_on(&self, s: &mut State, name: usize) {
        while let Some((link, is_shared)) = s.names[name].queue.first().copied() {
            if s.names[name].conflicts(link, is_shared) {
                return;
            }
            s.names[name].queue.remove(0);
            self.grant(s, name, link, is_shared);
        }
    }

    fn free_all(&self, s: &mut State, link: Link) {
        for name in 0..s.names.len() {
            s.names[name].queue.retain(|(other, _)| *other != link);
            s.names[name].holds.retain(|hold| hold.link != link);
            self.pass_on(s, name);
        }
    }

    /// The session is over, and with it all that it holds or waits for.
    pub fn end_backend(&self, s: &mut State, link: Link) {
        let connection = s.link(link);
        connection.lives = false;
        connection.signal = false;
        if !matches!(connection.phase, Phase::Answered(_)) {
            connection.phase = Phase::Idle;
        }
        self.free_all(s, link);
    }

    /// A query is done, as far as it can be; a cancel that came in between is forgotten.
    pub fn serve(&self, s: &mut State, link: Link) {
        let answer = self.execute(s, link);
        let connection = s.link(link);
        connection.signal = false;
        connection.phase = answer.map_or(Phase::Blocked, Phase::Answered);
    }

    /// A cancel hits the query, before or after it has had its effect.
    pub fn serve_cancelled(&self, s: &mut State, link: Link, has_effect: bool) {
        if has_effect && s.link(link).phase == Phase::Asked {
            self.execute(s, link);
        }
        // The one that has just been granted it keeps it.
        for name in 0..s.names.len() {
            s.names[name].queue.retain(|(other, _)| *other != link);
            self.pass_on(s, name);
        }
        let connection = s.link(link);
        connection.signal = false;
        connection.phase = Phase::Answered(Answer::Cancelled);
    }

    /// Whether the backend can go on without a cancel.
    pub fn can_serve(&self, s: &State, link: Link) -> bool {
        let connection = &s.links[usize::from(link)];
        let waits = s.names.iter().any(|name| name.waits(link));
        connection.lives && (connection.phase == Phase::Asked || connection.phase == Phase::Blocked && !waits)
    }

    fn execute(&self, s: &mut State, link: Link) -> Option<Answer> {
        let query = s.link(link).query?;
        Some(match query {
            Query::Lock(id) if s.link(link).phase == Phase::Blocked => Answer::Yes(s.names[self.name_of(id)].grant),
            Query::Try(id) | Query::TryInLine(id) | Query::Lock(id) => {
                let (name, is_shared) = (self.name_of(id), self.is_shared(id));
                let of = &s.names[name];
                // The holder gets it again; else those who came before and cannot share go first.
                let has = of.has(link);
                let is_behind = of.queue.iter().any(|(_, other)| !(is_shared && *other));
                if !of.conflicts(link, is_shared) && (has || !is_behind) {
                    self.grant(s, name, link, is_shared);
                    Answer::Yes(s.grants)
                } else if matches!(query, Query::Lock(_)) {
                    s.names[name].queue.push((link, is_shared));
                    return None;
                } else {
                    let is_other = |other: Link| client_of(other) != client_of(link);
                    let of = &s.names[name];
                    let others =
                        of.holds.iter().any(|hold| is_other(hold.link) || !s.links[usize::from(hold.link)].is_open)
                            || of.queue.iter().any(|(other, _)| is_other(*other));
                    s.wronged |= !others && self.is_try(id) && matches!(query, Query::Try(_));
                    Answer::No
                }
            }
            Query::Unlock(name, is_shared) => {
                let name = usize::from(name);
                let hold = s.names[name].holds.iter_mut().find(|hold| hold.link == link);
                let Some(count) = hold.map(|hold| hold.count(is_shared)).filter(|count| **count > 0) else {
                    return Some(Answer::No);
                };
                *count -= 1;
                s.names[name].holds.retain(|hold| hold.alone + hold.shared > 0);
                self.pass_on(s, name);
                Answer::Yes(0)
            }
            Query::Clean(_) | Query::UnlockAll => {
                self.free_all(s, link);
                Answer::Yes(0)
            }
            Query::Fence(_) => {
                if s.last_fence == 0 || !self.has(Fault::FenceRepeats) {
                    s.last_fence += 1;
                }
                Answer::Fence(s.last_fence)
            }
            Query::Cancel(number) => {
                let other = s.link(waiting(client_of(link)));
                let runs = matches!(other.phase, Phase::Asked | Phase::Blocked);
                other.signal |= other.lives && runs && other.number == number;
                Answer::Yes(0)
            }
            Query::LookAfter(number) => {
                let other = waiting(client_of(link));
                let is_it = s.link(other).lives && s.link(other).number == number;
                let is_known = is_it && s.names.iter().any(|name| name.waits(other));
                if is_known { Answer::Yes(0) } else { Answer::No }
            }
            Query::Ping(_) | Query::Beat => Answer::Yes(0),
        })
    }
}
