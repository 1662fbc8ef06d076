//! The asynchronous waits of one thread: pending promises, claimed and settled on the thread's own event loop.
//!
//! A freed word is *offered* to the loop (a notice in its agent's inbox); the loop *claims* it here, on its own thread,
//! where an abort, a timeout and a claim cannot race. So a loop never holds a word that its code does not know of.

use std::collections::VecDeque;
use std::sync::Arc;

use slab::Slab;

use crate::agent::{Agent, AgentId, Notice, SPARE, WaitId};
use crate::lot::queue::NodeId;
use crate::lot::{Corrupt, Lot};
use crate::mutex::{Attempt, Limit};
use crate::shared_word::SharedWord;

/// One thread's waits. Lives and dies on that thread.
pub struct EventLoop<'l> {
    lot: &'l Lot,
    agent: Arc<Agent>,
    waits: Slab<Wait>,
    /// Notices taken from the inbox and not yet dealt with.
    notices: VecDeque<Notice>,
    /// The last hold that [`EventLoop::next_settled`] answered, until it is asked again: the thread's code may not know of it yet.
    unaccepted: Option<Unaccepted>,
}

struct Wait {
    word: SharedWord,
    node: NodeId,
    serial: u64,
    has_deadline: bool,
}

struct Unaccepted {
    word: SharedWord,
    abandoned_by: Option<AgentId>,
}

/// What came of a request to lock without blocking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// Settled at once.
    Now(Attempt),
    /// To be settled by [`EventLoop::next_settled`] under this token.
    Pending(u32),
}

/// Why a request was refused.
#[derive(Debug)]
pub enum RequestError {
    /// The word holds what no sablock wrote.
    Corrupt,
    /// The thread that watches the deadlines could not be started.
    NoClock(std::io::Error),
}

/// A wait that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settled {
    /// Which; free to be given out again.
    pub token: u32,
    /// For what.
    pub word: SharedWord,
    /// How it ended. `None`: its word was overwritten by somebody else.
    pub attempt: Option<Attempt>,
}

impl<'l> EventLoop<'l> {
    /// For `agent`, on its thread.
    pub fn new(lot: &'l Lot, agent: Arc<Agent>) -> Self {
        Self { lot, agent, waits: Slab::new(), notices: VecDeque::new(), unaccepted: None }
    }

    /// Whose loop it is.
    pub fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    /// How many waits are pending.
    pub fn pending(&self) -> usize {
        self.waits.len()
    }

    /// Locks `word` if it is free and nobody of this thread waits for it; else queues.
    pub fn lock(&mut self, word: SharedWord, guarded: bool, limit: Limit) -> Result<Request, RequestError> {
        let mut section = self.lot.open(word).map_err(|Corrupt| RequestError::Corrupt)?;
        let freed = section.free_dead_owner();
        let me = self.agent.id;
        if section.word().is_takeable() && !section.has_party(me) {
            let abandoned_by = section.take(me, guarded);
            section.close().carry_out(self.lot);
            return Ok(Request::Now(Attempt::Acquired { abandoned_by }));
        }
        let request = if limit == Limit::Once {
            Ok(Request::Now(Attempt::NotAcquired))
        } else {
            let entry = self.waits.vacant_entry();
            let token = u32::try_from(entry.key()).expect("fewer than 2^32 pending waits in one thread");
            let serial = self.lot.serial();
            let has_deadline = if let Limit::Until(at) = limit {
                self.lot.timers.deadline(&self.agent, WaitId { token, serial }, at).map(|()| true)
            } else {
                Ok(false)
            };
            has_deadline.map(|has_deadline| {
                let node = section.push_async(&self.agent, token, guarded);
                entry.insert(Wait { word, node, serial, has_deadline });
                Request::Pending(token)
            })
        };
        if freed {
            section.hand_on();
        }
        section.close().carry_out(self.lot);
        request.map_err(RequestError::NoClock)
    }

    /// Takes back a pending wait; answers its word, or `None` if there is none under this token.
    pub fn cancel(&mut self, token: u32) -> Option<SharedWord> {
        let wait = self.waits.try_remove(token as usize)?;
        self.leave(token, &wait);
        Some(wait.word)
    }

    fn leave(&self, token: u32, wait: &Wait) {
        match self.lot.open(wait.word) {
            Ok(mut section) => {
                section.leave(wait.node);
                section.close().carry_out(self.lot);
            }
            Err(Corrupt) => self.lot.forget(wait.word, wait.node, || false),
        }
        self.stop_clock(token, wait);
    }

    fn stop_clock(&self, token: u32, wait: &Wait) {
        if wait.has_deadline {
            self.lot.timers.cancel(WaitId { token, serial: wait.serial });
        }
    }

    /// Gives back the hold that [`Self::next_settled`] answered last, since nobody waits for it any more.
    pub fn refuse(&mut self) {
        if let Some(Unaccepted { word, abandoned_by }) = self.unaccepted.take()
            && let Ok(mut section) = self.lot.open(word)
        {
            section.revoke(abandoned_by);
            section.close().carry_out(self.lot);
        }
    }

    /// The next wait of this loop that is over. Asking again says that the thread's code knows of the one before.
    pub fn next_settled(&mut self) -> Option<Settled> {
        self.unaccepted = None;
        if self.waits.is_empty() && self.waits.capacity() > SPARE {
            self.waits = Slab::new();
        }
        loop {
            let Some(notice) = self.notices.pop_front() else {
                self.agent.drain(&mut self.notices);
                if self.notices.is_empty() {
                    self.notices.shrink_to(SPARE);
                    return None;
                }
                continue;
            };
            let settled = match notice {
                Notice::Offer(address) => self.claim(address),
                Notice::Expired(id) => self.expire(id),
            };
            if settled.is_some() {
                return settled;
            }
        }
    }

    fn claim(&mut self, address: usize) -> Option<Settled> {
        let Ok(mut section) = self.lot.open_queued(address)? else { return self.despair(address) };
        let claimed = section.claim(self.agent.id);
        section.close().carry_out(self.lot);
        let (token, abandoned_by) = claimed?;
        let wait = self.waits.remove(token as usize);
        self.stop_clock(token, &wait);
        self.unaccepted = Some(Unaccepted { word: wait.word, abandoned_by });
        Some(Settled { token, word: wait.word, attempt: Some(Attempt::Acquired { abandoned_by }) })
    }

    /// The word at `address` was overwritten by somebody else: the waits for it end one by one.
    fn despair(&mut self, address: usize) -> Option<Settled> {
        let (key, _) = self.waits.iter().find(|(_, wait)| wait.word.address() == address)?;
        self.notices.push_back(Notice::Offer(address));
        let wait = self.waits.remove(key);
        self.lot.forget(wait.word, wait.node, || false);
        let token = key as u32;
        self.stop_clock(token, &wait);
        Some(Settled { token, word: wait.word, attempt: None })
    }

    fn expire(&mut self, id: WaitId) -> Option<Settled> {
        let wait = self.waits.get(id.token as usize)?;
        if wait.serial != id.serial {
            return None;
        }
        let mut wait = self.waits.remove(id.token as usize);
        wait.has_deadline = false;
        self.leave(id.token, &wait);
        Some(Settled { token: id.token, word: wait.word, attempt: Some(Attempt::NotAcquired) })
    }

    /// The thread's JS has ended. A hold that its code never knew of passes on unmarked, its waits leave,
    /// and what it still holds goes to others, marked abandoned.
    pub fn end(mut self) {
        self.agent.set_waker(None);
        self.refuse();
        for (token, wait) in std::mem::take(&mut self.waits) {
            self.leave(token as u32, &wait);
        }
        self.lot.bury(self.agent.id);
    }
}
