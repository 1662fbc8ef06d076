//! The one thread that reads whole directories, while anybody asks who holds the names there: thousands of records take longer
//! than an event loop may be kept from its turns.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::directory::Directory;
use super::record::RecordedHolder;
use super::system;

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
            reply(Arc::clone(&listed));
        }
    }
}
