//! Locks that have waiters while their holder does not change.

use std::time::Duration;

use super::deadlock::PermitHolders;
use super::holds::SuspectHold;
use super::names::{Lock, LockId, ThreadSite, text_of};
use super::state::{Knowledge, note};
use super::waits::{Stuck, TrackedWait, Watched};
use crate::agents::ThreadId;
use crate::clients::QueuedName;
use crate::engine::{Engine, LockView, Primitive};
use crate::memory;
use crate::sync;

/// A lock with waiters, at one instant.
pub struct Seen {
    pub(super) kind: &'static str,
    pub(super) place: memory::Place,
    pub(super) view: LockView,
    pub(super) holders: Vec<(ThreadId, u64)>,
}

/// The next known place of a thread.
fn take_of(known: &mut Vec<ThreadSite>, thread: ThreadId) -> ThreadSite {
    let at = known.iter().position(|(other, _)| *other == thread);
    at.map_or((thread, 0), |at| known.remove(at))
}

/// All locks with waiters.
pub fn look(engine: &Engine, locks: &[&'static dyn Primitive]) -> Vec<Seen> {
    let mut all = Vec::new();
    for (primitive, place, view) in engine.inspect_all() {
        if !locks.iter().any(|lock| lock.is(primitive)) {
            continue;
        }
        let mut holders: Vec<(ThreadId, u64)> = match view.owner {
            // The same owner may have freed it and locked it again.
            Some(owner) => vec![(owner, engine.hold(place).map_or(0, |hold| hold.serial))],
            None => view.registered.iter().map(|(thread, count)| (*thread, u64::from(*count))).collect(),
        };
        holders.sort_unstable();
        all.push(Seen { kind: primitive.name(), place, view, holders });
    }
    all
}

/// The holders of the permits among them.
pub fn permit_holders(seen: &[Seen]) -> PermitHolders {
    let shared = seen.iter().filter(|lock| lock.view.owner.is_none());
    shared.map(|lock| (lock.place.address(), lock.holders.iter().map(|(thread, _)| *thread).collect())).collect()
}

impl Knowledge {
    /// Compares with what was seen before. Returns whether something got stuck.
    pub fn watch(&mut self, seen: Vec<Seen>) -> bool {
        let now = sync::now();
        let mut before = std::mem::take(&mut self.watched);
        let mut is_stuck = false;
        for mut lock in seen {
            let address = lock.place.address();
            // The same thread may have given it back and taken it again.
            lock.holders.extend(self.holds_at(address).iter().map(|(thread, hold)| (*thread, hold.serial)));
            let known = before.remove(&address).filter(|watched| watched.holder == lock.holders);
            let mut watched =
                known.unwrap_or_else(|| Watched { holder: lock.holders.clone(), since: now, is_reported: false });
            let age = now.saturating_duration_since(watched.since);
            if !lock.holders.is_empty() && age >= self.options.long_hold {
                self.note_seen_hold(&lock, age);
            }
            let waited = lock.view.waiters.iter().map(|waiter| waiter.waited).max().unwrap_or_default();
            let is_over = self.options.stuck.is_some_and(|limit| age >= limit && waited >= limit);
            if is_over && !watched.is_reported && !lock.holders.is_empty() {
                watched.is_reported = true;
                is_stuck = true;
                let stuck = self.describe(&lock);
                note(&mut self.stuck, stuck);
            }
            self.watched.insert(address, watched);
        }
        is_stuck
    }

    /// As `watch`, for the names that somebody waits for, of the process, the machine and stores. Returns whether one got stuck.
    pub fn watch_names(&mut self, names: Vec<QueuedName>) -> bool {
        let Some(limit) = self.options.stuck else { return false };
        let held = names.iter().filter(|name| name.holders.iter().any(|holder| holder.is_in));
        self.names_held_here = held.map(|QueuedName { space, name, .. }| (*space, text_of(name))).collect();
        let before = std::mem::take(&mut self.stuck_names);
        let mut is_news = false;
        for QueuedName { space, name, mut holders, waiters } in names {
            // A holder that is not in waits itself, for the machine or the store.
            holders.retain(|holder| holder.is_in);
            // The last change of the holders.
            let held = holders.iter().map(|holder| holder.held).min();
            let waited = waiters.iter().map(|waiter| waiter.waited).max();
            if held.min(waited).is_none_or(|since| since < limit) {
                continue;
            }
            let key = (space, name);
            if !before.contains(&key) {
                is_news = true;
                let known = Some(text_of(&key.1));
                let kind = "HeldLock".into();
                let lock = self.names.lock(Lock { name: known, kind, byte_offset: None, address: space as usize });
                let holders = self.holders_of(lock, holders.iter().map(|holder| holder.thread));
                let waiters = self.places(waiters.iter().map(|waiter| waiter.thread), |wait| wait.lock == lock);
                note(&mut self.stuck, Stuck { lock, holders, outside: None, waiters });
            }
            self.stuck_names.insert(key);
        }
        is_news
    }

    /// The places where these threads have locked it, each as often as it is named.
    fn holders_of(&self, lock: LockId, threads: impl Iterator<Item = ThreadId>) -> Vec<ThreadSite> {
        let mut known: Vec<ThreadSite> = Vec::new();
        for (thread, table) in &self.tables {
            let held = table.read().into_iter().filter(|hold| hold.lock == lock);
            known.extend(held.map(|hold| (*thread, hold.site)));
        }
        threads.map(|thread| take_of(&mut known, thread)).collect()
    }

    /// The places where these threads wait, as far as they are known: of several waits of one thread the oldest first.
    fn places(
        &self,
        threads: impl IntoIterator<Item = ThreadId>,
        is_meant: impl Fn(&TrackedWait) -> bool,
    ) -> Vec<ThreadSite> {
        let mut waits: Vec<_> = self.waits.iter().filter(|(_, wait)| is_meant(wait)).collect();
        waits.sort_by_key(|(number, _)| **number);
        let mut known: Vec<ThreadSite> = waits.into_iter().map(|(_, wait)| (wait.thread, wait.site)).collect();
        threads.into_iter().map(|thread| take_of(&mut known, thread)).collect()
    }

    /// The lock as those call it who wait for it.
    fn awaited_at(&self, address: usize) -> Option<LockId> {
        let waits = self.waits.iter().filter(|(_, wait)| wait.address == address);
        waits.max_by_key(|(number, _)| **number).map(|(_, wait)| wait.lock)
    }

    /// A hold that only waiters know of. What a thread that tells its holds has just taken, it is about to tell.
    fn note_seen_hold(&mut self, seen: &Seen, held: Duration) {
        let address = seen.place.address();
        if !self.holds_at(address).is_empty() {
            return;
        }
        let Some(lock) = self.awaited_at(address).filter(|lock| !self.is_permit(*lock)) else { return };
        for (thread, _) in &seen.holders {
            if self.tables.get(thread).is_none_or(|table| !table.is_used) {
                self.note_long_hold(SuspectHold { lock, place: (*thread, 0), held, is_terminated: false });
            }
        }
    }

    fn describe(&mut self, seen: &Seen) -> Stuck {
        let address = seen.place.address();
        let holds = self.holds_at(address);
        let mut holders: Vec<ThreadSite> = holds.iter().map(|(thread, hold)| (*thread, hold.site)).collect();
        for (thread, _) in &seen.holders {
            if !holders.iter().any(|(other, _)| other == thread) {
                holders.push((*thread, 0));
            }
        }
        let waiters = seen.view.waiters.iter().map(|waiter| waiter.thread);
        let waiters = self.places(waiters, |wait| wait.address == address);
        let known = holds.first().map(|(_, hold)| hold.lock).or_else(|| self.awaited_at(address));
        let lock = known.unwrap_or_else(|| {
            let (kind, offset) = (seen.kind.into(), seen.place.byte_offset as u64);
            self.names.lock(Lock { name: None, kind, byte_offset: Some(offset), address })
        });
        Stuck { lock, holders, outside: None, waiters }
    }
}
