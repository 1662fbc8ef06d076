//! The views of names for people: who holds which, and who waits. They change nothing.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::names::{Entry, Name, Names, Table};
use crate::agents::ThreadId;
use crate::engine::queue::{Ticket, Waiter};
use crate::engine::{Contents, Hold, Holder, Mode, Space, WaiterView};
use crate::sync::{self, MutexGuard};

/// A hold of a name, or a request for it.
pub struct NameView<'v> {
    /// The name.
    pub name: &'v [u16],
    /// The mode.
    pub mode: Mode,
    /// Whose.
    pub thread: ThreadId,
    /// For how long it has held it; `None`: it waits.
    pub held: Option<Duration>,
}

/// The holds of a space and the requests for its names, at one moment.
pub struct NameViews {
    /// In their order: holds first, and both as they came.
    rows: Vec<Row>,
    /// The moment.
    now: Instant,
    /// All names, one behind the other: what others wait for meanwhile must not make an object for each.
    units: Vec<u16>,
}

struct Row {
    waits: bool,
    since: Instant,
    /// The order of those who came at the same time.
    ticket: Ticket,
    /// The begin and the end of its name.
    name: [u32; 2],
    mode: Mode,
    thread: ThreadId,
}

impl NameViews {
    /// One after the other, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = NameView<'_>> {
        self.rows.iter().map(|&Row { waits, since, name: [begin, end], mode, thread, .. }| NameView {
            name: &self.units[begin as usize..end as usize],
            mode,
            thread,
            held: (!waits).then(|| self.now.saturating_duration_since(since)),
        })
    }
}

/// A hold of a name.
pub struct NameHold {
    /// Tells it from the other holds of its thread.
    pub number: u32,
    /// Whose.
    pub thread: ThreadId,
    /// The mode.
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
    /// Its holders.
    pub holders: Vec<NameHold>,
    /// Its waiters, in order.
    pub waiters: Vec<WaiterView>,
}

impl Names<'_> {
    /// The number of names that it knows.
    pub fn known(&self) -> usize {
        self.tables.iter().map(|table| table.lock().values().map(SmallVec::len).sum::<usize>()).sum()
    }

    /// The name of the lock whose place has this offset; `None` if it is none, or forgotten.
    pub fn name_of(&self, byte_offset: usize) -> Option<Box<[u16]>> {
        self.tables.iter().find_map(|table| {
            let table = table.lock();
            let found = table.values().flatten().find(|entry| entry.place().byte_offset == byte_offset);
            found.map(|entry| entry.name().into())
        })
    }

    /// The holders of a name at this moment, in the order in which they came.
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
            Some(QueuedName { space: entry.space(), name: entry.name().into(), holders, waiters })
        };
        let of_table =
            |table: &sync::Mutex<Table>| table.lock().values().flatten().filter_map(view).collect::<Vec<_>>();
        self.tables.iter().flat_map(of_table).filter(|name| !name.waiters.is_empty()).collect()
    }

    fn holds_at(&self, contents: &Contents, address: usize) -> Vec<NameHold> {
        let now = sync::now();
        let living = contents.holders_of(address).iter().filter(|holder| !self.engine.is_ghost(holder.agent));
        let view = |Holder { agent, hold, since, is_in, .. }: &Holder| NameHold {
            number: hold.request.generation,
            thread: self.engine.agents.thread(*agent).unwrap_or_default(),
            mode: hold.mode,
            held: now.saturating_duration_since(*since),
            is_in: *is_in,
        };
        let mut holds: Vec<_> = living.map(view).collect();
        holds.sort_by_key(|hold| Reverse(hold.held));
        holds
    }

    /// The holders of the names of a space, and the waiters, all at one moment: holders first, and both in the order in which they
    /// came. Those whose thread has ended are left out.
    pub fn query(&self, space: u32) -> NameViews {
        let tables: Vec<MutexGuard<'_, Table>> = self.tables.iter().map(sync::Mutex::lock).collect();
        let listed = self.engine.listed();
        let mut views = NameViews { rows: Vec::new(), now: sync::now(), units: Vec::new() };
        let mut threads = FxHashMap::default();
        // The thread of an agent; `None`: it has ended.
        let mut living = |agent| {
            let look = || (!self.engine.is_ghost(agent)).then(|| self.engine.agents.thread(agent).unwrap_or_default());
            *threads.entry(agent).or_insert_with(look)
        };
        // First these alone: what is far away in memory comes sooner if nothing is in between.
        let entries = tables.iter().flat_map(|table| table.values().flatten());
        let entries: Vec<&Arc<Entry>> = entries.filter(|entry| entry.space() == space).collect();
        for entry in entries {
            let address = entry.place().address();
            let contents = listed.contents(address);
            let begin = views.units.len() as u32;
            views.units.extend_from_slice(entry.name());
            let name = [begin, views.units.len() as u32];
            let mut add = |waits, since, ticket, agent, mode| {
                if let Some(thread) = living(agent) {
                    views.rows.push(Row { waits, since, ticket, name, mode, thread });
                }
            };
            for &Holder { agent, hold, since, is_in, .. } in contents.holders_of(address) {
                add(!is_in, since, 0, agent, hold.mode);
            }
            for (ticket, &Waiter { agent, hold, since, .. }) in contents.waiters_of(address) {
                if let Some(Hold::Listed(hold)) = hold {
                    add(true, since, ticket, agent, hold.mode);
                }
            }
        }
        // Others need not wait for the rest.
        drop((listed, tables));
        views.rows.sort_unstable_by_key(|row| (row.waits, row.since, row.ticket));
        views
    }
}
