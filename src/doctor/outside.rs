//! Locks of the machine and of stores whose holder is not of this process.

use rustc_hash::FxHashMap;

use super::names::LockId;
use super::state::{Knowledge, note};
use super::waits::{Outside, Stuck, Watched};
use crate::clients::is_of_store;
use crate::sync;

/// A lock of the machine with an old wait: its number, its space and its name.
pub type AskedLock = (LockId, u32, String);

impl Knowledge {
    /// The locks of the machine whose holders the watchdog asks for: those with a wait that is old enough to be stuck.
    pub fn locks_to_ask_for(&self) -> Vec<AskedLock> {
        self.old_outside().into_iter().filter(|(_, space, _)| !is_of_store(*space)).collect()
    }

    /// Compares the holders outside with those that were seen before. `told` are those of `locks_to_ask_for`. Returns whether
    /// something got stuck.
    pub fn watch_outside(&mut self, told: Vec<(LockId, Option<Outside>)>) -> bool {
        let Some(limit) = self.options.stuck else { return false };
        for (lock, outside) in told {
            self.waits.values_mut().filter(|wait| wait.lock == lock).for_each(|wait| wait.outside.clone_from(&outside));
        }
        let now = sync::now();
        let mut before = std::mem::take(&mut self.watched_outside);
        let mut watched = FxHashMap::default();
        let mut is_news = false;
        for (lock, ..) in self.old_outside() {
            let holder = self.waits.values().filter(|wait| wait.lock == lock).find_map(|wait| wait.outside.clone());
            let is_same = |of: &Watched<Option<Outside>>| match (&of.holder, &holder) {
                (Some(one), Some(other)) => one.is(other),
                (one, other) => one.is_none() && other.is_none(),
            };
            let mut seen = before.remove(&lock).filter(is_same).unwrap_or_else(|| Watched {
                holder: holder.clone(),
                since: holder.as_ref().and_then(|holder| holder.since).unwrap_or(now),
                is_reported: false,
            });
            if now.saturating_duration_since(seen.since) >= limit && !seen.is_reported {
                seen.is_reported = true;
                is_news = true;
                let mut waits: Vec<_> = self.waits.iter().filter(|(_, wait)| wait.lock == lock).collect();
                waits.sort_by_key(|(number, _)| **number);
                let waiters = waits.into_iter().map(|(_, wait)| (wait.thread, wait.site)).collect();
                let outside = Some(holder.unwrap_or_default());
                note(&mut self.stuck, Stuck { lock, holders: Vec::new(), outside, waiters });
            }
            watched.insert(lock, seen);
        }
        self.watched_outside = watched;
        is_news
    }

    /// The locks that are not held in this process, and were waited for so long that they are stuck unless they move.
    fn old_outside(&self) -> Vec<AskedLock> {
        let Some(limit) = self.options.stuck else { return Vec::new() };
        let mut found: Vec<AskedLock> = Vec::new();
        for wait in self.waits.values().filter(|wait| sync::since(wait.since) >= limit) {
            let Some(lock) = self.names.get(wait.lock).filter(|lock| lock.is_outside()) else { continue };
            let is_known = found.iter().any(|(other, ..)| *other == wait.lock);
            if let Some(name) = lock.name.as_ref().filter(|_| !is_known && self.holds_at(wait.address).is_empty()) {
                let key = (lock.address as u32, name.clone());
                // A thread without the doctor may hold it.
                if !self.names_held_here.contains(&key) {
                    found.push((wait.lock, key.0, key.1));
                }
            }
        }
        found
    }
}
