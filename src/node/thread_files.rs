//! The locks of files that a thread holds or waits for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};

use super::process::engine;
use crate::agents::Agent;
use crate::engine::Expiry;
use crate::files::reader::Listing;
use crate::files::{Appointment, Directory, FileFailure, FileHold, FileOutcome, FileWait, Left};

/// The locks of files that a thread holds or waits for.
#[derive(Default)]
pub struct ThreadFiles {
    pub(super) holds: FxHashMap<u32, ThreadHold>,
    pub(super) lists: FxHashMap<u32, HolderList>,
    pub(super) inbox: Arc<FileInbox>,
    pub(super) next: u32,
    pub(super) failure: Option<FileFailure>,
}

/// A hold of a thread, which the clock may give back before its code knows of it.
#[derive(Clone)]
pub struct ThreadHold(Arc<Mutex<Option<FileHold>>>);

impl ThreadHold {
    fn lock(&self) -> MutexGuard<'_, Option<FileHold>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is held; `None` if it has gone back.
    pub fn take(&self) -> Option<FileHold> {
        self.lock().take()
    }

    /// What `act` makes of it; `None` if it has gone back.
    pub fn with<T>(&self, act: impl FnOnce(&mut FileHold) -> T) -> Option<T> {
        self.lock().as_mut().map(act)
    }
}

/// A wait of a thread.
struct ThreadWait {
    wait: FileWait,
    /// When it ends by itself.
    _deadline: Option<Appointment>,
}

/// Who holds the names of a directory.
pub struct HolderList {
    pub(super) directory: Arc<Directory>,
    /// `None` while it is being read.
    pub(super) listed: Option<Listing>,
    /// How many of them this thread has taken, or left out.
    pub(super) taken: usize,
}

/// The waits of a thread that are over, and the directories that were read for it.
#[derive(Default)]
pub struct FileInbox(Mutex<FileNews>);

#[derive(Default)]
pub struct FileNews {
    /// Those that are not over, as far as the thread knows. Whoever takes one out decides how it ended: the thread, by its outcome or
    /// an abort, or the clock.
    waits: FxHashMap<u32, ThreadWait>,
    pub(super) outcomes: VecDeque<(u32, FileOutcome)>,
    pub(super) lists: Vec<(u32, Listing)>,
    /// Cancelled waits of which nothing is left.
    pub(super) left: Vec<u32>,
    /// Waits that were cancelled when their outcome was on the way.
    pub(super) cancelled: FxHashSet<u32>,
    pub(super) is_ended: bool,
}

impl FileInbox {
    pub fn lock(&self) -> MutexGuard<'_, FileNews> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A wait is over. True if its thread is to be woken.
    pub fn put(&self, number: u32, outcome: FileOutcome) -> bool {
        let mut inbox = self.lock();
        if inbox.is_ended || inbox.cancelled.remove(&number) {
            drop(inbox);
            give_back(outcome.ok());
            return self.put_left(number);
        }
        inbox.outcomes.push_back((number, outcome));
        true
    }

    /// Nothing is left of a cancelled wait. True if its thread is to be woken.
    fn put_left(&self, number: u32) -> bool {
        let mut inbox = self.lock();
        if !inbox.is_ended {
            inbox.left.push(number);
        }
        !inbox.is_ended
    }

    /// As [`Self::put_left`], and wakes the thread.
    fn tell_left(&self, number: u32, agent: &Agent) {
        if self.put_left(number) {
            agent.wake();
        }
    }

    /// Takes a wait back. True if nothing is left of it; else this says when that is so, and wakes `agent`. `None` if it was decided
    /// before.
    fn cancel(self: &Arc<Self>, number: u32, agent: &Arc<Agent>) -> Option<bool> {
        let ThreadWait { wait, .. } = self.lock().waits.remove(&number)?;
        let (inbox, agent) = (Arc::clone(self), Arc::clone(agent));
        let left = Left::new(move || inbox.tell_left(number, &agent));
        let is_withdrawn = wait.withdraw(Some(&left));
        let has_left = Left::is_so(left);
        if is_withdrawn {
            return Some(has_left);
        }
        let mut inbox = self.lock();
        match inbox.outcomes.iter().position(|(other, _)| *other == number) {
            Some(index) => {
                let outcome = inbox.outcomes.remove(index);
                drop(inbox);
                give_back(outcome.and_then(|(_, outcome)| outcome.ok()));
                Some(true)
            }
            None => {
                inbox.cancelled.insert(number);
                Some(false)
            }
        }
    }
}

/// Nobody's code has run with it.
pub(super) fn give_back(hold: Option<FileHold>) {
    if let Some(hold) = hold {
        hold.release();
    }
}

impl FileNews {
    /// The next wait that is over, but for those whose outcome the clock is about to give back.
    pub fn next(&mut self) -> Option<(u32, FileOutcome)> {
        let index = self.outcomes.iter().position(|(number, _)| self.waits.contains_key(number))?;
        let (number, outcome) = self.outcomes.remove(index)?;
        self.waits.remove(&number);
        Some((number, outcome))
    }
}

impl ThreadFiles {
    pub fn number(&mut self) -> u32 {
        let inbox = self.inbox.lock();
        loop {
            self.next = self.next.wrapping_add(1);
            let next = &self.next;
            if !self.holds.contains_key(next) && !inbox.waits.contains_key(next) && !self.lists.contains_key(next) {
                return self.next;
            }
        }
    }

    /// Takes in a hold. Returns its number.
    pub fn insert(&mut self, hold: FileHold) -> u32 {
        let number = self.number();
        self.holds.insert(number, ThreadHold(Arc::new(Mutex::new(Some(hold)))));
        number
    }

    /// Takes in a wait.
    pub fn await_file(&mut self, number: u32, wait: FileWait) {
        self.inbox.lock().waits.insert(number, ThreadWait { wait, _deadline: None });
    }

    /// At this time the wait is over, unless its thread knows already that it is, and `beside` goes back. Whatever the thread does:
    /// others get what it was granted. If no time can be kept, it is taken back.
    pub fn end_at(
        &mut self,
        at: Instant,
        number: u32,
        agent: &Arc<Agent>,
        beside: impl Expiry + 'static,
    ) -> Result<(), FileFailure> {
        let (inbox, whose) = (Arc::clone(&self.inbox), Arc::clone(agent));
        let expire = move || {
            let Some(has_left) = inbox.cancel(number, &whose) else { return };
            beside.expired(engine());
            if has_left {
                inbox.tell_left(number, &whose);
            }
        };
        match Appointment::new(at, expire) {
            Ok(deadline) => {
                // If it is over by now, this is dropped, under no lock.
                let mut inbox = self.inbox.lock();
                if let Some(wait) = inbox.waits.get_mut(&number) {
                    wait._deadline = Some(deadline);
                }
                Ok(())
            }
            Err(error) => {
                self.cancel(number, agent);
                Err(FileFailure::NoThread(error))
            }
        }
    }

    /// Takes a wait back. True if nothing is left of it; else the inbox of `agent` says when that is so, as it does if the clock came
    /// first.
    pub fn cancel(&mut self, number: u32, agent: &Arc<Agent>) -> bool {
        self.inbox.cancel(number, agent).unwrap_or(false)
    }

    /// Remains of waits that are over, for the audit.
    #[cfg(feature = "audit")]
    pub fn left(&self) -> Vec<String> {
        let inbox = self.inbox.lock();
        inbox.cancelled.iter().map(|number| format!("wait {number} for a file, which was cancelled")).collect()
    }

    /// The thread has ended: what its code never knew of goes back unmarked, what it holds goes to others as abandoned.
    pub fn end(mut self) {
        let mut inbox = self.inbox.lock();
        inbox.is_ended = true;
        let (waits, outcomes) = (std::mem::take(&mut inbox.waits), std::mem::take(&mut inbox.outcomes));
        drop(inbox);
        for (_, ThreadWait { wait, .. }) in waits {
            wait.withdraw(None);
        }
        for hold in self.holds.drain().filter_map(|(_, hold)| hold.take()) {
            hold.end();
        }
        outcomes.into_iter().for_each(|(_, outcome)| give_back(outcome.ok()));
    }
}
