//! The atomics, locks and threads of a checker, loom or shuttle, which decides who runs next.

#[cfg(loom)]
use loom as checker;
#[cfg(shuttle)]
use shuttle as checker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::has_come;

pub use checker::sync::MutexGuard;
pub use checker::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Always: a model that is not about spinning sets its times to zero.
pub fn has_several_processors() -> bool {
    true
}

/// The number of looks that a thread still takes.
pub struct Spin {
    looks: u32,
}

#[allow(missing_docs)]
impl Spin {
    pub fn new(_: Duration) -> Self {
        Self { looks: 2 }
    }

    pub fn goes_on(&mut self, _: u64) -> bool {
        self.looks -= 1;
        self.looks > 0
    }
}

/// A thread that parks. (loom's own `unpark` also wakes a thread that waits for a mutex, which then fails.)
pub struct Thread(Arc<Parked>);

struct Parked {
    is_unparked: checker::sync::Mutex<bool>,
    unparked: checker::sync::Condvar,
}

#[allow(missing_docs)]
impl Thread {
    pub fn current() -> Self {
        Self(Arc::new(Parked {
            is_unparked: checker::sync::Mutex::new(false),
            unparked: checker::sync::Condvar::new(),
        }))
    }

    pub fn park_until(&self, until: Instant) {
        #[cfg(shuttle)]
        let _alarm = {
            let parked = Arc::clone(&self.0);
            // Under its lock, so that it comes either before the thread looks at the time or once it sleeps.
            super::virtual_time::Alarm::new(until, move || {
                drop(parked.is_unparked.lock().unwrap());
                parked.unparked.notify_one();
            })
        };
        let mut is_unparked = self.0.is_unparked.lock().unwrap();
        while !*is_unparked && !has_come(until) {
            is_unparked = self.0.unparked.wait(is_unparked).unwrap();
        }
        *is_unparked = false;
    }

    pub fn unpark(&self) {
        *self.0.is_unparked.lock().unwrap() = true;
        self.0.unparked.notify_one();
    }
}

/// The checker's mutex with parking_lot's face.
#[derive(Debug, Default)]
pub struct Mutex<T>(checker::sync::Mutex<T>);

#[allow(missing_docs)]
impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(checker::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }
}

/// The checker's read-write lock with parking_lot's face.
pub struct RwLock<T>(checker::sync::RwLock<T>);

#[allow(missing_docs)]
impl<T> RwLock<T> {
    pub fn new(value: T) -> Self {
        Self(checker::sync::RwLock::new(value))
    }

    pub fn read(&self) -> checker::sync::RwLockReadGuard<'_, T> {
        self.0.read().unwrap()
    }

    pub fn write(&self) -> checker::sync::RwLockWriteGuard<'_, T> {
        self.0.write().unwrap()
    }
}
