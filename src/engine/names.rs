//! The table of names: which lock a name stands for, and who holds it.
//!
//! A name has an [`Entry`] while it is held, waited for, or marked abandoned: two words of the engine's own memory, on which
//! a primitive works as on any others. Each request for a name keeps its entry by a [`NamedRequest`], in a table of its
//! thread; its number there tells the request's hold from all others of the thread. The holds themselves stand in the bucket
//! of the entry, so that each can be shown, stolen, or given back when its thread ends.
//!
//! Locks are taken in this order: a table of names, then a bucket; one of each at a time, but for whoever asks for all.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::arena::Arena;
use super::event_loop::EventLoop;
use super::primitive::{Corrupt, Hold, Mode, Primitive, Space};
use super::section::Section;
use super::table::{Bucket, Contents, Engine, bucket_index};
use crate::agents::{AgentId, Notice, ThreadId, WaitId, is_sparse};
use crate::memory::Place;
use crate::sync::{self, AtomicU32, Mutex, MutexGuard, Ordering};

/// Powers of two.
const TABLES: usize = 16;
const BUCKETS: usize = 64;

/// A name in UTF-16, after the number of the space that it belongs to. Most are short.
pub struct Name(Key);

type Key = SmallVec<[u16; 16]>;

/// How many units the number of the space takes.
const PREFIX: usize = 2;

impl Name {
    /// The name of these units, in the space of this number.
    pub fn new(space: u32, name: &[u16]) -> Self {
        let mut key = Key::with_capacity(PREFIX + name.len());
        key.push((space >> 16) as u16);
        key.push(space as u16);
        key.extend_from_slice(name);
        Self(key)
    }
}

/// The lock that a name stands for.
struct Entry {
    words: [AtomicU32; 2],
    serial: usize,
    primitive: &'static dyn Primitive,
    hash: u64,
    key: Key,
}

impl Entry {
    fn place(&self) -> Place {
        // SAFETY: two aligned words, accessed as atomics only. Whoever uses the place has a request that keeps the entry.
        unsafe { Place::name(NonNull::from(&self.words).cast(), self.serial) }
    }

    /// Whether nobody would miss it. Nobody but the caller uses it.
    fn is_clean(&self) -> bool {
        // Relaxed: whoever changed it has left it under the lock of its table, which the caller holds.
        self.words.iter().all(|word| word.load(Ordering::Relaxed) == 0)
    }

    fn is_in(&self, space: u32) -> bool {
        u32::from(self.key[0]) << 16 | u32::from(self.key[1]) == space
    }

    fn name(&self) -> Box<[u16]> {
        self.key[PREFIX..].into()
    }
}

/// The entries of some names, by hash; those with the same one beside each other. Of each entry there is one reference here,
/// and one in each request; all come and go under the lock.
type Table = FxHashMap<u64, SmallVec<[Arc<Entry>; 1]>>;

/// All names of the process.
pub(super) struct Names {
    tables: Box<[Mutex<Table>]>,
    hasher: RandomState,
    pub(super) buckets: Box<[Bucket]>,
    /// The keys of the spaces, in the order of their numbers, which begin at 1.
    spaces: Mutex<Vec<String>>,
}

impl Names {
    fn new() -> Self {
        Self {
            tables: (0..TABLES).map(|_| Mutex::new(Table::default())).collect(),
            // Random: names may come from users, who could make them collide.
            hasher: RandomState::new(),
            buckets: (0..BUCKETS).map(|_| Bucket::default()).collect(),
            spaces: Mutex::new(Vec::new()),
        }
    }

    fn table(&self, hash: u64) -> MutexGuard<'_, Table> {
        // The table itself uses the low bits and the highest ones.
        self.tables[(hash >> 40) as usize & (TABLES - 1)].lock()
    }

    fn enter(&self, Name(key): Name, primitive: &'static dyn Primitive, serial: impl FnOnce() -> u64) -> Arc<Entry> {
        let hash = self.hasher.hash_one(&key[..]);
        let mut table = self.table(hash);
        let entries = table.entry(hash).or_default();
        if let Some(entry) = entries.iter().find(|entry| entry.key == key) {
            return Arc::clone(entry);
        }
        // Words begin free; fewer than 2^52 of them are ever made.
        let serial = serial() as usize;
        let entry = Arc::new(Entry { words: Default::default(), serial, primitive, hash, key });
        entries.push(Arc::clone(&entry));
        entry
    }

    fn leave(&self, entry: Arc<Entry>) {
        let mut table = self.table(entry.hash);
        // This reference, and that of the table.
        if Arc::strong_count(&entry) == 2 && (entry.is_clean() || fault!(MarkedNameIsForgotten)) {
            let entries = table.get_mut(&entry.hash).expect("an entry stays in its table while it is used");
            entries.retain(|other| !Arc::ptr_eq(other, &entry));
            if entries.is_empty() {
                table.remove(&entry.hash);
            }
            if is_sparse(table.len(), table.capacity()) {
                let room = 2 * table.len();
                table.shrink_to(room);
            }
        }
        // Before the lock is released, so that the next to leave sees it gone.
        drop(entry);
    }
}

/// A hold of a name.
pub(crate) struct Holder {
    /// Who holds it.
    pub(crate) agent: AgentId,
    /// How, and by which request.
    pub(crate) hold: Hold,
    /// Since when.
    since: Instant,
    /// Whether its code is in; else it has what the engine has to give, and waits for more.
    is_in: bool,
}

impl Holder {
    fn is(&self, agent: AgentId, hold: Hold) -> bool {
        self.agent == agent && self.hold == hold
    }
}

/// Who holds a name.
pub(crate) type Holders = SmallVec<[Holder; 1]>;

impl Contents {
    /// Who holds the name whose entry is at `address`.
    pub(super) fn holders_of(&self, address: usize) -> &[Holder] {
        self.holders.get(&address).map_or(&[], |holders| holders)
    }

    fn holder(&mut self, address: usize, agent: AgentId, hold: Hold) -> Option<&mut Holder> {
        self.holders.get_mut(&address)?.iter_mut().find(|holder| holder.is(agent, hold))
    }
}

impl Section<'_> {
    /// Somebody holds it now: of a name this is written down.
    pub(super) fn note_holder(&mut self, agent: AgentId, hold: Hold) {
        if self.primitive.space() == Space::Names {
            let holder = Holder { agent, hold, since: sync::now(), is_in: true };
            self.contents.holders.entry(self.place.address()).or_default().push(holder);
        }
    }

    /// Somebody does not hold it any more. False if it does not hold that name.
    pub(super) fn forget_holder(&mut self, agent: AgentId, hold: Hold) -> bool {
        if self.primitive.space() != Space::Names {
            return true;
        }
        let address = self.place.address();
        let all = &mut self.contents.holders;
        let Some(holders) = all.get_mut(&address) else { return false };
        let is_it = |holder: &Holder| holder.is(agent, hold) || fault!(AnyHoldOfANameWillDo);
        let Some(index) = holders.iter().position(is_it) else { return false };
        holders.swap_remove(index);
        if holders.is_empty() {
            all.remove(&address);
            if is_sparse(all.len(), all.capacity()) {
                all.shrink_to(2 * all.len());
            }
        }
        true
    }

    /// `agent` takes it from all who hold it, and before all who wait. They are told.
    fn steal(&mut self, agent: AgentId, hold: Hold) -> Option<AgentId> {
        let holders = self.contents.holders.remove(&self.place.address()).unwrap_or_default();
        if !holders.is_empty() {
            self.state = self.primitive.ended(self.state);
        }
        self.free_ended_owner();
        for Holder { agent, hold, .. } in holders {
            let id = WaitId { token: hold.of, serial: u64::from(hold.count) };
            if let Some(agent) = self.engine.agents.get(agent).filter(|_| !fault!(ThiefTellsNobody))
                && agent.post(Notice::Stolen(id))
            {
                self.wakes.turn(agent);
            }
        }
        self.state = self.primitive.grant(self.state, hold, agent).expect("nobody holds it any more");
        self.note_holder(agent, hold);
        self.take_report()
    }

    /// Whether the request holds it at this moment.
    pub(crate) fn is_holder(&mut self, agent: AgentId, hold: Hold) -> bool {
        self.contents.holder(self.place.address(), agent, hold).is_some()
    }

    /// The thread of `agent` has ended with this hold: others get in.
    fn end_hold(&mut self, agent: AgentId, hold: Hold) {
        if !self.forget_holder(agent, hold) {
            return;
        }
        if hold.mode == Mode::Exclusive && !fault!(EndedHolderOfANameIsNotMarked) {
            self.abandoned_by = Some(agent);
            self.state = self.primitive.ended(self.state);
        } else if let Some(state) = self.primitive.release(self.state, hold, agent) {
            self.state = state;
        }
        self.hand_off();
    }
}

/// A request for a name, from the moment at which it is made until it is refused, or what it was granted is released.
struct NamedRequest {
    entry: Arc<Entry>,
    generation: u32,
    mode: Mode,
}

/// The requests of one thread, by number.
#[derive(Default)]
pub(super) struct NamedRequests {
    all: Arena<NamedRequest>,
    generation: u32,
    /// Those whose holds were stolen, until the thread's code is told.
    stolen: VecDeque<WaitId>,
}

/// A request for a name, as its thread has it.
#[derive(Clone, Copy)]
pub struct Ticket {
    /// By which the thread knows it.
    pub number: u32,
    /// Of the name.
    pub place: Place,
    /// What it is for.
    pub hold: Hold,
}

impl EventLoop<'_> {
    /// Makes a request for a name, of which nobody else knows yet.
    pub fn make_request(&mut self, primitive: &'static dyn Primitive, name: Name, mode: Mode) -> Ticket {
        let entry = self.engine.names().enter(name, primitive, || self.engine.serial());
        let place = entry.place();
        self.names.generation = self.names.generation.wrapping_add(1);
        let generation = self.names.generation;
        let number = self.names.all.insert(NamedRequest { entry, generation, mode });
        Ticket { number, place, hold: Hold::named(mode, number, generation) }
    }

    /// The request of a number; `None` once it is over.
    pub fn request(&self, number: u32) -> Option<Ticket> {
        let NamedRequest { entry, generation, mode } = self.names.all.get(number)?;
        Some(Ticket { number, place: entry.place(), hold: Hold::named(*mode, number, *generation) })
    }

    /// A request is over: nobody is queued for it, and it holds nothing.
    pub fn forget_request(&mut self, ticket: Ticket) {
        if let Some(request) = self.names.all.try_remove(ticket.number) {
            self.engine.names().leave(request.entry);
        }
    }

    /// A wait is over without what it was for; if that was a name, its request is over.
    pub(super) fn forget_wait(&mut self, place: Place, hold: Option<Hold>) {
        if let Some(hold) = hold.filter(|_| place.is_name()) {
            self.forget_request(Ticket { number: hold.of, place, hold });
        }
    }

    /// A request takes the name from all who hold it. Returns the ended agent that it has to report.
    pub fn steal(&mut self, primitive: &'static dyn Primitive, ticket: Ticket) -> Result<Option<AgentId>, Corrupt> {
        let mut section = self.engine.open(primitive, ticket.place)?;
        let abandoned_by = section.steal(self.agent.id, ticket.hold);
        section.finish();
        Ok(abandoned_by)
    }

    /// What a request holds does not suffice yet, or, `is_in`, does from now on.
    pub fn note_in(&self, Ticket { place, hold, .. }: Ticket, is_in: bool) {
        let mut contents = self.engine.contents(Space::Names, place.address());
        if let Some(holder) = contents.holder(place.address(), self.agent.id, hold) {
            holder.is_in = is_in;
            holder.since = sync::now();
        }
    }

    pub(super) fn note_stolen(&mut self, id: WaitId) {
        self.names.stolen.push_back(id);
    }

    /// The number of the next request whose hold was stolen and whose code does not know it. The request is over.
    pub fn next_stolen(&mut self) -> Option<u32> {
        while let Some(WaitId { token: number, serial }) = self.names.stolen.pop_front() {
            // Its code may have found out by itself, and the number be another's by now.
            let is_it = |request: &Ticket| u64::from(request.hold.count) == serial || fault!(StolenNumberIsAnyRequest);
            let stolen = self.request(number).filter(is_it);
            if let Some(ticket) = stolen {
                self.forget_request(ticket);
                return Some(number);
            }
        }
        None
    }

    /// The thread has ended, and its waits are gone: what its requests still hold goes to others.
    pub(super) fn end_names(&mut self) {
        let requests = std::mem::take(&mut self.names.all);
        for (number, NamedRequest { entry, generation, mode }) in requests.iter() {
            if let Ok(mut section) = self.engine.open(entry.primitive, entry.place()) {
                section.end_hold(self.agent.id, Hold::named(*mode, number, *generation));
                section.finish();
            }
        }
        for request in requests {
            self.engine.names().leave(request.entry);
        }
    }
}

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

    /// Who holds which name of a space, and who waits, all at one moment: holders first, and both in the order in which they
    /// came.
    pub fn query_names(&self, space: u32) -> Vec<NameView> {
        let Some(names) = self.names.get() else { return Vec::new() };
        let tables: Vec<MutexGuard<'_, Table>> = names.tables.iter().map(Mutex::lock).collect();
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
            for Holder { agent, hold, since, is_in } in contents.holders_of(address) {
                let held = is_in.then(|| now.saturating_duration_since(*since));
                rows.push((!is_in, *since, 0, view(entry, *agent, hold.mode, held)));
            }
            let queue = contents.queues.get(&address);
            for (ticket, id) in queue.into_iter().flat_map(|queue| queue.tickets(&contents.waiters)) {
                let waiter = &contents.waiters[id];
                if let Some(hold) = waiter.hold {
                    rows.push((true, waiter.since, ticket, view(entry, waiter.agent, hold.mode, None)));
                }
            }
        }
        rows.sort_by_key(|(waits, since, ticket, _)| (*waits, *since, *ticket));
        rows.into_iter().map(|(.., view)| view).collect()
    }
}
