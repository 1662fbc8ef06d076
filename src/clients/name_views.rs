//! What people see of names: who holds which, and who waits. It changes nothing.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::names::{Entry, Name, Names, Table};
use crate::agents::ThreadId;
use crate::engine::{Contents, Holder, Mode, Space, WaiterView};
use crate::sync::{self, MutexGuard};

/// A hold of a name, or a request for it.
pub struct NameView {
    /// The name.
    pub name: Box<[u16]>,
    /// How.
    pub mode: Mode,
    /// Whose.
    pub thread: ThreadId,
    /// For how long it has held it; `None`: it waits.
    pub held: Option<Duration>,
}

/// A hold of a name.
pub struct NameHold {
    /// Tells it from the other holds of its thread.
    pub number: u32,
    /// Whose.
    pub thread: ThreadId,
    /// How.
    pub mode: Mode,
    /// For how long.
    pub held: Duration,
    /// Whether its code is in; else it waits for more than this name.
    pub is_in: bool,
}

/// A name that somebody waits for.
pub struct QueuedName {
    /// Its space.
    pub space: u32,
    /// The name.
    pub name: Box<[u16]>,
    /// Who holds it.
    pub holders: Vec<NameHold>,
    /// Who waits, in order.
    pub waiters: Vec<WaiterView>,
}

impl Names<'_> {
    /// How many names it knows.
    pub fn known(&self) -> usize {
        self.tables.iter().map(|table| table.lock().values().map(SmallVec::len).sum::<usize>()).sum()
    }

    /// The name of the lock whose place has this offset; `None` if it is none, or forgotten.
    pub fn name_of(&self, byte_offset: usize) -> Option<Box<[u16]>> {
        self.tables.iter().find_map(|table| {
            let table = table.lock();
            let found = table.values().flatten().find(|entry| entry.place().byte_offset == byte_offset);
            found.map(|entry| entry.name())
        })
    }

    /// Who holds a name at this moment, in the order in which they came.
    pub fn holders(&self, name: &Name) -> Vec<NameHold> {
        let look = |entry: &Entry| {
            let address = entry.place().address();
            self.holds_at(&self.engine.contents(Space::Listed, address), address)
        };
        self.look(name, look).unwrap_or_default()
    }

    /// Every name that somebody waits for, of whatever space; in no order, and not all at one moment.
    pub fn queued(&self) -> Vec<QueuedName> {
        let mut queued = FxHashSet::default();
        for bucket in self.engine.buckets(Space::Listed) {
            queued.extend(bucket.contents.lock().queued());
        }
        if queued.is_empty() {
            return Vec::new();
        }
        let view = |entry: &Arc<Entry>| {
            let address = entry.place().address();
            if !queued.contains(&address) {
                return None;
            }
            let contents = self.engine.contents(Space::Listed, address);
            let (holders, waiters) = (self.holds_at(&contents, address), self.engine.waiters_at(&contents, address));
            Some(QueuedName { space: entry.space(), name: entry.name(), holders, waiters })
        };
        let of_table =
            |table: &sync::Mutex<Table>| table.lock().values().flatten().filter_map(view).collect::<Vec<_>>();
        self.tables.iter().flat_map(of_table).filter(|name| !name.waiters.is_empty()).collect()
    }

    fn holds_at(&self, contents: &Contents, address: usize) -> Vec<NameHold> {
        let now = sync::now();
        let living = contents.holders_of(address).iter().filter(|holder| !self.engine.is_ghost(holder.agent));
        let view = |Holder { agent, hold, since, is_in }: &Holder| NameHold {
            number: hold.count,
            thread: self.engine.agents.thread(*agent).unwrap_or_default(),
            mode: hold.mode,
            held: now.saturating_duration_since(*since),
            is_in: *is_in,
        };
        let mut holds: Vec<_> = living.map(view).collect();
        holds.sort_by_key(|hold| Reverse(hold.held));
        holds
    }

    /// Who holds which name of a space, and who waits, all at one moment: holders first, and both in the order in which they
    /// came. Nobody whose thread has ended.
    pub fn query(&self, space: u32) -> Vec<NameView> {
        let tables: Vec<MutexGuard<'_, Table>> = self.tables.iter().map(sync::Mutex::lock).collect();
        let listed = self.engine.listed();
        let now = sync::now();
        let view = |entry: &Entry, agent, mode, held| NameView {
            name: entry.name(),
            mode,
            thread: self.engine.agents.thread(agent).unwrap_or_default(),
            held,
        };
        // With what gives their order: whether they wait, since when, behind whom.
        let mut rows = Vec::new();
        let entries = tables.iter().flat_map(|table| table.values().flatten());
        for entry in entries.filter(|entry| entry.space() == space) {
            let address = entry.place().address();
            let contents = listed.contents(address);
            let living = contents.holders_of(address).iter().filter(|holder| !self.engine.is_ghost(holder.agent));
            for Holder { agent, hold, since, is_in } in living {
                let held = is_in.then(|| now.saturating_duration_since(*since));
                rows.push((!is_in, *since, 0, view(entry, *agent, hold.mode, held)));
            }
            let waiting = contents.waiters_of(address).filter(|(_, waiter)| !self.engine.is_ghost(waiter.agent));
            for (ticket, waiter) in waiting {
                if let Some(hold) = waiter.hold {
                    rows.push((true, waiter.since, ticket, view(entry, waiter.agent, hold.mode, None)));
                }
            }
        }
        // Nobody else waits for the rest.
        drop((listed, tables));
        rows.sort_by_key(|(waits, since, ticket, _)| (*waits, *since, *ticket));
        rows.into_iter().map(|(.., view)| view).collect()
    }
}
