//! The desk: requests of threads to a lock worker, which keeps locks in a store outside of this machine, and its answers.
//!
//! The lock worker takes [`Task`]s in the order in which they came, and answers each request once, through its [`Asker`]. All that
//! must not depend on the lock worker's JS is here: the end of requests when the lock worker ends, and the moment from which a
//! [`Lease`] may be another's. Knows neither JS nor stores nor the engine: whoever asks waits by itself.

mod clock;
mod lease;

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::sync::Mutex;

pub use clock::now;
pub use lease::{Lease, Loss};

/// A question; the lock worker's JS knows what the numbers mean.
pub struct Question {
    /// The store.
    pub store: u32,
    /// The verb.
    pub verb: u32,
    /// The name, if it is about one.
    pub name: Vec<u16>,
    /// Whether the name is to be shared.
    pub is_shared: bool,
    /// Options of the verb.
    pub flags: u32,
    /// Arguments of the verb.
    pub payload: String,
    /// Which thread asks.
    pub thread: u32,
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It holds the name.
    Granted {
        /// Its fence, if one was asked for; else 0.
        fence: u64,
        /// For how long.
        lease: Arc<Lease>,
        /// Whether somebody has ended inside, and nobody has said since that all is well.
        is_abandoned: bool,
        /// Words of the lock worker.
        text: String,
    },
    /// It cannot be had at once.
    Refused,
    /// Why.
    Failed(String),
}

/// The maker of a request, which waits for its answer. Called with the desk locked.
pub trait Asker: Send + Sync {
    /// Its answer, once at most. False if nobody wants it any more.
    fn answer(&self, answer: Answer) -> bool;
    /// The lease of its grant is over.
    fn lost(&self);
    /// Why its request should not be here any more, for the audit.
    #[cfg(feature = "audit")]
    fn left(&self, is_answered: bool) -> Option<String>;
}

/// A task of the lock worker.
pub enum Task {
    /// To see to the request of this number.
    Ask(u64, Question),
    /// No thread waits for it any more. If it was granted meanwhile, a release follows.
    Cancel(u64),
    /// To release what was granted; whether its holder's thread ended inside.
    Release(u64, bool),
}

/// Makes the lock worker's event loop turn.
pub type Waker = Box<dyn Fn() + Send + Sync>;

/// The desk of one lock worker.
#[derive(Default)]
pub struct Desk(Mutex<DeskContents>);

#[derive(Default)]
struct DeskContents {
    tasks: VecDeque<Task>,
    /// Requests that are neither over nor refused.
    requests: FxHashMap<u64, Known>,
    waker: Option<Waker>,
    /// Why it has ended, for messages.
    ended: Option<String>,
}

/// A request.
struct Known {
    /// `None`: nobody waits for an answer.
    asker: Option<Arc<dyn Asker>>,
    /// That of its grant, once there is one.
    lease: Option<Arc<Lease>>,
}

impl Known {
    fn report_loss(&self) {
        if let Some(asker) = &self.asker {
            asker.lost();
        }
    }
}

impl DeskContents {
    /// Not once it has ended: then it knows of no request, and takes none in.
    fn push(&mut self, task: Task) {
        self.tasks.push_back(task);
        // It takes all that there is each time.
        if self.tasks.len() == 1
            && let Some(waker) = &self.waker
        {
            waker();
        }
    }
}

impl Desk {
    /// The lock worker has come: `waker` is called when there is something to do.
    pub fn serve(&self, waker: Waker) {
        let mut contents = self.0.lock();
        waker();
        contents.waker = Some(waker);
    }

    /// Whether the lock worker has come.
    pub fn is_served(&self) -> bool {
        self.0.lock().waker.is_some()
    }

    /// Whether it has ended.
    pub fn is_ended(&self) -> bool {
        self.0.lock().ended.is_some()
    }

    /// Takes in a request whose asker waits already.
    pub fn ask(&self, number: u64, question: Question, asker: Arc<dyn Asker>) {
        let mut contents = self.0.lock();
        if let Some(reason) = &contents.ended {
            asker.answer(Answer::Failed(reason.clone()));
            return;
        }
        contents.requests.insert(number, Known { asker: Some(asker), lease: None });
        contents.push(Task::Ask(number, question));
    }

    /// Takes in one that nobody waits for: it holds until it is released.
    pub fn tell(&self, number: u64, question: Question) {
        let mut contents = self.0.lock();
        if contents.ended.is_none() {
            contents.requests.insert(number, Known { asker: None, lease: Some(Lease::endless()) });
            contents.push(Task::Ask(number, question));
        }
    }

    /// The next task; `None` if there is nothing to do.
    pub fn next(&self) -> Option<Task> {
        self.0.lock().tasks.pop_front()
    }

    /// Ends a request, or grants it. False if nobody wants it any more: what was granted has to be released.
    pub fn answer(&self, number: u64, answer: Answer) -> bool {
        let mut contents = self.0.lock();
        let Some(Known { asker: Some(asker), lease: lease @ None }) = contents.requests.get_mut(&number) else {
            return false;
        };
        if let Answer::Granted { lease: granted, .. } = &answer {
            let granted = Arc::clone(granted);
            let is_wanted = asker.answer(answer);
            *lease = is_wanted.then_some(granted);
            return is_wanted;
        }
        let is_wanted = asker.answer(answer);
        if !fault!(RequestsStay) {
            contents.requests.remove(&number);
        }
        is_wanted
    }

    /// Its asker does not want it any more, nor what was granted.
    pub fn withdraw(&self, number: u64) {
        let mut contents = self.0.lock();
        if let Some(Known { lease, .. }) = contents.requests.remove(&number) {
            contents.push(if lease.is_some() { Task::Release(number, false) } else { Task::Cancel(number) });
        }
    }

    /// Its holder does not need it any more: it is released once, though the clock may have done so.
    pub fn release(&self, number: u64, is_abandoned: bool) {
        let mut contents = self.0.lock();
        // If it was lost, the store may have it still.
        if fault!(RequestsStay) || contents.requests.remove(&number).is_some() {
            contents.push(Task::Release(number, is_abandoned));
        }
    }

    /// A lease is over: whoever was granted something by it is told.
    pub fn end_lease(&self, lease: &Arc<Lease>, loss: Loss) {
        lease.end(loss);
        let contents = self.0.lock();
        let is_by = |known: &&Known| known.lease.as_ref().is_some_and(|other| Arc::ptr_eq(other, lease));
        contents.requests.values().filter(is_by).for_each(Known::report_loss);
    }

    /// The lock worker has ended, or never began: what waits fails with `reason`, what is held is lost.
    pub fn end(&self, reason: &str) {
        let mut contents = self.0.lock();
        if contents.ended.is_some() {
            return;
        }
        contents.ended = Some(reason.to_owned());
        contents.waker = None;
        contents.tasks.clear();
        for known in std::mem::take(&mut contents.requests).into_values() {
            match (&known.lease, &known.asker) {
                (Some(lease), _) => {
                    lease.end(Loss::Worker);
                    known.report_loss();
                }
                (None, Some(asker)) => drop(asker.answer(Answer::Failed(reason.to_owned()))),
                (None, None) => {}
            }
        }
    }

    /// Remains of requests, for the audit (see `engine/audit.rs`). They may be there for a moment.
    #[cfg(feature = "audit")]
    pub fn left(&self) -> Vec<String> {
        let contents = self.0.lock();
        let left = |(number, known): (&u64, &Known)| {
            let why = known.asker.as_ref()?.left(known.lease.is_some())?;
            Some(format!("request {number} at its desk, {why}"))
        };
        contents.requests.iter().filter_map(left).collect()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod testing;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
