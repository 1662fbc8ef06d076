//! The background waiter: one thread with a tokio timer wheel that keeps the deadlines of pending promises and the
//! leases of reserved words. It decides nothing: when a time is over it says so, and the thread concerned acts.
//!
//! The thread starts when the first time is to be kept and ends when there has been none for a while.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio_util::time::{DelayQueue, delay_queue::Key};

use crate::agent::{Agent, Notice, SPARE, Timers, WaitId};
use crate::lot::Lot;

/// With nothing to keep for this long, the thread ends; and while it keeps times it looks up at least this often,
/// so that what was cancelled is soon forgotten.
const IDLE: Duration = Duration::from_secs(1);
/// tokio's wheel holds about two years; what is further away is looked at again after this time.
const HORIZON: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Orders that do not hurry are left lying up to this number.
const MOST_ORDERS: usize = 4096;

/// The background waiter of one lot.
pub struct Clock {
    lot: fn() -> &'static Lot,
    desk: Arc<Desk>,
}

/// Where orders are left for the thread.
#[derive(Default)]
struct Desk {
    pile: Mutex<Pile>,
    bell: Notify,
}

#[derive(Default)]
struct Pile {
    is_running: bool,
    has_rung: bool,
    /// When the thread will look at the pile by itself; `None`: not before the bell rings.
    looks_up_at: Option<Instant>,
    orders: Vec<Order>,
}

/// Keep a time, or forget it. The serial names it.
enum Order {
    Keep(u64, Time),
    Forget(u64),
}

struct Time {
    at: Instant,
    of: TimeOf,
}

enum TimeOf {
    Deadline(Arc<Agent>, WaitId),
    Lease { address: usize, generation: u64 },
}

impl Clock {
    /// A clock for the lot that `lot` answers; its thread does not run yet.
    pub fn new(lot: fn() -> &'static Lot) -> Self {
        Self { lot, desk: Arc::default() }
    }
}

impl Timers for Clock {
    fn deadline(&self, agent: &Arc<Agent>, id: WaitId, at: Instant) -> io::Result<()> {
        let of = TimeOf::Deadline(Arc::clone(agent), id);
        self.keep(id.serial, Time { at, of })
    }

    fn cancel(&self, id: WaitId) {
        self.desk.leave(&mut self.desk.pile.lock(), Order::Forget(id.serial));
    }

    fn lease(&self, address: usize, generation: u64, at: Instant) {
        let of = TimeOf::Lease { address, generation };
        if self.keep(generation, Time { at, of }).is_err() {
            // Without a clock there are no leases: the word goes to whoever comes first.
            (self.lot)().end_lease(address, generation);
        }
    }
}

impl Clock {
    fn keep(&self, serial: u64, time: Time) -> io::Result<()> {
        let mut pile = self.desk.pile.lock();
        if !pile.is_running {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
            let (lot, desk) = (self.lot, Arc::clone(&self.desk));
            let run = move || runtime.block_on(keep_time(lot(), &desk));
            std::thread::Builder::new().name("sablock-clock".into()).spawn(run)?;
            pile.is_running = true;
        }
        self.desk.leave(&mut pile, Order::Keep(serial, time));
        Ok(())
    }
}

impl Desk {
    /// Leaves an order; rings if it cannot wait until the thread looks up by itself.
    fn leave(&self, pile: &mut Pile, order: Order) {
        let hurries = match &order {
            Order::Keep(_, time) => pile.looks_up_at.is_none_or(|at| time.at < at),
            Order::Forget(_) => false,
        };
        pile.orders.push(order);
        if (hurries || pile.orders.len() >= MOST_ORDERS) && !pile.has_rung {
            pile.has_rung = true;
            self.bell.notify_one();
        }
    }

    /// Takes the orders; notes when the thread will look again by itself.
    fn take(&self, wheel: &mut Wheel) {
        let mut pile = self.pile.lock();
        for order in pile.orders.drain(..) {
            wheel.follow(order);
        }
        pile.has_rung = false;
        if pile.orders.capacity() > SPARE {
            pile.orders = Vec::new();
        }
        pile.looks_up_at = wheel.earliest();
    }

    /// Stops the thread, unless an order has come in.
    fn retire(&self) -> bool {
        let mut pile = self.pile.lock();
        pile.is_running = !pile.orders.is_empty();
        !pile.is_running
    }
}

async fn keep_time(lot: &Lot, desk: &Desk) {
    let mut wheel = Wheel::default();
    loop {
        desk.take(&mut wheel);
        if wheel.times.is_empty() {
            let rung = tokio::time::timeout(IDLE, desk.bell.notified()).await;
            if rung.is_err() && desk.retire() {
                return;
            }
        } else {
            tokio::select! {
                () = desk.bell.notified() => {}
                () = tokio::time::sleep(IDLE) => {}
                time = wheel.next() => wheel.tell(time, lot),
            }
        }
    }
}

/// The times that are kept.
#[derive(Default)]
struct Wheel {
    times: DelayQueue<(u64, Time)>,
    keys: FxHashMap<u64, Key>,
}

impl Wheel {
    fn follow(&mut self, order: Order) {
        match order {
            Order::Keep(serial, time) => {
                let at = time.at.min(Instant::now() + HORIZON);
                let key = self.times.insert_at((serial, time), at.into());
                self.keys.insert(serial, key);
            }
            Order::Forget(serial) => {
                if let Some(key) = self.keys.remove(&serial) {
                    self.times.remove(&key);
                }
            }
        }
    }

    fn earliest(&self) -> Option<Instant> {
        self.times.peek().map(|key| self.times.deadline(&key).into_std())
    }

    /// The next time that is over.
    async fn next(&mut self) -> (u64, Time) {
        match poll_fn(|context| self.times.poll_expired(context)).await {
            Some(expired) => expired.into_inner(),
            None => std::future::pending().await,
        }
    }

    fn tell(&mut self, (serial, time): (u64, Time), lot: &Lot) {
        self.keys.remove(&serial);
        if time.at > Instant::now() {
            // Beyond the horizon, or the wheel was early by its resolution of a millisecond.
            self.follow(Order::Keep(serial, time));
            return;
        }
        match time.of {
            TimeOf::Deadline(agent, id) => agent.notify(Notice::Expired(id)),
            TimeOf::Lease { address, generation } => lot.end_lease(address, generation),
        }
    }
}
