//! A line: the waits of one process for a name in one mode, and its waits in the kernel.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::file::{FileFailure, Locked};
use super::hold::{Asker, FileHold};
use super::interrupt::{Interrupt, Left};
use super::keeper;

/// The outcome of a wait.
pub type FileOutcome = Result<FileHold, FileFailure>;

/// A wait.
pub struct Wanted {
    pub id: u64,
    pub asker: Asker,
    pub since: Instant,
    pub reply: Box<dyn FnOnce(FileOutcome) + Send>,
}

impl Wanted {
    /// From now on.
    pub fn new(id: u64, asker: Asker, reply: impl FnOnce(FileOutcome) + Send + 'static) -> Self {
        Self { id, asker, since: Instant::now(), reply: Box::new(reply) }
    }
}

impl std::fmt::Debug for Wanted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "wait {}", self.id)
    }
}

/// The driver of a line, which waits for the turn, and with it for the lock.
#[derive(Default, Debug)]
pub enum Driver {
    /// There is none.
    #[default]
    None,
    /// A thread; one of the waiting ones themselves until this time.
    Thread { interrupt: Arc<Interrupt>, until: Option<Instant> },
    /// The keeper tries from time to time.
    Keeper,
}

/// The one that waits for the lock without a turn, after a while: the one that is next may have been stopped.
#[derive(Default, Debug)]
pub enum Direct {
    /// There is none.
    #[default]
    None,
    /// There is none before this time, unless the gate opens.
    AtGate(SystemTime),
    /// A thread.
    Thread(Arc<Interrupt>),
    /// The keeper tries from time to time.
    Keeper,
}

/// The next step of the driver of a line.
pub enum Step {
    /// It waits for the turn.
    Turn,
    /// It waits for the lock.
    Lock,
    /// Nothing: nobody waits any more.
    End,
}

/// The line.
#[derive(Default, Debug)]
pub struct Line {
    pub wanted: VecDeque<Wanted>,
    pub driver: Driver,
    pub direct: Direct,
    /// Locked while this process is next.
    pub turn: Option<Locked>,
    /// Locked while this process waits to hold the name alone.
    pub gate: Option<Locked>,
    /// When the keeper looks after it.
    pub look_at: Option<Instant>,
}

/// The parts that are given up when nobody waits any more: files, unlocked when this is dropped, and calls in the kernel that have
/// to be ended once more.
#[must_use]
#[derive(Default)]
pub struct GivenUp {
    files: [Option<Locked>; 2],
    interrupts: Vec<Arc<Interrupt>>,
}

impl GivenUp {
    /// Sees to it that the calls end, and unlocks the files. Dropping this closes them, which takes longer. Not under a lock of its
    /// caller.
    pub fn carry_out(&self) {
        keeper::insist(&self.interrupts);
        self.files.iter().flatten().for_each(Locked::unlock);
    }
}

impl Line {
    /// If nobody waits any more, nothing of it stays in the kernel; `left` is kept until that is so.
    pub fn give_up(&mut self, left: Option<&Arc<Left>>) -> GivenUp {
        if !self.wanted.is_empty() || fault!(WithdrawnWaitStays) {
            return GivenUp::default();
        }
        if matches!(self.direct, Direct::AtGate(_) | Direct::Keeper) {
            self.direct = Direct::None;
        }
        let threads = [
            if let Driver::Thread { interrupt, .. } = &self.driver { Some(interrupt) } else { None },
            if let Direct::Thread(interrupt) = &self.direct { Some(interrupt) } else { None },
        ];
        let threads = threads.into_iter().flatten();
        threads.clone().for_each(|interrupt| left.into_iter().for_each(|left| interrupt.leave(left)));
        let again = threads.filter(|interrupt| !interrupt.interrupt());
        GivenUp { interrupts: again.cloned().collect(), files: [self.turn.take(), self.gate.take()] }
    }

    /// Somebody of it was granted the lock: others may be next, and if nobody waits any more it is as with [`Self::give_up`].
    pub fn pass_on(&mut self) -> GivenUp {
        let turn = self.turn.take();
        let mut given_up = self.give_up(None);
        given_up.files[0] = turn;
        given_up
    }

    /// Another thread is about to drive it: what ends its calls.
    pub fn leave_to_thread(&mut self) -> Arc<Interrupt> {
        let interrupt = Arc::<Interrupt>::default();
        self.driver = Driver::Thread { interrupt: Arc::clone(&interrupt), until: None };
        interrupt
    }

    /// `thread` does not drive it. Returns whether the keeper has to.
    pub fn leave_to_keeper(&mut self, thread: &Arc<Interrupt>) -> bool {
        if !self.is_driven_by(thread) {
            return false;
        }
        let is_wanted = !self.wanted.is_empty();
        self.driver = if is_wanted { Driver::Keeper } else { Driver::None };
        is_wanted
    }

    /// Whether the keeper has to drive it still.
    pub fn is_left_to_keeper(&mut self) -> bool {
        let is_left = matches!(self.driver, Driver::Keeper);
        if is_left && self.wanted.is_empty() {
            self.driver = Driver::None;
        }
        is_left && !self.wanted.is_empty()
    }

    /// Whether this thread waits for the turn.
    pub fn is_driven_by(&self, thread: &Arc<Interrupt>) -> bool {
        matches!(&self.driver, Driver::Thread { interrupt, .. } if Arc::ptr_eq(interrupt, thread))
    }
}

/// The next whole second of the clock: at these, those who share and have waited at a closed gate go in together. If each of
/// them waited for a time of its own, some of them would always be in, and whoever has closed the gate would wait for ever.
pub fn next_second(now: SystemTime) -> SystemTime {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs() + 1)
}

/// The time until then, of those who wait for that second; none if the clock was set back since, so that it is far.
pub fn left_until(second: SystemTime, now: SystemTime) -> Option<Duration> {
    second.duration_since(now).ok().filter(|left| !left.is_zero() && *left <= Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::super::system;
    use super::*;

    #[test]
    fn who_waits_for_a_second_waits_no_longer_than_one_though_the_clock_is_set_back() {
        let now = UNIX_EPOCH + Duration::from_millis(86_400_250);
        let second = next_second(now);
        assert_eq!(left_until(second, now), Some(Duration::from_millis(750)));
        assert_eq!(left_until(second, second - Duration::from_secs(1)), Some(Duration::from_secs(1)));
        for other in [second, second + Duration::from_secs(1), now - Duration::from_secs(3600)] {
            assert_eq!(left_until(second, other), None);
        }
    }

    #[test]
    fn a_thread_that_another_has_replaced_drives_the_line_no_longer() {
        let mut line = Line::default();
        let first = line.leave_to_thread();
        assert!(line.is_driven_by(&first));
        let second = line.leave_to_thread();
        assert!(line.is_driven_by(&second) && !line.is_driven_by(&first));
        line.driver = Driver::Keeper;
        assert!(!line.is_driven_by(&second));
    }

    #[test]
    fn a_line_is_the_keepers_while_somebody_waits_and_no_thread_drives_it() {
        let asker = Asker { thread: 0, wants_fence: false, is_part: false };
        let mut line = Line::default();
        line.wanted.push_back(Wanted::new(1, asker, |_| {}));
        let thread = line.leave_to_thread();
        assert!(!line.is_left_to_keeper() && line.is_driven_by(&thread));
        assert!(!line.leave_to_keeper(&Arc::default()) && line.is_driven_by(&thread), "another's");
        assert!(line.leave_to_keeper(&thread) && line.is_left_to_keeper() && line.is_left_to_keeper());
        line.wanted.clear();
        assert!(!line.is_left_to_keeper() && matches!(line.driver, Driver::None));
        let thread = line.leave_to_thread();
        assert!(!line.is_left_to_keeper() && line.is_driven_by(&thread));
        assert!(!line.leave_to_keeper(&thread) && matches!(line.driver, Driver::None));
    }

    #[test]
    fn a_wait_that_is_given_up_is_left_once_no_thread_of_its_line_may_have_been_granted_it() {
        if !system::can_interrupt() {
            return;
        }
        let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        for is_direct in [false, true] {
            let interrupts = [(); 2].map(|()| Arc::<Interrupt>::default());
            let [driver, direct] = interrupts.each_ref().map(Arc::clone);
            let driver = Driver::Thread { interrupt: driver, until: None };
            let mut line = Line { driver, direct: Direct::Thread(direct), ..Line::default() };
            let (says, said) = channel();
            let left = Left::new(move || says.send(()).unwrap_or_default());
            // One of the two is in the kernel at this moment.
            let inside = &interrupts[usize::from(is_direct)];
            let give_up = || {
                drop(line.give_up(Some(&left)));
                Ok(())
            };
            assert!(inside.run(&file, give_up).unwrap());
            assert!(!Left::is_so(left) && said.try_recv().is_err(), "it may have it; direct: {is_direct}");
            drop(inside.rest());
            assert!(said.try_recv().is_ok(), "direct: {is_direct}");
        }
    }

    #[test]
    fn what_the_keeper_has_to_do_for_a_line_ends_with_its_last_wait() {
        for (direct, stays) in [
            (Direct::AtGate(SystemTime::now()), false),
            (Direct::Keeper, false),
            (Direct::Thread(Arc::default()), true),
        ] {
            let mut line = Line { direct, ..Line::default() };
            line.give_up(None).carry_out();
            assert_eq!(!matches!(line.direct, Direct::None), stays, "{:?}", line.direct);
        }
    }
}
