//! Which guards of one thread have lent their hold to a wait.
//!
//! The word says that a guard of this thread holds it, and not which one. That is enough as long as each guard's hold lasts
//! until the guard frees it. A `Condition.waitAsync` lends a hold away meanwhile: another guard of the same thread may hold
//! the word then, and neither must free the other's hold.
//!
//! Therefore each guard notes the *era* in which it was made, and each wait that takes a guard's hold away ends an era. Of the
//! guards
//! of one word that live at the same time at most one was made in each era, since the one before must be away when the next is made.
//! A guard whose hold goes away for the first time is younger than all guards of its word that are away: it lies in the range
//! of eras from the youngest of those to now, alone. Nobody else needs to know of any guard: to lock and to unlock
//! costs nothing while no hold is away.
//!
//! [`LentHolds`] knows neither words nor waits.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::agents::is_sparse;

/// A time between two departures of this thread; the first is 1.
pub type Era = u64;

/// The whereabouts of a guard's hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whereabouts {
    /// With the guard, for all that is known.
    Here,
    /// Lent to a wait.
    Away,
    /// A wait took it and could not lock the word again.
    Lost,
}

/// The eras after `after`, up to the key, in which one guard lies.
struct Range {
    after: Era,
    whereabouts: Whereabouts,
    /// The number of those that want to know when the guard is spent.
    watchers: usize,
}

impl Range {
    /// Whether the guard has to be distinguished from others of its word.
    fn counts(&self) -> bool {
        self.whereabouts != Whereabouts::Here || self.watchers > 0
    }
}

/// The ranges of one word, by their last era.
#[derive(Default)]
struct WordRanges {
    ranges: BTreeMap<Era, Range>,
    /// The range of the guard that was away and holds the word now. There is one at most.
    here: Option<Era>,
    /// The number of ranges that count.
    counting: usize,
}

impl WordRanges {
    fn range_of(&self, era: Era) -> Option<Era> {
        let (last, range) = self.ranges.range(era..).next()?;
        (range.after < era).then_some(*last)
    }

    /// The range of the guard that holds the word, in `era`.
    fn current(&mut self, era: Era) -> Era {
        // One that has been away, or is watched, and has not been spent since, or `end` would have said so.
        *self.here.get_or_insert_with(|| {
            let after = self.ranges.last_key_value().map_or(0, |(last, _)| *last);
            self.ranges.insert(era, Range { after, whereabouts: Whereabouts::Here, watchers: 0 });
            era
        })
    }

    fn change(&mut self, last: Era, act: impl FnOnce(&mut Range)) {
        let Some(range) = self.ranges.get_mut(&last) else { return };
        let did_count = range.counts();
        act(range);
        self.counting = self.counting + usize::from(range.counts()) - usize::from(did_count);
    }

    fn set(&mut self, last: Era, whereabouts: Whereabouts) {
        self.change(last, |range| range.whereabouts = whereabouts);
        if whereabouts == Whereabouts::Here && self.ranges.contains_key(&last) {
            self.here = Some(last);
        } else {
            self.here.take_if(|here| *here == last);
        }
    }
}

/// The holds of one thread's guards that are not where their guards are. Keyed by the address of the word.
#[derive(Default)]
pub struct LentHolds(FxHashMap<usize, WordRanges>);

impl LentHolds {
    /// Whether every hold is with its guard.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The guard that holds the word lends its hold to a wait, which ends `era`. Returns the hold's number.
    pub fn depart(&mut self, address: usize, era: Era) -> Era {
        let word = self.0.entry(address).or_default();
        let number = word.current(era);
        word.set(number, Whereabouts::Away);
        number
    }

    /// Remembers the guard that holds the word, in `era`, which ends. Returns the hold's number.
    pub fn watch(&mut self, address: usize, era: Era) -> Era {
        let word = self.0.entry(address).or_default();
        let number = word.current(era);
        word.change(number, |range| range.watchers += 1);
        number
    }

    /// The guard of the hold `number` need not be remembered any more, on behalf of one who watched it.
    pub fn unwatch(&mut self, address: usize, number: Era) {
        self.change(address, |word| word.change(number, |range| range.watchers -= 1));
    }

    /// The hold `number` is with its guard again.
    pub fn arrive(&mut self, address: usize, number: Era) {
        self.change(address, |word| word.set(number, Whereabouts::Here));
    }

    /// The hold `number` will not come back.
    pub fn lose(&mut self, address: usize, number: Era) {
        self.change(address, |word| word.set(number, Whereabouts::Lost));
    }

    /// The whereabouts of the hold of the guard that was made in `era`, and the hold's number; 0 if nothing is known of it. A number
    /// is an era of its guard too.
    pub fn find(&self, address: usize, era: Era) -> (Whereabouts, Era) {
        let range = self.0.get(&address).and_then(|word| Some((word, word.range_of(era)?)));
        range.map_or((Whereabouts::Here, 0), |(word, last)| (word.ranges[&last].whereabouts, last))
    }

    /// The guard that was made in `era` is spent.
    pub fn end(&mut self, address: usize, era: Era) {
        self.change(address, |word| {
            let Some(last) = word.range_of(era) else { return };
            let range = word.ranges.remove(&last);
            word.counting -= usize::from(range.is_some_and(|range| range.counts()));
            word.here.take_if(|here| *here == last);
        });
    }

    /// The words that have a hold which is with a wait.
    #[cfg(feature = "audit")]
    pub fn away(&self) -> impl Iterator<Item = usize> {
        let is_away = |word: &WordRanges| word.ranges.values().any(|range| range.whereabouts == Whereabouts::Away);
        self.0.iter().filter(move |(_, word)| is_away(word)).map(|(address, _)| *address)
    }

    fn change(&mut self, address: usize, act: impl FnOnce(&mut WordRanges)) {
        let Some(word) = self.0.get_mut(&address) else { return };
        act(word);
        if word.counting == 0 {
            // One guard of this word lives at most: there is nothing to distinguish.
            self.0.remove(&address);
            if self.0.is_empty() && is_sparse(0, self.0.capacity()) {
                self.0 = FxHashMap::default();
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Whereabouts::{Away, Here, Lost};
    use super::*;
    use crate::agents::SPARE;

    const WORD: usize = 8;

    fn whereabouts(holds: &LentHolds, era: Era) -> Whereabouts {
        holds.find(WORD, era).0
    }

    #[test]
    fn a_guard_is_away_while_its_own_hold_is() {
        let mut holds = LentHolds::default();
        let first = holds.depart(WORD, 1);
        assert_eq!((whereabouts(&holds, 1), whereabouts(&holds, 2)), (Away, Here));
        let second = holds.depart(WORD, 2);
        assert_eq!((whereabouts(&holds, 1), whereabouts(&holds, 2)), (Away, Away));
        holds.arrive(WORD, first);
        assert_eq!((whereabouts(&holds, 1), whereabouts(&holds, 2)), (Here, Away));
        assert_eq!((holds.find(WORD, first), holds.find(WORD, second)), ((Here, first), (Away, second)));
        assert!(!holds.is_empty());
        holds.arrive(WORD, second);
        assert!(holds.is_empty());
    }

    #[test]
    fn a_guard_that_has_been_back_goes_away_under_its_old_number() {
        let mut holds = LentHolds::default();
        let first = holds.depart(WORD, 1);
        holds.depart(WORD, 2);
        holds.arrive(WORD, first);
        assert_eq!(holds.depart(WORD, 3), first);
        assert_eq!((whereabouts(&holds, 1), whereabouts(&holds, 3), whereabouts(&holds, 4)), (Away, Here, Here));
    }

    #[test]
    fn the_guard_after_one_that_was_freed_is_distinguished_from_it() {
        let mut holds = LentHolds::default();
        let first = holds.depart(WORD, 1);
        holds.depart(WORD, 2);
        holds.arrive(WORD, first);
        holds.end(WORD, 1);
        assert_eq!((whereabouts(&holds, 1), whereabouts(&holds, 2)), (Here, Away), "it is spent");
        assert_eq!(holds.depart(WORD, 3), 3);
        assert_eq!((whereabouts(&holds, 2), whereabouts(&holds, 3)), (Away, Away));
        holds.arrive(WORD, 3);
        assert_eq!((whereabouts(&holds, 2), whereabouts(&holds, 3)), (Away, Here));
    }

    #[test]
    fn a_lost_hold_does_not_come_back_until_its_guard_is_ended() {
        let mut holds = LentHolds::default();
        let number = holds.depart(WORD, 5);
        holds.lose(WORD, number);
        assert_eq!((whereabouts(&holds, 5), whereabouts(&holds, 6)), (Lost, Here));
        holds.end(WORD, 6);
        assert_eq!(whereabouts(&holds, 5), Lost);
        holds.end(WORD, 5);
        assert!(holds.is_empty());
    }

    #[test]
    fn a_watched_guard_is_known_until_it_is_spent() {
        let mut holds = LentHolds::default();
        let number = holds.watch(WORD, 1);
        assert_eq!(holds.find(WORD, number), (Here, number));
        assert_eq!((holds.depart(WORD, 2), whereabouts(&holds, number)), (number, Away));
        holds.arrive(WORD, number);
        assert_eq!(holds.find(WORD, number), (Here, number));
        holds.end(WORD, 1);
        assert_eq!((holds.find(WORD, number), holds.is_empty()), ((Here, 0), true));
        let number = holds.watch(WORD, 3);
        holds.unwatch(WORD, number);
        assert!(holds.is_empty());
    }

    #[test]
    fn a_guard_that_two_watch_is_known_until_both_are_done() {
        let mut holds = LentHolds::default();
        let number = holds.watch(WORD, 1);
        assert_eq!(holds.watch(WORD, 2), number);
        holds.unwatch(WORD, number);
        assert_eq!(holds.find(WORD, number), (Here, number), "the other goes on");
        holds.unwatch(WORD, number);
        assert!(holds.is_empty());
    }

    #[test]
    fn the_end_of_a_wait_whose_guard_is_spent_leaves_the_next_guard_alone() {
        for settle in [LentHolds::arrive, LentHolds::lose, LentHolds::unwatch] {
            let mut holds = LentHolds::default();
            let spent = holds.depart(WORD, 1);
            holds.depart(WORD, 2);
            holds.end(WORD, 1);
            settle(&mut holds, WORD, spent);
            assert_eq!(holds.depart(WORD, 3), 3);
            assert_eq!((whereabouts(&holds, 2), whereabouts(&holds, 3)), (Away, Away));
        }
    }

    #[test]
    fn that_nobody_watches_a_spent_guard_any_more_leaves_others_away() {
        let mut holds = LentHolds::default();
        let watched = holds.watch(WORD, 1);
        let away = holds.depart(WORD + 8, 1);
        holds.end(WORD, 1);
        holds.unwatch(WORD, watched);
        assert!(!holds.is_empty());
        holds.arrive(WORD + 8, away);
        holds.unwatch(WORD, watched);
        assert!(holds.is_empty(), "none is");
    }

    #[test]
    fn memory_follows_what_is_lent() {
        let mut holds = LentHolds::default();
        let many = 16 * SPARE;
        let numbers: Vec<Era> = (0..many).map(|address| holds.depart(address, 1)).collect();
        for (address, number) in numbers.iter().enumerate().skip(1) {
            holds.arrive(address, *number);
        }
        assert_eq!(holds.find(0, numbers[0]), (Away, numbers[0]));
        holds.arrive(0, numbers[0]);
        assert!(holds.is_empty() && holds.0.capacity() <= SPARE);
    }

    /// Against a list of all guards, in which nothing has to be found out.
    #[test]
    fn every_guard_is_distinguished_whatever_comes_after_what() {
        struct Guard {
            era: Era,
            number: Option<Era>,
            lost: bool,
        }
        let mut seed = 1_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        for _ in 0..2000 {
            let (mut holds, mut guards, mut era) = (LentHolds::default(), Vec::<Guard>::new(), 1);
            for _ in 0..60 {
                let current = guards.iter().position(|guard| guard.number.is_none() && !guard.lost);
                let missing: Vec<usize> = (0..guards.len()).filter(|index| guards[*index].number.is_some()).collect();
                match (random(6), current) {
                    (0 | 1, None) => guards.push(Guard { era, number: None, lost: false }),
                    (0 | 1, Some(index)) => {
                        guards[index].number = Some(holds.depart(WORD, era));
                        era += 1;
                    }
                    (2, None) if !missing.is_empty() => {
                        let guard = &mut guards[missing[random(missing.len())]];
                        holds.arrive(WORD, guard.number.take().unwrap());
                    }
                    (3, Some(index)) => {
                        let guard = guards.remove(index);
                        holds.end(WORD, guard.era);
                    }
                    (4, _) if !missing.is_empty() => {
                        let guard = guards.remove(missing[random(missing.len())]);
                        holds.end(WORD, guard.era);
                    }
                    (5, _) if !missing.is_empty() => {
                        let guard = &mut guards[missing[random(missing.len())]];
                        holds.lose(WORD, guard.number.take().unwrap());
                        guard.lost = true;
                    }
                    // On another word.
                    _ => era += random(2) as u64,
                }
                for guard in &guards {
                    let expected = if guard.lost {
                        Lost
                    } else if guard.number.is_some() {
                        Away
                    } else {
                        Here
                    };
                    assert_eq!(whereabouts(&holds, guard.era), expected);
                }
            }
            for guard in &guards {
                holds.end(WORD, guard.era);
            }
            assert!(holds.is_empty());
        }
    }
}
