//! The holds of each thread, as its JS says: slots in memory that it shares with the core, so that a hold costs no call, and can
//! be read while the thread is blocked.

use std::ptr::NonNull;
use std::time::{Duration, Instant};

use super::names::{LockId, SiteId, ThreadSite};
use crate::agents::ThreadId;
use crate::sync::{AtomicU64, Ordering};

/// The number of holds of a thread that are tracked at once.
pub const SLOTS: usize = 256;
/// The numbers of one slot: serial (0: free), lock, call site, since when in the thread's milliseconds, whether it is
/// exclusive, address.
pub const SLOT_LENGTH: usize = 6;

/// A number that tells a tracked hold from every other of the process.
pub type HoldSerial = u64;

/// The slots of one thread.
pub struct HoldTable {
    data: NonNull<AtomicU64>,
    /// When the thread's clock showed `ms`.
    then: (Instant, f64),
    /// Whether the thread tells what it holds.
    pub(super) is_used: bool,
    pub(super) has_ended: bool,
}

// SAFETY: an address of shared memory, which is read by atomic operations only, and lives until the table is dropped.
unsafe impl Send for HoldTable {}

/// One hold.
#[derive(Clone, Copy, Debug)]
pub struct TrackedHold {
    /// Its serial.
    pub serial: HoldSerial,
    /// The lock.
    pub lock: LockId,
    /// From where on; 0 if that is not known.
    pub site: SiteId,
    /// Since when.
    pub since: Instant,
    /// Whether nobody else can hold it meanwhile.
    pub is_exclusive: bool,
    /// The address of the lock.
    pub address: usize,
}

/// A hold, and whose it is.
pub type HeldBy = (ThreadId, TrackedHold);

impl TrackedHold {
    /// As it is when it ends after so long.
    pub fn ended(&self, thread: ThreadId, held: Duration) -> SuspectHold {
        SuspectHold { lock: self.lock, place: (thread, self.site), held, is_terminated: false }
    }
}

/// A hold that ended late, or never.
#[derive(Clone, Copy, Debug)]
pub struct SuspectHold {
    /// The lock.
    pub lock: LockId,
    /// By whom.
    pub place: ThreadSite,
    /// For how long.
    pub held: Duration,
    /// Whether others have ended its thread.
    pub is_terminated: bool,
}

/// The tries to read two clocks at once.
const READS: usize = 5;

/// Returns a moment, and what `clock` showed then, in milliseconds. A thread may be kept from going on between two reads: the quickest
/// try counts. `None` if the clock shows nothing.
pub fn read_together(clock: impl Fn() -> Option<f64>) -> Option<(Instant, f64)> {
    let mut best = (Duration::MAX, (Instant::now(), 0.0));
    for _ in 0..READS {
        let before = Instant::now();
        let shown = clock()?;
        let took = before.elapsed();
        if took < best.0 {
            best = (took, (before + took / 2, shown));
        }
    }
    Some(best.1)
}

impl HoldTable {
    /// The slots of a thread whose clock showed so many milliseconds then. It writes into them if they are used.
    ///
    /// # Safety
    ///
    /// `data` is aligned to 8 and has room for all slots and one number more, until this table is dropped.
    pub unsafe fn new(data: NonNull<u8>, then: (Instant, f64), is_used: bool) -> Self {
        Self { data: data.cast(), then, is_used, has_ended: false }
    }

    /// Tells the thread the time, which its own clock takes longer to tell: behind the slots, in its milliseconds.
    pub fn tick(&self) {
        let (then, base) = self.then;
        let ms = base + then.elapsed().as_secs_f64() * 1e3;
        // SAFETY: behind the slots there is room for one number, by the contract of `new`. Relaxed: nothing depends on when it is seen.
        unsafe { self.data.add(SLOTS * SLOT_LENGTH).as_ref() }.store(ms.to_bits(), Ordering::Relaxed);
    }

    /// When the thread's clock showed `ms`.
    pub fn instant(&self, ms: f64) -> Instant {
        let (then, base) = self.then;
        let apart = Duration::try_from_secs_f64((ms - base).abs() / 1e3).unwrap_or_default();
        if ms >= base { then + apart } else { then.checked_sub(apart).unwrap_or(then) }
    }

    fn number(&self, index: usize) -> f64 {
        // SAFETY: inside the slots, by the contract of `new`. Relaxed: what is read while it changes is a hold that begins or ends.
        f64::from_bits(unsafe { self.data.add(index).as_ref() }.load(Ordering::Relaxed))
    }

    /// The holds of the thread now.
    pub fn read(&self) -> Vec<TrackedHold> {
        let slot = |at: usize| {
            let serial = self.number(at) as HoldSerial;
            (serial != 0).then(|| TrackedHold {
                serial,
                lock: self.number(at + 1) as LockId,
                site: self.number(at + 2) as SiteId,
                since: self.instant(self.number(at + 3)),
                is_exclusive: self.number(at + 4) != 0.0,
                address: self.number(at + 5) as usize,
            })
        };
        (0..SLOTS).filter_map(|index| slot(index * SLOT_LENGTH)).collect()
    }
}

#[cfg(test)]
impl HoldTable {
    /// With what the thread's JS has written into its first slot.
    pub fn with(slot: [f64; SLOT_LENGTH]) -> Self {
        let slots = Box::leak(vec![0.0; SLOTS * SLOT_LENGTH + 1].into_boxed_slice());
        slots[..SLOT_LENGTH].copy_from_slice(&slot);
        // SAFETY: aligned to 8, as long as it has to be, and never freed.
        unsafe { Self::new(NonNull::from(slots).cast(), (Instant::now(), 0.0), true) }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_thread_that_is_kept_from_going_on_while_it_reads_two_clocks_reads_them_again() {
        const STOP: Duration = Duration::from_millis(200);
        let (start, reads) = (Instant::now(), Cell::new(0));
        let clock = || {
            let shown = start.elapsed().as_secs_f64() * 1e3;
            // Kept in the first try and in the last.
            if reads.replace(reads.get() + 1) % (READS - 1) == 0 {
                std::thread::sleep(STOP);
            }
            Some(shown)
        };
        let (then, shown) = read_together(clock).unwrap();
        let apart = (then.duration_since(start).as_secs_f64() * 1e3 - shown).abs();
        assert!(apart < STOP.as_secs_f64() * 1e3 / 4.0, "{apart} ms");
        assert_eq!(reads.get(), READS);
    }
}
