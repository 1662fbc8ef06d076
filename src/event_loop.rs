//! The asynchronous waits of one thread: pending promises, claimed and settled on the thread's own event loop.
//!
//! A freed word is *offered* to the loop (a notice in its agent's inbox); the loop *claims* it here, on its own thread,
//! where an abort, a timeout and a claim cannot race. So a loop never holds a word that its code does not know of.
//! Who waits for a notification is *told* by another thread, and hears of it here.

mod answers;
mod wait;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use slab::Slab;

use crate::agent::{Agent, AgentId, Notice, SPARE, WaitId};
use crate::futex::Outcome;
use crate::location::Location;
use crate::lot::line::Call;
use crate::lot::list::NodeId;
use crate::lot::{Claim, Corrupt, Leaving, Lot};
use crate::mutex::{Attempt, Limit};
use crate::shared_word::SharedWord;
use crate::word::Word;

pub use answers::{Request, RequestError, Settled, UnlockedError};
use wait::{Place, Unaccepted, Wait};

/// One thread's waits. Lives and dies on that thread.
pub struct EventLoop<'l> {
    lot: &'l Lot,
    agent: Arc<Agent>,
    waits: Slab<Wait>,
    /// Notices taken from the inbox and not yet dealt with.
    notices: VecDeque<Notice>,
    /// The last hold or notification that [`EventLoop::next_settled`] answered, until it is asked again: the thread's
    /// code may not know of it yet.
    unaccepted: Option<Unaccepted>,
    /// Who held the word when the last wait for one was queued; 0 if nobody did.
    pub waits_for: AgentId,
}

impl<'l> EventLoop<'l> {
    /// For `agent`, on its thread.
    pub fn new(lot: &'l Lot, agent: Arc<Agent>) -> Self {
        Self { lot, agent, waits: Slab::new(), notices: VecDeque::new(), unaccepted: None, waits_for: 0 }
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
            self.reserve(limit).map(|reserved| {
                self.waits_for = section.word().owner();
                let node = section.push_async(&self.agent, reserved.token, guarded);
                self.enter(reserved, Place::Queue(word), node, limit)
            })
        };
        if freed {
            section.hand_on();
        }
        section.close().carry_out(self.lot);
        request.map_err(RequestError::NoClock)
    }

    /// Waits at `location` for a notification if it holds `value`.
    pub fn wait(&mut self, location: Location, value: i64, limit: Limit) -> io::Result<Request<Outcome>> {
        let mut lines = self.lot.lines(location.address());
        if !location.holds(value) {
            return Ok(Request::Now(Outcome::NotEqual));
        }
        if limit == Limit::Once {
            return Ok(Request::Now(Outcome::TimedOut));
        }
        let reserved = self.reserve(limit)?;
        let node = lines.push(location.address(), Call::Notice(Arc::clone(&self.agent), reserved));
        Ok(self.enter(reserved, Place::Line(location), node, limit))
    }

    /// Frees `word`, which this thread holds by a guard or by itself, and waits at `location`; see [`Lot::unlock`].
    /// Once the wait is settled, the thread's code locks the word again and then calls [`EventLoop::accept`].
    pub fn wait_unlocked(
        &mut self,
        location: Location,
        word: SharedWord,
        guarded: bool,
        limit: Limit,
    ) -> Result<u32, UnlockedError> {
        let reserved = self.reserve(limit).map_err(UnlockedError::NoClock)?;
        let call = Call::Notice(Arc::clone(&self.agent), reserved);
        let node = self.lot.lines(location.address()).push(location.address(), call);
        let _: Request = self.enter(reserved, Place::Line(location), node, limit);
        self.waits[reserved.token as usize].keeps = true;
        if let Err(refusal) = self.lot.unlock(&self.agent, word, guarded) {
            self.drop_wait(reserved.token);
            return Err(UnlockedError::Refused(refusal));
        }
        Ok(reserved.token)
    }

    /// The thread's code holds its word again, and knows of the notification that this wait kept.
    pub fn accept(&mut self, token: u32) {
        if let Some(wait) = self.waits.try_remove(token as usize) {
            self.lot.lines(wait.place.address()).take(wait.node);
        }
    }

    /// Takes a wait out as if its thread had ended.
    pub fn drop_wait(&mut self, token: u32) {
        if let Some(wait) = self.waits.try_remove(token as usize) {
            self.leave(token, &wait);
        }
    }

    fn leave(&self, token: u32, wait: &Wait) {
        match wait.place {
            Place::Queue(word) => self.leave_queue(word, wait.node, Leaving::Ending),
            Place::Line(location) => self.lot.leave_line(location.address(), wait.node),
        }
        self.stop_clock(token, wait);
    }

    /// A name for a wait that is about to begin, and its deadline to be kept.
    fn reserve(&self, limit: Limit) -> io::Result<WaitId> {
        let token = u32::try_from(self.waits.vacant_key()).expect("fewer than 2^32 pending waits in one thread");
        let id = WaitId { token, serial: self.lot.serial() };
        if let Limit::Until(at) = limit {
            self.lot.timers.deadline(&self.agent, id, at)?;
        }
        Ok(id)
    }

    fn enter<T>(&mut self, WaitId { token, serial }: WaitId, place: Place, node: NodeId, limit: Limit) -> Request<T> {
        self.waits.insert(Wait { place, node, serial, has_deadline: limit != Limit::Endless, keeps: false });
        Request::Pending(token)
    }

    /// Takes back a pending wait; answers the address of what it was for, or `None` if there is none under this token
    /// any more: one that was told of a notification is as good as over.
    pub fn cancel(&mut self, token: u32) -> Option<usize> {
        let wait = self.waits.get(token as usize)?;
        let address = wait.place.address();
        if matches!(wait.place, Place::Line(_)) && !self.lot.lines(address).take_back(wait.node) {
            return None;
        }
        let wait = self.waits.remove(token as usize);
        if let Place::Queue(word) = wait.place {
            self.leave_queue(word, wait.node, Leaving::TakenBack);
        }
        self.stop_clock(token, &wait);
        Some(address)
    }

    fn leave_queue(&self, word: SharedWord, node: NodeId, why: Leaving) {
        match self.lot.open(word) {
            Ok(mut section) => {
                section.leave(node, why);
                section.close().carry_out(self.lot);
            }
            Err(Corrupt) => self.lot.forget(word, node, || false),
        }
    }

    fn stop_clock(&self, token: u32, wait: &Wait) {
        if wait.has_deadline {
            self.lot.timers.cancel(WaitId { token, serial: wait.serial });
        }
    }

    /// Gives back what [`Self::next_settled`] answered last, since nobody waits for it any more.
    pub fn refuse(&mut self) {
        match self.unaccepted.take() {
            Some(Unaccepted::Hold { word, abandoned_by }) => {
                if let Ok(mut section) = self.lot.open(word) {
                    section.revoke(abandoned_by);
                    section.close().carry_out(self.lot);
                }
            }
            Some(Unaccepted::Notification { address, told }) => self.lot.pass_on(address, told),
            Some(Unaccepted::Kept { token }) => self.drop_wait(token),
            None => {}
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
                Notice::Told(id) => self.hear(id),
            };
            if settled.is_some() {
                return settled;
            }
        }
    }

    fn claim(&mut self, address: usize) -> Option<Settled> {
        let mut claimed = self.try_claim(address)?;
        if let Ok(Claim::Remembered(word)) = claimed
            && self.notices.is_empty()
            && self.lot.linger_until(word, Word::is_reserved)
        {
            // Kept for this loop, most likely: so it need not sleep and be woken once more. Once in a drain is enough:
            // a loop that waits for many words has other things to do.
            claimed = self.try_claim(address)?;
        }
        let (token, abandoned_by) = match claimed {
            Ok(Claim::Acquired { token, abandoned_by }) => (token, abandoned_by),
            Ok(Claim::Remembered(_) | Claim::InVain) => return None,
            Err(Corrupt) => return self.despair(address),
        };
        let wait = self.waits.remove(token as usize);
        self.stop_clock(token, &wait);
        let Place::Queue(word) = wait.place else { unreachable!("a claim is for one who queues") };
        self.unaccepted = Some(Unaccepted::Hold { word, abandoned_by });
        Some(Settled::Lock { token, word, attempt: Some(Attempt::Acquired { abandoned_by }) })
    }

    /// `None`: nobody waits for the word any more.
    fn try_claim(&self, address: usize) -> Option<Result<Claim, Corrupt>> {
        let claim = self.lot.open_queued(address)?.map(|mut section| {
            let claim = section.claim(self.agent.id);
            section.close().carry_out(self.lot);
            claim
        });
        Some(claim)
    }

    /// The word at `address` was overwritten by somebody else: the waits for it end one by one.
    fn despair(&mut self, address: usize) -> Option<Settled> {
        let is_for = |wait: &Wait| matches!(wait.place, Place::Queue(word) if word.address() == address);
        let (key, _) = self.waits.iter().find(|(_, wait)| is_for(wait))?;
        self.notices.push_back(Notice::Offer(address));
        let wait = self.waits.remove(key);
        let Place::Queue(word) = wait.place else { unreachable!("looked for above") };
        self.lot.forget(word, wait.node, || false);
        let token = key as u32;
        self.stop_clock(token, &wait);
        Some(Settled::Lock { token, word, attempt: None })
    }

    /// A wait was told of a notification.
    fn hear(&mut self, id: WaitId) -> Option<Settled> {
        let token = id.token;
        let wait = self.waits.get(token as usize).filter(|wait| wait.serial == id.serial)?;
        let Place::Line(location) = wait.place else { unreachable!("only who stands in a line is told") };
        self.stop_clock(token, wait);
        self.unaccepted = Some(if wait.keeps {
            Unaccepted::Kept { token }
        } else {
            let address = location.address();
            let told = self.lot.lines(address).take(wait.node).expect("it was told");
            self.waits.remove(token as usize);
            Unaccepted::Notification { address, told }
        });
        Some(Settled::Wait { token, location, outcome: Outcome::Notified })
    }

    fn expire(&mut self, id: WaitId) -> Option<Settled> {
        let wait = self.waits.get(id.token as usize).filter(|wait| wait.serial == id.serial)?;
        if let Place::Line(location) = wait.place
            && !self.lot.lines(location.address()).take_back(wait.node)
        {
            // The notification was first, and its notice is in the inbox.
            return None;
        }
        let token = id.token;
        let Wait { place, node, .. } = self.waits.remove(token as usize);
        Some(match place {
            Place::Line(location) => Settled::Wait { token, location, outcome: Outcome::TimedOut },
            Place::Queue(word) => {
                self.leave_queue(word, node, Leaving::TimedOut);
                Settled::Lock { token, word, attempt: Some(Attempt::NotAcquired) }
            }
        })
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
