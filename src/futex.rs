//! Waiting for a notification: the core of `wait` and `notify`, for threads that block.
//!
//! Asynchronous waits are in [`crate::event_loop`]; both stand in one line (see `lot/line.rs`). Between the comparison of
//! the value and the place in the line nobody can notify, since both happen under the lock that a notification takes.
//!
//! A waiter that was told of a notification has it, whatever comes later: its deadline, an abort. Only the end of its
//! thread, before its code could learn of it, passes the notification on, to the first of those who stood in the line
//! when it was given: as if the thread that ended had never waited.

use std::sync::Arc;

use crate::agent::{Agent, Blockage};
use crate::blocking::{BlockingWait, Caller, Interrupted};
use crate::location::Location;
use crate::lot::line::{Call, Lines, Told};
use crate::lot::list::NodeId;
use crate::lot::{Lot, Wakes};
use crate::mutex::Limit;
use crate::parker::{self, Parker};

/// What came of a wait for a notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Told of a notification.
    Notified,
    /// The location held another value: there was nothing to wait for.
    NotEqual,
    /// The time was over.
    TimedOut,
}

impl Outcome {
    pub(crate) fn of(told: Option<Told>) -> Self {
        if told.is_some() { Self::Notified } else { Self::TimedOut }
    }
}

impl Lot {
    /// Waits at `location` if it holds `value`, blocking the thread of `agent` as long as `limit` says.
    /// `caller` is as for [`Lot::lock`].
    pub fn wait(
        &self,
        agent: &Arc<Agent>,
        location: Location,
        value: i64,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<Outcome, Interrupted> {
        let address = location.address();
        let wait = {
            let mut lines = self.lines(address);
            if !location.holds(value) {
                return Ok(Outcome::NotEqual);
            }
            if limit == Limit::Once {
                return Ok(Outcome::TimedOut);
            }
            self.line_wait(&mut lines, address, limit)
        };
        self.sleep_in_line(agent, &wait, caller).map(Outcome::of)
    }

    /// Puts this thread at the end of the line at `address`.
    pub(crate) fn line_wait(&self, lines: &mut Lines, address: usize, limit: Limit) -> LineWait<'_> {
        let parker = Arc::new(Parker::new());
        let id = lines.push(address, Call::Parker(Arc::clone(&parker)));
        LineWait { lot: self, address, parker, id, limit }
    }

    /// Sleeps until told, or until the time is over.
    pub(crate) fn sleep_in_line(
        &self,
        agent: &Agent,
        wait: &LineWait<'_>,
        caller: &mut dyn Caller,
    ) -> Result<Option<Told>, Interrupted> {
        // Its loop cannot come for a word meanwhile. Anybody may notify it, so it never closes a cycle of blocked threads.
        let blockage = Blockage { address: wait.address, byte_offset: 0, endless: false, serial: self.serial() };
        let outer = agent.set_blockage(Some(blockage));
        let told = wait.sleep(caller);
        agent.set_blockage(outer);
        told
    }

    /// Tells the first `count` who wait at `location`, in the order in which they came, whether blocked or asynchronous;
    /// answers how many they were.
    pub fn notify(&self, location: Location, count: usize) -> usize {
        let mut wakes = Wakes::default();
        let told = self.lines(location.address()).notify(location.address(), count, &mut wakes);
        wakes.carry_out(self);
        told
    }

    /// How many wait at `location`, for tests and diagnosis.
    pub fn waiting(&self, location: Location) -> usize {
        self.lines(location.address()).len(location.address())
    }

    /// The waiter's thread ends: it leaves the line, or passes on what it was told and its code never learnt of.
    pub(crate) fn leave_line(&self, address: usize, id: NodeId) {
        let told = self.lines(address).take(id);
        if let Some(told) = told {
            self.pass_on(address, told);
        }
    }

    /// Passes on a notification that the code of the one who was told of it never learnt of.
    pub(crate) fn pass_on(&self, address: usize, told: Told) {
        let mut wakes = Wakes::default();
        self.lines(address).pass_on(address, told, &mut wakes);
        wakes.carry_out(self);
    }
}

/// A thread that stands in a line.
pub(crate) struct LineWait<'l> {
    lot: &'l Lot,
    address: usize,
    parker: Arc<Parker>,
    id: NodeId,
    limit: Limit,
}

impl LineWait<'_> {
    pub(crate) fn id(&self) -> NodeId {
        self.id
    }
}

impl BlockingWait for LineWait<'_> {
    /// What it was told; `None`: the time was over.
    type Answer = Option<Told>;
    type Failure = Interrupted;

    fn parker(&self) -> &Parker {
        &self.parker
    }

    fn limit(&self) -> Limit {
        self.limit
    }

    fn answer(&self) -> Result<Option<Option<Told>>, Interrupted> {
        match self.parker.call() {
            parker::Call::None => Ok(None),
            _ => self.give_up().map(Some),
        }
    }

    /// A thread that is away keeps its turn: each notification is for the first in the line, as ECMAScript has it, and
    /// holds nobody else back.
    fn look(&self, _: bool) -> Result<Option<Option<Told>>, Interrupted> {
        self.answer()
    }

    fn give_up(&self) -> Result<Option<Told>, Interrupted> {
        Ok(self.lot.lines(self.address).take(self.id))
    }

    fn end(&self) {
        self.lot.leave_line(self.address, self.id);
    }
}
