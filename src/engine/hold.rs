//! A hold: the part of a primitive that an agent has, or asks for.

use crate::agents::RequestId;

/// The mode in which a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Alone.
    Exclusive,
    /// Together with others of this mode.
    Shared,
}

/// The owner of a hold, who alone may release it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HoldOwner {
    /// The thread, by the primitive itself: a raw hold.
    Thread,
    /// One guard object, and nothing else.
    Guard,
}

/// The hold that an agent has, or asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// A lock.
    Lock {
        /// The mode.
        mode: Mode,
        /// The owner, who may release it.
        owner: HoldOwner,
    },
    /// A number of what is counted, which a guard owns.
    Counted {
        /// The number of them.
        count: u32,
        /// The number that there are in all, as whoever asks has it; 0 for what has no such number.
        of: u32,
    },
    /// Nothing: a waiter that is granted it passes. It brings a number, which only the primitive reads.
    Passage(u32),
    /// A lock whose holds are listed.
    Listed(ListedHold),
}

// It is copied with each waiter.
const _: () = assert!(size_of::<Option<Hold>>() == 12);

/// A hold that the engine lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedHold {
    /// The request whose hold it is, among those of its agent.
    pub request: RequestId,
    /// The mode.
    pub mode: Mode,
    /// Whether it is a part: its code needs more than this, and is not in before it has said so.
    pub is_part: bool,
}

impl Hold {
    /// To pass, with nothing to bring.
    pub const PASSAGE: Self = Self::Passage(0);

    /// Returns the hold of a lock, alone.
    pub const fn exclusive(owner: HoldOwner) -> Self {
        Self::Lock { mode: Mode::Exclusive, owner }
    }

    /// Returns the hold of a lock, together with others.
    pub const fn shared(owner: HoldOwner) -> Self {
        Self::Lock { mode: Mode::Shared, owner }
    }

    /// Returns the mode, of a lock.
    pub const fn mode(self) -> Option<Mode> {
        match self {
            Self::Lock { mode, .. } | Self::Listed(ListedHold { mode, .. }) => Some(mode),
            Self::Counted { .. } | Self::Passage(_) => None,
        }
    }

    /// Whether nobody else can hold it meanwhile.
    pub const fn is_exclusive(self) -> bool {
        matches!(self.mode(), Some(Mode::Exclusive))
    }

    /// Whether others who share it go in together with it.
    pub const fn is_shared(self) -> bool {
        matches!(self.mode(), Some(Mode::Shared))
    }

    /// Whether nothing is held once it is granted.
    pub const fn is_passage(self) -> bool {
        matches!(self, Self::Passage(_))
    }

    /// Whether what it is for comes back bit by bit, so that it has to be gathered.
    pub const fn gathers(self) -> bool {
        matches!(self, Self::Counted { count, .. } if count > 1)
    }

    /// Returns the owner, who may release it.
    pub const fn owner(self) -> HoldOwner {
        if let Self::Lock { owner, .. } = self { owner } else { HoldOwner::Guard }
    }

    /// Returns the number of what is counted; 1 for a lock.
    pub const fn count(self) -> u32 {
        if let Self::Counted { count, .. } = self { count } else { 1 }
    }
}

/// The holds that an agent has of one primitive, as its slot in the register of holds says.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Holds of the thread itself.
    pub raw: u32,
    /// Holds of guards.
    pub guarded: u32,
}

impl Counts {
    /// Both together.
    pub fn sum(self) -> u32 {
        self.raw + self.guarded
    }
}
