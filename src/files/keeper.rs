//! The one thread that keeps times for waits in the kernel, while there are any: it does at its time what it was given to do,
//! and asks calls again to end. It knows no name and no line.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::interrupt::Interrupt;
use super::system;
use super::threads::outlive;

/// Until a call in the kernel has ended, it is asked to again.
pub const INSIST: Duration = Duration::from_millis(1);
/// A call that has not ended after this time may never do so: nobody is kept waiting for it.
const LONGEST_LEAVE: Duration = Duration::from_secs(1);
/// The thread ends when it has had nothing to do for so long.
const REST: Duration = Duration::from_secs(2);

#[derive(Default)]
struct Keeper {
    tasks: BTreeMap<Key, Deferred>,
    serial: u64,
    is_running: bool,
}

type Deferred = Box<dyn FnOnce() + Send>;
/// When something is done, and a number of its own.
type Key = (Instant, u64);

static KEEPER: Mutex<Keeper> = Mutex::new(Keeper { tasks: BTreeMap::new(), serial: 0, is_running: false });
static EARLIER: Condvar = Condvar::new();

/// Sees to it that these calls end, in which nobody is interested any more.
pub fn insist(interrupts: &[Arc<Interrupt>]) {
    for interrupt in interrupts {
        insist_later(Arc::clone(interrupt), Instant::now());
    }
}

fn insist_later(interrupt: Arc<Interrupt>, since: Instant) {
    let again = Arc::clone(&interrupt);
    let task = move || {
        if again.interrupt_again() {
            return;
        }
        if since.elapsed() >= LONGEST_LEAVE && !fault!(DeafCallIsWaitedFor) {
            drop(again.forget());
        }
        insist_later(again, since);
    };
    if add(Instant::now() + INSIST, Box::new(task)).is_err() {
        drop(interrupt.forget());
    }
}

fn keeper() -> MutexGuard<'static, Keeper> {
    // Nothing panics while it is locked.
    KEEPER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does this at its time. If no thread could be started, it is dropped instead.
pub fn add(at: Instant, task: Deferred) -> Result<(), std::io::Error> {
    let mut keeper = keeper();
    let is_earliest = keeper.tasks.first_key_value().is_none_or(|((first, _), _)| at < *first);
    let serial = keeper.serial;
    keeper.serial += 1;
    keeper.tasks.insert((at, serial), task);
    if keeper.is_running {
        if is_earliest {
            EARLIER.notify_one();
        }
        return Ok(());
    }
    let builder = thread::Builder::new().name("sablock-keeper".into()).stack_size(128 << 10);
    match system::without_signals(|| builder.spawn(run)) {
        Ok(_) => {
            keeper.is_running = true;
            Ok(())
        }
        Err(error) => {
            let task = keeper.tasks.remove(&(at, serial));
            drop(keeper);
            drop(task);
            Err(error)
        }
    }
}

fn run() {
    let mut keeper = keeper();
    loop {
        let now = Instant::now();
        let wait = match keeper.tasks.first_entry() {
            Some(first) if first.key().0 <= now => {
                let task = first.remove();
                drop(keeper);
                outlive(task);
                keeper = self::keeper();
                continue;
            }
            Some(first) => first.key().0 - now,
            None => REST,
        };
        let (guard, timeout) = EARLIER.wait_timeout(keeper, wait).unwrap_or_else(PoisonError::into_inner);
        keeper = guard;
        if timeout.timed_out() && keeper.tasks.is_empty() {
            keeper.is_running = fault!(KeeperIsBelievedToRun);
            return;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::fs::File;
    use std::io;
    use std::sync::mpsc::{channel, sync_channel};

    use super::super::interrupt::Left;
    use super::*;

    /// Longer than any wait here, however busy the machine is.
    const LONG: Duration = Duration::from_secs(20);

    /// A call that does not end though it is asked to, as of a file system that does not answer.
    #[test]
    fn nobody_is_kept_waiting_for_a_call_that_does_not_end() {
        if !system::can_interrupt() {
            return;
        }
        let interrupt = Arc::<Interrupt>::default();
        let (is_in, inside) = channel();
        let (ends, end) = sync_channel::<()>(1);
        let caller = thread::spawn({
            let interrupt = Arc::clone(&interrupt);
            move || {
                let file = File::open(std::env::current_exe().unwrap()).unwrap();
                let call = || {
                    is_in.send(()).unwrap();
                    end.recv().map_err(io::Error::other)
                };
                interrupt.run(&file, call).unwrap()
            }
        });
        inside.recv_timeout(LONG).expect("it is in its call");
        let (says, said) = channel();
        let left = Left::new(move || says.send(()).unwrap_or_default());
        interrupt.leave(&left);
        assert!(!interrupt.interrupt(), "it has to be asked again");
        assert!(!Left::is_so(left), "it may be granted what it waits for");
        let since = Instant::now();
        insist(&[Arc::clone(&interrupt)]);
        said.recv_timeout(LONG).expect("nobody waits for it any longer");
        assert!(since.elapsed() >= LONGEST_LEAVE, "most calls end sooner, and are waited for");
        assert!(!caller.is_finished());
        ends.send(()).unwrap();
        assert!(caller.join().unwrap(), "it was granted all the same");
    }

    #[test]
    fn what_is_due_earlier_is_done_earlier_though_it_was_added_later() {
        let (says, said) = channel();
        let says_later = says.clone();
        add(Instant::now() + 3 * LONG, Box::new(move || says_later.send("late").unwrap_or_default())).unwrap();
        // The keeper waits for that.
        thread::sleep(Duration::from_millis(20));
        add(Instant::now(), Box::new(move || says.send("early").unwrap_or_default())).unwrap();
        assert_eq!(said.recv_timeout(LONG), Ok("early"));
    }

    #[test]
    fn what_is_to_be_done_after_a_task_that_panics_is_done() {
        add(Instant::now(), Box::new(|| std::panic::resume_unwind(Box::new(())))).unwrap();
        let (says, said) = channel();
        add(Instant::now(), Box::new(move || says.send(()).unwrap_or_default())).unwrap();
        assert_eq!(said.recv_timeout(LONG), Ok(()));
    }
}
