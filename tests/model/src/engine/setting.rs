//! One scenario, with at most one fault.

use super::fault::Fault;
use crate::primitives::{Id, Mutex, Once, Request, RwLock, Semaphore, Word};

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A free word is offered, newcomers may take it; bounded.
    Barging,
    /// Grants go in the order of the queue, and are final.
    Strict,
}

/// The place where holds are counted that the word's owner cannot say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// In the word, by compare-exchange; each thread notes its share in a slot, with a mark around the pair.
    Word,
    /// As `Word`, but a release is a `fetch_add`, which also succeeds beside a section.
    WordByAdding,
    /// In the slots alone: a reader counts itself in its slot, then looks at the word; a writer marks the word, then sums.
    Slots,
}

/// The activity of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub blocks: bool,
    pub awaits: bool,
    pub asks: &'static [(usize, Request)],
}

#[derive(Clone, Debug)]
pub struct Engine {
    pub name: String,
    pub words: Vec<(Word, Order)>,
    pub count: Count,
    pub agents: Vec<Kind>,
    /// The number of threads that may end.
    pub deaths: u8,
    /// Waits may end by timeout or abort.
    pub quits: bool,
    /// Promises have a deadline, at which the clock ends their wait.
    pub deadlines: bool,
    /// Loops may stop turning, perhaps for ever.
    pub stalls: bool,
    /// One-try verbs too.
    pub tries: bool,
    /// A holder of one word may ask for the other.
    pub nests: bool,
    /// Writers may downgrade, and readers may try to upgrade.
    pub modes: bool,
    /// Blocked threads look between two slices of their sleep, and may be away then.
    pub slices: bool,
    /// A lease is long enough for a loop that turns.
    pub short_turns: bool,
    /// A section is two steps: the setting of W, and the rest.
    pub split: bool,
    pub liveness: bool,
    pub fault: Option<Fault>,
}

/// `Br+Lw`: who blocks (B), awaits (L) or does both (X), and asks for what: a lock or to write (w), to read (r), permits.
fn shape(agents: &[Kind]) -> String {
    let letter = |kind: &Kind| match (kind.blocks, kind.awaits) {
        (true, true) => "X",
        (true, false) => "B",
        _ => "L",
    };
    let ask = |(_, request): &(usize, Request)| match request {
        Request::Exclusive => "w".to_string(),
        Request::Shared => "r".to_string(),
        Request::Permits(permits) => permits.to_string(),
    };
    let name = |kind: &Kind| format!("{}{}", letter(kind), kind.asks.iter().map(ask).collect::<String>());
    agents.iter().map(name).collect::<Vec<_>>().join("+")
}

pub fn mutex() -> (Word, Order) {
    (Word::Mutex(Mutex::default()), Order::Barging)
}

/// A mutex in strict order, as named locks are.
pub fn named_lock() -> (Word, Order) {
    (Word::Mutex(Mutex::default()), Order::Strict)
}

pub fn rwlock() -> (Word, Order) {
    (Word::RwLock(RwLock::default()), Order::Barging)
}

pub fn once() -> (Word, Order) {
    (Word::Once(Once::default()), Order::Strict)
}

pub fn semaphore(permits: u8, order: Order) -> (Word, Order) {
    (Word::Semaphore(Semaphore { available: permits, waiters: false }), order)
}

impl Engine {
    pub fn of(name: &str, words: &[(Word, Order)], agents: &[Kind]) -> Self {
        Engine {
            name: format!("{name} {}", shape(agents)),
            words: words.to_vec(),
            count: Count::Word,
            agents: agents.to_vec(),
            deaths: 0,
            quits: true,
            deadlines: false,
            stalls: false,
            tries: false,
            nests: false,
            modes: false,
            slices: false,
            short_turns: false,
            split: false,
            liveness: false,
            fault: None,
        }
    }

    fn named(mut self, what: &str) -> Self {
        self.name = format!("{} {what}", self.name);
        self
    }

    pub fn deaths(mut self, deaths: u8) -> Self {
        self.deaths = deaths;
        self.named(&format!("deaths={deaths}"))
    }

    pub fn patient(mut self) -> Self {
        self.quits = false;
        self.named("patient")
    }

    pub fn deadlines(mut self) -> Self {
        self.deadlines = true;
        self.named("deadlines")
    }

    pub fn stalls(mut self) -> Self {
        self.stalls = true;
        self.named("stalls")
    }

    pub fn tries(mut self) -> Self {
        self.tries = true;
        self.named("tries")
    }

    pub fn nests(mut self) -> Self {
        self.nests = true;
        self.named("nests")
    }

    pub fn modes(mut self) -> Self {
        self.modes = true;
        self.named("modes")
    }

    pub fn slices(mut self) -> Self {
        self.slices = true;
        self.named("slices")
    }

    pub fn sections(mut self) -> Self {
        self.split = true;
        self.named("sections")
    }

    pub fn short_turns(mut self) -> Self {
        self.short_turns = true;
        self.named("short-turns")
    }

    pub fn slots(mut self) -> Self {
        self.count = Count::Slots;
        self.named("slots")
    }

    pub fn adding(mut self) -> Self {
        self.count = Count::WordByAdding;
        self.named("adding")
    }

    pub fn liveness(mut self) -> Self {
        self.liveness = true;
        self.named("LIVE")
    }

    pub fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    pub fn kind(&self, id: Id) -> Kind {
        self.agents[id as usize - 1]
    }

    pub fn is_strict(&self, word: usize) -> bool {
        self.words[word].1 == Order::Strict
    }

    /// Whether this hold is counted by a slot alone.
    pub fn is_in_slots(&self, request: Request) -> bool {
        self.count == Count::Slots && request == Request::Shared
    }
}
