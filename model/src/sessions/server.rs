//! What a backend does with a query, and what becomes of its locks.

use super::fault::Fault;
use super::protocol::Sessions;
use super::state::{Answer, Id, Link, Phase, Query, State, client_of, waiting};

impl Sessions {
    fn name_of(&self, id: Id) -> usize {
        usize::from(self.requests[usize::from(id)].1)
    }

    pub fn grant(&self, s: &mut State, name: usize, link: Link) {
        // Waits that take turns may be granted again and again.
        s.grants += u8::from(self.fenced);
        s.names[name].holder = Some(link);
        s.names[name].count += 1;
        s.names[name].grant = s.grants;
    }

    /// The next in line gets what is free.
    fn pass_on(&self, s: &mut State, name: usize) {
        s.names[name].holder = None;
        s.names[name].count = 0;
        if !s.names[name].queue.is_empty() {
            let next = s.names[name].queue.remove(0);
            self.grant(s, name, next);
        }
    }

    fn free_all(&self, s: &mut State, link: Link) {
        for name in 0..s.names.len() {
            s.names[name].queue.retain(|other| *other != link);
            if s.names[name].holder == Some(link) {
                self.pass_on(s, name);
            }
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
        // Whoever has just been granted keeps it.
        s.names.iter_mut().for_each(|name| name.queue.retain(|other| *other != link));
        let connection = s.link(link);
        connection.signal = false;
        connection.phase = Phase::Answered(Answer::Cancelled);
    }

    /// Whether the backend can go on without a cancel.
    pub fn can_serve(&self, s: &State, link: Link) -> bool {
        let connection = &s.links[usize::from(link)];
        let waits = s.names.iter().any(|name| name.queue.contains(&link));
        connection.lives && (connection.phase == Phase::Asked || connection.phase == Phase::Blocked && !waits)
    }

    fn execute(&self, s: &mut State, link: Link) -> Option<Answer> {
        let query = s.link(link).query?;
        Some(match query {
            Query::Lock(id) if s.link(link).phase == Phase::Blocked => Answer::Yes(s.names[self.name_of(id)].grant),
            Query::Try(id) | Query::TryInLine(id) | Query::Lock(id) => {
                let name = self.name_of(id);
                let is_free = s.names[name].holder.is_none() || s.names[name].holder == Some(link);
                if is_free {
                    self.grant(s, name, link);
                    Answer::Yes(s.grants)
                } else if matches!(query, Query::Lock(_)) {
                    s.names[name].queue.push(link);
                    return None;
                } else {
                    Answer::No
                }
            }
            Query::Unlock(name) => {
                let name = usize::from(name);
                if s.names[name].holder != Some(link) {
                    return Some(Answer::No);
                }
                s.names[name].count -= 1;
                if s.names[name].count == 0 {
                    self.pass_on(s, name);
                }
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
            Query::Ping(_) | Query::Beat => Answer::Yes(0),
        })
    }
}
