//! The one thread that reads whole directories, while anybody asks who holds the names there: thousands of records take longer
//! than an event loop may be kept from its turns.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::directory::Directory;
use super::record::RecordedHolder;
use super::system;
use super::threads::outlive;

/// The result of [`Directory::holders`] for other processes, for all who asked before it was called.
pub type Listing = Arc<io::Result<Vec<(Vec<u16>, RecordedHolder)>>>;

type Callback = Box<dyn FnOnce(Listing) + Send>;

struct Reader {
    asked: Vec<(Arc<Directory>, Vec<Callback>)>,
    is_running: bool,
}

static READER: Mutex<Reader> = Mutex::new(Reader { asked: Vec::new(), is_running: false });

fn reader() -> MutexGuard<'static, Reader> {
    // Nothing panics while it is locked.
    READER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks for the holders of names of the directory, once it was read. `reply` is called on another thread; on this one only if the
/// system refuses any other.
pub fn list(directory: &Arc<Directory>, reply: impl FnOnce(Listing) + Send + 'static) {
    let mut reader = reader();
    // All who ask before the reading begins share one.
    match reader.asked.iter_mut().find(|(asked, _)| Arc::ptr_eq(asked, directory)) {
        Some((_, replies)) => replies.push(Box::new(reply)),
        None => reader.asked.push((Arc::clone(directory), vec![Box::new(reply)])),
    }
    if reader.is_running {
        return;
    }
    reader.is_running = true;
    drop(reader);
    let builder = thread::Builder::new().name("sablock-reader".into()).stack_size(128 << 10);
    if system::without_signals(|| builder.spawn(run)).is_err() {
        run();
    }
}

/// Reads until nobody asks any more.
fn run() {
    loop {
        let mut reader = reader();
        if reader.asked.is_empty() {
            reader.is_running = false;
            return;
        }
        let (directory, replies) = reader.asked.remove(0);
        drop(reader);
        let mut listed = directory.holders();
        if let Ok(holders) = &mut listed {
            holders.retain(|(_, holder)| !holder.is_here());
        }
        let listed = Arc::new(listed);
        for reply in replies {
            outlive(|| reply(Arc::clone(&listed)));
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::sync::mpsc::{Sender, channel};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::files::name::{FileRole, LockName};
    use crate::files::record::{Status, encode};
    use crate::files::testing::Scratch;

    /// A directory in which this process holds the name `a`, the first process of the system `b`, and one that has ended `c`.
    fn directory(scratch: &Scratch) -> Arc<Directory> {
        let status = Status { is_held: true, is_in: true, is_abandoned: false };
        let here = RecordedHolder::now(0);
        let of = |process| RecordedHolder { process, started: 0, ..here };
        for (unit, holder) in [(97, here), (98, of(1)), (99, of(u32::MAX))] {
            let name = LockName::new(&[unit]);
            fs::write(scratch.path().join(name.file(FileRole::Info)), encode(&name, status, &holder, 0)).unwrap();
        }
        Arc::new(Directory::open(Some(scratch.path())).unwrap())
    }

    fn ask(directory: &Arc<Directory>, told: &Sender<Listing>) {
        let told = told.clone();
        list(directory, move |listing| told.send(listing).unwrap());
    }

    #[test]
    fn all_who_ask_are_told_who_else_holds_and_those_who_ask_meanwhile_by_one_reading() {
        const LONG: Duration = Duration::from_secs(20);
        let scratches = [(); 2].map(|()| Scratch::new());
        let [first, second] = scratches.each_ref().map(directory);
        for _ in 0..2 {
            let ((told, tells), (go_on, goes_on)) = (channel(), channel::<()>());
            // The thread is busy with this one until the others have asked.
            list(&first, move |_| goes_on.recv_timeout(LONG).unwrap_or_default());
            for directory in [&first, &second, &first] {
                ask(directory, &told);
            }
            assert!(tells.try_recv().is_err());
            drop(go_on);
            let listings = [(); 3].map(|()| tells.recv_timeout(LONG).unwrap());
            for listing in &listings {
                let names: Vec<_> = listing.as_ref().as_ref().unwrap().iter().map(|(units, _)| units.clone()).collect();
                assert_eq!(names, [[98]]);
            }
            assert!(Arc::ptr_eq(&listings[0], &listings[1]) && !Arc::ptr_eq(&listings[0], &listings[2]));
            let end = Instant::now() + LONG;
            while reader().is_running {
                assert!(Instant::now() < end, "it reads on");
                thread::yield_now();
            }
        }
    }

    #[test]
    fn whoever_asks_after_one_whose_reply_panics_is_told() {
        let scratch = Scratch::new();
        let (directory, (told, tells)) = (directory(&scratch), channel());
        list(&directory, |_| std::panic::resume_unwind(Box::new(())));
        ask(&directory, &told);
        assert!(tells.recv_timeout(Duration::from_secs(20)).is_ok());
    }
}
