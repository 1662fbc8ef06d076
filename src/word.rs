//! The lock word: 32 bits in shared memory, and what each legal value means.
//!
//! This module knows the bits and nothing of queues or threads. The fast paths in `lib/`,
//! single compare-exchanges on the word, get its bits from the binding.
//!
//! | owner | G | A | F | W | for the holder | for the others |
//! |-------|---|---|---|---|----------------|----------------|
//! | 0     | 0 | 0 | 0 | 0 | -              | free: one compare-exchange takes it |
//! | 0     | 0 | 1 | 0 | * | -              | free, but a holder's thread ended inside: taken by the slow path |
//! | 0     | 0 | * | 1 | 1 | -              | free, reserved for one event loop until its lease is over |
//! | id    | * | * | 0 | 0 | one compare-exchange frees it if G and A are 0 | held; nobody waits, or somebody is on his way |
//! | id    | * | * | 0 | 1 | freeing it must look at the queue | held; somebody waits and nobody is on his way |
//!
//! `W` with owner 0 and neither `A` nor `F` is written only inside a section (see [`crate::lot`]), never left behind.
//! All values are below 2^30, so that V8 keeps them as small integers.

/// The bits that name the holder: an agent's id, 0 for nobody.
pub const OWNER: u32 = (1 << 26) - 1;
/// G: a guard owns the hold, so only that guard frees it.
pub const GUARDED: u32 = 1 << 26;
/// A: a holder's thread ended inside; sticky until `markConsistent()`.
pub const ABANDONED: u32 = 1 << 27;
/// F: the free word is reserved for one event loop.
pub const RESERVED: u32 = 1 << 28;
/// W: whoever frees the word must look at the queue.
pub const WAITING: u32 = 1 << 29;

const ALL: u32 = OWNER | GUARDED | ABANDONED | RESERVED | WAITING;

/// A value of the lock word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word(pub u32);

impl Word {
    /// The holder's id, 0 if nobody holds it.
    pub const fn owner(self) -> u32 {
        self.0 & OWNER
    }

    /// Whether a holder's thread ended inside.
    pub const fn is_abandoned(self) -> bool {
        self.0 & ABANDONED != 0
    }

    /// Whether the word is kept for one event loop.
    pub const fn is_reserved(self) -> bool {
        self.0 & RESERVED != 0
    }

    /// Whether freeing the word must look at the queue.
    pub const fn is_waiting(self) -> bool {
        self.0 & WAITING != 0
    }

    /// Whether anybody who comes may take it.
    pub const fn is_takeable(self) -> bool {
        self.owner() == 0 && !self.is_reserved()
    }

    /// Whether `agent` holds it in this way: by a guard, or by itself.
    pub const fn is_held_by(self, agent: u32, guarded: bool) -> bool {
        self.0 & (OWNER | GUARDED) == hold_bits(agent, guarded)
    }

    /// Taken by `agent`; the mark of abandonment stays, a reservation ends.
    #[must_use]
    pub const fn taken(self, agent: u32, guarded: bool) -> Self {
        Self(self.0 & ABANDONED | hold_bits(agent, guarded))
    }

    /// Freed; the mark of abandonment stays.
    #[must_use]
    pub const fn freed(self) -> Self {
        Self(self.0 & ABANDONED)
    }

    /// Freed for a holder whose thread ended inside.
    #[must_use]
    pub const fn freed_for_dead(self) -> Self {
        Self(ABANDONED)
    }

    /// With or without the reservation.
    #[must_use]
    pub const fn reserved(self, on: bool) -> Self {
        Self(if on { self.0 | RESERVED } else { self.0 & !RESERVED })
    }

    /// Without the mark of abandonment.
    #[must_use]
    pub const fn consistent(self) -> Self {
        Self(self.0 & !ABANDONED)
    }

    /// The value that a section stores at its end: W is set when somebody waits whom no fast path may pass by.
    #[must_use]
    pub const fn closed(self, anybody_queued: bool) -> Self {
        let must_look = anybody_queued && self.0 & (OWNER | ABANDONED | RESERVED) != 0;
        Self(if must_look { self.0 | WAITING } else { self.0 & !WAITING })
    }

    /// Whether sablock could have written this value: `issued` tells the ids that were given out,
    /// `queued` and `reservation` what the queue of the word says.
    pub fn is_plausible(self, queued: bool, reservation: bool, issued: impl FnOnce(u32) -> bool) -> bool {
        let owner = self.owner();
        self.0 & !ALL == 0
            && (owner != 0 || self.0 & GUARDED == 0)
            && (!self.is_reserved() || owner == 0)
            && self.is_reserved() == reservation
            && (!self.is_waiting() || queued && self.0 & (OWNER | ABANDONED | RESERVED) != 0)
            && (owner == 0 || issued(owner))
    }
}

const fn hold_bits(agent: u32, guarded: bool) -> u32 {
    if guarded { agent | GUARDED } else { agent }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: u32 = 70_000;
    const OTHER: u32 = 70_001;

    #[test]
    fn transitions_follow_the_table() {
        for (name, result, expected) in [
            ("free, taken", Word(0).taken(ME, false), ME),
            ("free, taken by a guard", Word(0).taken(ME, true), ME | GUARDED),
            ("abandoned, taken: still marked", Word(ABANDONED).taken(ME, false), ME | ABANDONED),
            ("reserved, taken: the reservation ends", Word(RESERVED | WAITING).taken(ME, false), ME),
            ("held, freed", Word(ME | WAITING).freed(), 0),
            ("held by a guard, freed", Word(ME | GUARDED).freed(), 0),
            ("held and marked, freed: still marked", Word(ME | ABANDONED | WAITING).freed(), ABANDONED),
            ("held by the dead, freed: marked", Word(OTHER | GUARDED | WAITING).freed_for_dead(), ABANDONED),
            ("free, reserved", Word(0).reserved(true), RESERVED),
            ("reservation over", Word(RESERVED | ABANDONED).reserved(false), ABANDONED),
            ("held and marked, made consistent", Word(ME | ABANDONED | WAITING).consistent(), ME | WAITING),
            ("held, somebody queued", Word(ME).closed(true), ME | WAITING),
            ("held, nobody queued", Word(ME | WAITING).closed(false), ME),
            ("free, somebody on his way: open to all", Word(WAITING).closed(true), 0),
            ("free and marked, somebody queued", Word(ABANDONED).closed(true), ABANDONED | WAITING),
            ("reserved, somebody queued", Word(RESERVED).closed(true), RESERVED | WAITING),
        ] {
            assert_eq!(result, Word(expected), "{name}");
        }
    }

    #[test]
    fn a_hold_is_its_own_kind_only() {
        assert!(Word(ME | WAITING | ABANDONED).is_held_by(ME, false));
        assert!(!Word(ME | GUARDED).is_held_by(ME, false));
        assert!(Word(ME | GUARDED).is_held_by(ME, true));
        assert!(!Word(OTHER).is_held_by(ME, false));
    }

    #[test]
    fn values_that_no_sablock_wrote_are_told_apart() {
        let issued = |id| id == ME;
        for (value, queued, reservation, plausible) in [
            (0, false, false, true),
            (ME, false, false, true),
            (ME | GUARDED | ABANDONED | WAITING, true, false, true),
            (ABANDONED, false, false, true),
            (RESERVED | WAITING, true, true, true),
            (1, false, false, false),
            (2, false, false, false),
            (OTHER, false, false, false),
            (u32::MAX, true, true, false),
            (1 << 30, false, false, false),
            (1 << 31, false, false, false),
            (GUARDED, false, false, false),
            (WAITING, true, false, false),
            (ME | WAITING, false, false, false),
            (RESERVED, true, false, false),
            (ME | RESERVED, true, true, false),
            (0, true, true, false),
        ] {
            assert_eq!(Word(value).is_plausible(queued, reservation, issued), plausible, "{value:#x}");
        }
    }
}
