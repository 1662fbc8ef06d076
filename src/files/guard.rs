//! Keeps cleaners of old files away: systemd-tmpfiles leaves alone what is in a directory that somebody has locked (`tmpfiles.d(5)`).
//! A lock that is held for days looks old, and a file that is removed and made again is another lock.

use std::fs::{File, TryLockError};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::directory::Directory;
use super::keeper;
use super::system::{self, Identity};
use crate::sync::Mutex;

/// A cleaner that is at work has the directory alone, for a moment.
const AGAIN: Duration = Duration::from_millis(100);

/// A directory that this process has locked together with others, for as long as it uses a name there.
#[derive(Debug)]
pub struct Guard {
    identity: Identity,
    directory: File,
}

pub(super) static GUARDS: LazyLock<Mutex<FxHashMap<Identity, Weak<Guard>>>> = LazyLock::new(Mutex::default);

impl Guard {
    /// That of a directory, one for the process; `None` where directories cannot be locked, or not by this user.
    pub fn of(directory: &Directory) -> Option<Arc<Self>> {
        let mut guards = GUARDS.lock();
        if let Some(guard) = guards.get(&directory.identity).and_then(Weak::upgrade) {
            return Some(guard);
        }
        let opened = system::open_directory(directory.path()).ok()?;
        let guard = Arc::new(Self { identity: directory.identity, directory: opened });
        guards.insert(directory.identity, Arc::downgrade(&guard));
        drop(guards);
        lock(&guard);
        Some(guard)
    }

    /// The descriptor that keeps the directory locked.
    pub fn descriptor(&self) -> Option<i32> {
        system::descriptor(&self.directory)
    }
}

/// Locks it, now or a little later.
fn lock(guard: &Arc<Guard>) {
    if let Err(TryLockError::WouldBlock) = guard.directory.try_lock_shared() {
        let guard = Arc::downgrade(guard);
        let again = move || {
            if let Some(guard) = guard.upgrade() {
                lock(&guard);
            }
        };
        // If no thread can be had, the directory is as it would be without any of this.
        let _ = keeper::add(Instant::now() + AGAIN, Box::new(again));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut guards = GUARDS.lock();
        // Another may have taken its place.
        if guards.get(&self.identity).is_some_and(|guard| guard.strong_count() == 0) {
            guards.remove(&self.identity);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::files::testing::Scratch;

    /// As a cleaner tries it.
    fn is_left_alone(scratch: &Scratch) -> bool {
        matches!(File::open(scratch.path()).unwrap().try_lock(), Err(TryLockError::WouldBlock))
    }

    #[test]
    fn a_directory_is_locked_while_a_name_there_is_used() {
        let scratch = Scratch::new();
        let directory = Directory::open(Some(scratch.path())).unwrap();
        assert!(!is_left_alone(&scratch));
        let guards = [(); 2].map(|()| Guard::of(&directory).unwrap());
        assert!(Arc::ptr_eq(&guards[0], &guards[1]));
        assert!(is_left_alone(&scratch));
        File::open(scratch.path()).unwrap().try_lock_shared().expect("other processes lock it, too");
        drop(guards);
        assert!(!is_left_alone(&scratch));
        assert!(!GUARDS.lock().contains_key(&directory.identity));
    }

    #[test]
    fn a_cleaner_that_is_at_work_is_waited_for_without_keeping_anybody() {
        let scratch = Scratch::new();
        let directory = Directory::open(Some(scratch.path())).unwrap();
        let cleaner = File::open(scratch.path()).unwrap();
        cleaner.lock().unwrap();
        let guard = Guard::of(&directory).unwrap();
        // It is tried more than once meanwhile.
        std::thread::sleep(3 * AGAIN);
        drop(cleaner);
        let start = Instant::now();
        while !is_left_alone(&scratch) {
            assert!(start.elapsed() < Duration::from_secs(20), "the directory is never locked");
            std::thread::yield_now();
        }
        drop(guard);
    }
}
