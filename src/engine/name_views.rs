//! What people see of names: who holds which, and who waits. It changes nothing.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::contents::Contents;
use super::holders::Holder;
use super::inspect::WaiterView;
use super::names::{BUCKETS, Entry, Name, Names, Table};
use super::primitive::{Mode, Space};
use super::table::{Engine, bucket_index};
use crate::agents::{AgentId, Standing, ThreadId};
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
    /// The name.
    pub name: Box<[u16]>,
    /// Who holds it.
    pub holders: Vec<NameHold>,
    /// Who waits, in order.
    pub waiters: Vec<WaiterView>,
}

impl Engine {
    pub(super) fn names(&self) -> &Names {
        self.names.get_or_init(Names::new)
    }

    /// The number of the space of this key; the same for all threads.
    pub fn name_space(&self, key: &str) -> u32 {
        let mut spaces = self.names().spaces.lock();
        let index = spaces.iter().position(|other| other == key).unwrap_or_else(|| {
            spaces.push(key.into());
            spaces.len() - 1
        });
        index as u32 + 1
    }

    /// How many names it knows.
    pub fn known_names(&self) -> usize {
        let tables = self.names.get().into_iter().flat_map(|names| &names.tables);
        tables.map(|table| table.lock().values().map(SmallVec::len).sum::<usize>()).sum()
    }

    /// The name of the lock whose place has this offset; `None` if it is none, or forgotten.
    pub fn name_of(&self, byte_offset: usize) -> Option<Box<[u16]>> {
        let tables = self.names.get()?.tables.iter();
        tables
            .flat_map(|table| {
                let table = table.lock();
                let found = table.values().flatten().find(|entry| entry.place().byte_offset == byte_offset);
                found.map(|entry| entry.name())
            })
            .next()
    }

    /// Who holds a name at this moment, in the order in which they came.
    pub fn name_holders(&self, name: &Name) -> Vec<NameHold> {
        let look = |entry: &Entry| {
            let address = entry.place().address();
            self.holds_at(&self.contents(Space::Names, address), address)
        };
        self.names.get().and_then(|names| names.look(name, look)).unwrap_or_default()
    }

    /// Every name that somebody waits for, of whatever space; in no order, and not all at one moment.
    pub fn queued_names(&self) -> Vec<QueuedName> {
        let Some(names) = self.names.get() else { return Vec::new() };
        let mut queued = FxHashSet::default();
        for bucket in &names.buckets {
            let contents = bucket.contents.lock();
            queued.extend(contents.queues.iter().filter(|(_, queue)| !queue.is_empty()).map(|(address, _)| *address));
        }
        if queued.is_empty() {
            return Vec::new();
        }
        let view = |entry: &Arc<Entry>| {
            let address = entry.place().address();
            if !queued.contains(&address) {
                return None;
            }
            let contents = self.contents(Space::Names, address);
            let (holders, waiters) = (self.holds_at(&contents, address), self.waiters_at(&contents, address));
            Some(QueuedName { name: entry.name(), holders, waiters })
        };
        let of_table =
            |table: &sync::Mutex<Table>| table.lock().values().flatten().filter_map(view).collect::<Vec<_>>();
        names.tables.iter().flat_map(of_table).filter(|name| !name.waiters.is_empty()).collect()
    }

    fn holds_at(&self, contents: &Contents, address: usize) -> Vec<NameHold> {
        let now = sync::now();
        let living = contents.holders_of(address).iter().filter(|holder| !self.is_ghost(holder.agent));
        let view = |Holder { agent, hold, since, is_in }: &Holder| NameHold {
            number: hold.count,
            thread: self.agents.thread(*agent).unwrap_or_default(),
            mode: hold.mode,
            held: now.saturating_duration_since(*since),
            is_in: *is_in,
        };
        let mut holds: Vec<_> = living.map(view).collect();
        holds.sort_by_key(|hold| Reverse(hold.held));
        holds
    }

    /// Whether the agent's thread has ended, though what it held or waited for is still written down.
    fn is_ghost(&self, agent: AgentId) -> bool {
        self.agents.standing(agent) == Standing::Ended && !fault!(QueryShowsGhosts)
    }

    /// Who holds which name of a space, and who waits, all at one moment: holders first, and both in the order in which they
    /// came. Nobody whose thread has ended.
    pub fn query_names(&self, space: u32) -> Vec<NameView> {
        let Some(names) = self.names.get() else { return Vec::new() };
        let tables: Vec<MutexGuard<'_, Table>> = names.tables.iter().map(sync::Mutex::lock).collect();
        let buckets: Vec<MutexGuard<'_, Contents>> =
            names.buckets.iter().map(|bucket| bucket.contents.lock()).collect();
        let now = sync::now();
        let view = |entry: &Entry, agent, mode, held| NameView {
            name: entry.name(),
            mode,
            thread: self.agents.thread(agent).unwrap_or_default(),
            held,
        };
        // With what gives their order: whether they wait, since when, behind whom.
        let mut rows = Vec::new();
        let entries = tables.iter().flat_map(|table| table.values().flatten());
        for entry in entries.filter(|entry| entry.is_in(space)) {
            let address = entry.place().address();
            let contents = &*buckets[bucket_index(address, BUCKETS)];
            let living = contents.holders_of(address).iter().filter(|holder| !self.is_ghost(holder.agent));
            for Holder { agent, hold, since, is_in } in living {
                let held = is_in.then(|| now.saturating_duration_since(*since));
                rows.push((!is_in, *since, 0, view(entry, *agent, hold.mode, held)));
            }
            let queue = contents.queues.get(&address);
            for (ticket, id) in queue.into_iter().flat_map(|queue| queue.tickets(&contents.waiters)) {
                let waiter = &contents.waiters[id];
                if let Some(hold) = waiter.hold.filter(|_| !self.is_ghost(waiter.agent)) {
                    rows.push((true, waiter.since, ticket, view(entry, waiter.agent, hold.mode, None)));
                }
            }
        }
        rows.sort_by_key(|(waits, since, ticket, _)| (*waits, *since, *ticket));
        rows.into_iter().map(|(.., view)| view).collect()
    }
}
