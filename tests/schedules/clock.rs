//! The engine's clock in virtual time.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use sablock::engine::{Deadline, Engine, Timers};
use sablock::sync::virtual_time::Alarm;

use super::one_in;

/// Keeps times until the one that lets time pass comes to fire them.
#[derive(Clone, Default)]
pub struct VirtualClock(Arc<Mutex<Times>>);

#[derive(Default)]
struct Times {
    deadlines: HashMap<u64, Deadline>,
    /// By the serial of a deadline, or the generation of a lease, which no deadline has.
    alarms: HashMap<u64, Alarm>,
    due: Vec<Due>,
}

enum Due {
    Deadline(u64),
    Lease(usize, u64),
}

impl VirtualClock {
    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap()
    }

    fn set_alarm(&self, serial: u64, at: Instant, due: Due) {
        let clock = self.clone();
        let alarm = Alarm::new(at, move || clock.times().due.push(due));
        let _former = self.times().alarms.insert(serial, alarm);
    }

    fn forget(&self, serial: u64) {
        let _alarm = self.times().alarms.remove(&serial);
    }

    /// Tells the engine of the times that have come.
    pub fn fire(&self, engine: &Engine) {
        let due = std::mem::take(&mut self.times().due);
        for due in due {
            match due {
                Due::Deadline(serial) => {
                    self.forget(serial);
                    let deadline = self.times().deadlines.remove(&serial);
                    // Else it was cancelled.
                    if let Some(deadline) = deadline {
                        engine.expire(&deadline);
                    }
                }
                Due::Lease(address, generation) => {
                    self.forget(generation);
                    engine.end_lease(address, generation);
                }
            }
        }
    }

    /// Returns the number of deadlines that are kept.
    pub fn deadlines(&self) -> usize {
        self.times().deadlines.len()
    }
}

impl Timers for VirtualClock {
    fn deadline(&self, deadline: Deadline, at: Instant) -> io::Result<()> {
        if one_in(200) {
            return Err(io::Error::other("no thread"));
        }
        // First what is due, then when: the alarm may go off at once.
        let serial = deadline.serial;
        self.times().deadlines.insert(serial, deadline);
        self.set_alarm(serial, at, Due::Deadline(serial));
        Ok(())
    }

    fn cancel(&self, serial: u64) {
        self.times().deadlines.remove(&serial);
        self.forget(serial);
    }

    fn kept(&self) -> Vec<Deadline> {
        self.times().deadlines.values().copied().collect()
    }

    fn lease(&self, address: usize, generation: u64, at: Instant) {
        self.set_alarm(generation, at, Due::Lease(address, generation));
    }
}
