//! A scenario is what one check is about: who takes part, and what may happen to them.

/// The abilities of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// It may call the blocking `lock()`.
    pub blocks: bool,
    /// The number of its `lockAsync` that may be pending at once.
    pub tasks: u8,
}

/// A thread that only blocks.
pub const B: Kind = Kind { blocks: true, tasks: 0 };
/// An event loop with one asynchronous waiter.
pub const L: Kind = Kind { blocks: false, tasks: 1 };
/// An event loop with two asynchronous waiters.
pub const L2: Kind = Kind { blocks: false, tasks: 2 };
/// A thread that does both.
pub const X: Kind = Kind { blocks: true, tasks: 1 };
/// A thread that blocks, with two asynchronous waiters.
pub const X2: Kind = Kind { blocks: true, tasks: 2 };

/// The most agents of a scenario.
pub const MOST_AGENTS: usize = 4;

/// The bound that is taken for granted of the time that a loop needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Nothing: a sleep may end before any hold, a lease before any turn.
    None,
    /// A hold ends before the sleep of a loop that came for the word.
    ShortHolds,
    /// A turn ends before a lease.
    ShortTurns,
    /// A turn ends before a lease that has grown with the time that its waiter has waited, while nobody is blocked.
    LeaseGrows,
}

#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub agents: Vec<Kind>,
    /// The number of agents that may die.
    pub deaths: u8,
    /// Waits may end by timeout or abort.
    pub quits: bool,
    /// Loops may stop turning, perhaps for ever.
    pub stalls: bool,
    /// Blocked threads leave their slice for JavaScript, perhaps for ever.
    pub away: bool,
    /// Blocked threads spin before they sleep; who does gets a freed word at once.
    pub spins: bool,
    /// `tryLock` and `lockAsync(0)` are called too, and X agents wait for a lock that they hold (with a timeout).
    pub tries: bool,
    /// Holders may call `markConsistent()`.
    pub repairs: bool,
    /// A bucket-locked section is two steps, between which others go on: the freezing `fetch_or(W)`, and the rest.
    pub split_sections: bool,
    /// An offer is several steps: the flag, the push on the inbox, the call, the drain, the claim.
    pub split_offers: bool,
    /// Loops are called for the sake of other words too.
    pub other_words: bool,
    /// The bound of the loops' time that is taken for granted.
    pub bound: Bound,
    /// Holders need not unlock: then only a loop's sleep has an end.
    pub endless_holds: bool,
    /// Also check that every waiter is served, and not only the safety properties.
    pub liveness: bool,
}

impl Scenario {
    /// Waits, timeouts and aborts; nobody dies or stalls.
    pub fn of(agents: &[Kind]) -> Self {
        assert!(agents.len() <= MOST_AGENTS);
        Scenario {
            name: shape(agents),
            agents: agents.to_vec(),
            deaths: 0,
            quits: true,
            stalls: false,
            away: false,
            spins: false,
            tries: false,
            repairs: false,
            split_sections: false,
            split_offers: false,
            other_words: false,
            bound: Bound::None,
            endless_holds: false,
            liveness: false,
        }
    }

    pub fn deaths(mut self, deaths: u8) -> Self {
        self.deaths = deaths;
        self.repairs = true;
        self.named(&format!("deaths={deaths}"))
    }

    pub fn stalls(mut self) -> Self {
        self.stalls = true;
        self.named("stalls")
    }

    pub fn away(mut self) -> Self {
        self.away = true;
        self.named("away")
    }

    pub fn spins(mut self) -> Self {
        self.spins = true;
        self.named("spins")
    }

    pub fn tries(mut self) -> Self {
        self.tries = true;
        self.named("tries")
    }

    /// No agent gives up: what cannot be saved by a timeout must be right by itself.
    pub fn patient(mut self) -> Self {
        self.quits = false;
        self.named("patient")
    }

    pub fn split_sections(mut self) -> Self {
        self.split_sections = true;
        self.named("sections")
    }

    pub fn split_offers(mut self) -> Self {
        self.split_offers = true;
        self.named("offers")
    }

    pub fn other_words(mut self) -> Self {
        self.other_words = true;
        self.named("words")
    }

    /// Holds are shorter than the sleep of a loop.
    pub fn short_holds(mut self) -> Self {
        self.bound = Bound::ShortHolds;
        self.named("short-holds")
    }

    /// Turns are shorter than a lease.
    pub fn short_turns(mut self) -> Self {
        self.bound = Bound::ShortTurns;
        self.named("short-turns")
    }

    /// Leases are as long as a turn once the waiter has waited long enough.
    pub fn lease_grows(mut self) -> Self {
        self.bound = Bound::LeaseGrows;
        self.named("lease-grows")
    }

    /// Holders need not unlock.
    pub fn endless_holds(mut self) -> Self {
        self.endless_holds = true;
        self.named("endless-holds")
    }

    pub fn liveness(mut self) -> Self {
        self.liveness = true;
        self.named("LIVE")
    }

    fn named(mut self, what: &str) -> Self {
        self.name = format!("{} {what}", self.name);
        self
    }
}

/// `2B+1L2`: so many agents of each kind, a number behind the letter where one may have several tasks.
fn shape(agents: &[Kind]) -> String {
    let mut groups: Vec<(Kind, usize)> = Vec::new();
    for &kind in agents {
        match groups.iter_mut().find(|(k, _)| *k == kind) {
            Some((_, count)) => *count += 1,
            None => groups.push((kind, 1)),
        }
    }
    let name = |kind: Kind| match (kind.blocks, kind.tasks) {
        (true, 0) => "B".to_string(),
        (true, 1) => "X".to_string(),
        (true, n) => format!("X{n}"),
        (false, 1) => "L".to_string(),
        (false, n) => format!("L{n}"),
    };
    let parts: Vec<_> = groups.iter().map(|(kind, count)| format!("{count}{}", name(*kind))).collect();
    parts.join("+")
}
