//! Looking on for some microseconds before a thread sleeps, in case the word comes meanwhile.
//!
//! First unqueued (a *spin*), then, if holds are long enough for that to pay, queued (it *lingers*, see [`crate::parker`]).
//! Nobody relies on it: without it the lock is as right, and slower.

use std::time::Duration;

use crate::agent::AgentId;
use crate::lot::{Bucket, Lot};
use crate::shared_word::SharedWord;
use crate::sync::{self, AtomicU32, Ordering};
use crate::word::Word;

/// What spins have seen of the holds of a bucket's words: how often in a row one and the same holder was there all the time.
/// A loop that locks again at once can look like that by chance, hence twice.
// Relaxed throughout: a hint that guards no data.
#[derive(Default)]
pub(crate) struct HoldLengths(AtomicU32);

impl HoldLengths {
    const LONG: u32 = 2;
    const MOST: u32 = 4;

    /// Whether holds are longer than a spin.
    fn are_long(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= Self::LONG
    }

    fn note(&self, change: impl FnOnce(u32) -> u32) {
        self.0.store(change(self.0.load(Ordering::Relaxed)).min(Self::MOST), Ordering::Relaxed);
    }
}

impl Lot {
    /// Looks on until `agent` could take the word, for a few microseconds at most. One thread for each bucket, so that
    /// spinners do not fight; not while W says that others wait, unless to see whether holds are still long; not on one
    /// processor, where the holder cannot go on.
    ///
    /// A word that was free for one look only is left to the thread that runs: who unlocks and locks in a loop gets more
    /// done than two that take turns, and others get their turn by [`crate::lot::Patience`].
    pub(crate) fn spin(&self, agent: AgentId, word: SharedWord, guarded: bool) -> bool {
        if !pays(self.patience.spin) {
            return false;
        }
        let Bucket { spinning, holds, .. } = self.bucket(word.address());
        // Relaxed, here and below: hints that guard no data.
        if spinning.swap(true, Ordering::Relaxed) {
            return false;
        }
        let until = sync::now() + self.patience.spin;
        let mine = Word(0).taken(agent, guarded).0;
        let look = || Word(word.atomic().load(Ordering::Relaxed));
        // Acquire: pairs with the release of the unlock that wrote 0.
        let take = || word.atomic().compare_exchange(0, mine, Ordering::Acquire, Ordering::Relaxed).is_ok();
        let mut last = look();
        let mut is_steady = last.owner() != 0;
        let acquired = loop {
            let seen = look();
            if seen.0 == 0 && last.0 == 0 && take() {
                holds.note(|long| long.saturating_sub(1));
                break true;
            }
            if seen.is_waiting() && !holds.are_long() {
                break false;
            }
            is_steady &= seen.owner() == last.owner();
            last = seen;
            if sync::now() >= until {
                holds.note(|long| if is_steady { long + 1 } else { long.saturating_sub(2) });
                break false;
            }
            std::hint::spin_loop();
        };
        spinning.store(false, Ordering::Relaxed);
        acquired
    }

    /// How long a waiter looks on once it is queued; `None` if that would not pay.
    pub(crate) fn linger_time(&self, word: SharedWord) -> Option<Duration> {
        let time = self.patience.linger;
        (self.bucket(word.address()).holds.are_long() && pays(time)).then_some(time)
    }

    /// Reads the word until `is_done`, for as long as a sleep and a wake-up would cost; true if it came to that.
    pub(crate) fn linger_until(&self, word: SharedWord, is_done: impl Fn(Word) -> bool) -> bool {
        // Relaxed: the section that follows decides.
        let look = |_| is_done(Word(word.atomic().load(Ordering::Relaxed)));
        pays(self.patience.linger) && sync::look_on(self.patience.linger, look)
    }
}

/// Whether to look on for so long may be of use at all.
fn pays(time: Duration) -> bool {
    !time.is_zero() && has_several_processors()
}

#[cfg(not(loom))]
fn has_several_processors() -> bool {
    static SEVERAL: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *SEVERAL.get_or_init(|| std::thread::available_parallelism().is_ok_and(|count| count.get() > 1))
}

#[cfg(loom)]
fn has_several_processors() -> bool {
    false
}
