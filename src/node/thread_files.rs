//! The locks of files that a thread holds or waits for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::agents::Agent;
use crate::files::reader::Listing;
use crate::files::{Directory, FileFailure, FileHold, FileOutcome, FileWait, Left};

/// The locks of files that a thread holds or waits for.
#[derive(Default)]
pub struct ThreadFiles {
    pub(super) holds: FxHashMap<u32, FileHold>,
    pub(super) waits: FxHashMap<u32, FileWait>,
    pub(super) lists: FxHashMap<u32, HolderList>,
    pub(super) inbox: Arc<FileInbox>,
    pub(super) next: u32,
    pub(super) failure: Option<FileFailure>,
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
            give_back(outcome);
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
}

/// Nobody's code has run with it.
fn give_back(outcome: FileOutcome) {
    if let Ok(hold) = outcome {
        hold.release();
    }
}

impl ThreadFiles {
    pub fn number(&mut self) -> u32 {
        loop {
            self.next = self.next.wrapping_add(1);
            let next = &self.next;
            if !self.holds.contains_key(next) && !self.waits.contains_key(next) && !self.lists.contains_key(next) {
                return self.next;
            }
        }
    }

    /// Takes in a hold. Returns its number.
    pub fn insert(&mut self, hold: FileHold) -> u32 {
        let number = self.number();
        self.holds.insert(number, hold);
        number
    }

    /// Takes a wait back. True if nothing is left of it; else the inbox of `agent` says when that is so.
    pub fn cancel(&mut self, number: u32, agent: &Arc<Agent>) -> bool {
        let Some(wait) = self.waits.remove(&number) else { return true };
        let (inbox, agent) = (Arc::clone(&self.inbox), Arc::clone(agent));
        let left = Left::new(move || {
            if inbox.put_left(number) {
                agent.wake();
            }
        });
        let is_withdrawn = wait.withdraw(Some(&left));
        let has_left = Left::is_so(left);
        if is_withdrawn {
            return has_left;
        }
        let mut inbox = self.inbox.lock();
        match inbox.outcomes.iter().position(|(other, _)| *other == number) {
            Some(index) => {
                let given_back = inbox.outcomes.remove(index);
                drop(inbox);
                given_back.into_iter().for_each(|(_, outcome)| give_back(outcome));
                true
            }
            None => {
                inbox.cancelled.insert(number);
                false
            }
        }
    }

    /// The thread has ended: what its code never knew of goes back unmarked, what it holds goes to others as abandoned.
    pub fn end(mut self) {
        for (_, wait) in self.waits.drain() {
            wait.withdraw(None);
        }
        for (_, hold) in self.holds.drain() {
            hold.end();
        }
        let mut inbox = self.inbox.lock();
        inbox.is_ended = true;
        let outcomes = std::mem::take(&mut inbox.outcomes);
        drop(inbox);
        outcomes.into_iter().for_each(|(_, outcome)| give_back(outcome));
    }
}
