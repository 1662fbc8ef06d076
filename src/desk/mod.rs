//! The desk: what threads ask of a lock worker, which keeps locks in a store outside of this machine, and what it answers.
//!
//! An [`Inquiry`] is one request, from its call to its end: asked, then granted, refused or failed; then released, or lost. Whoever
//! asks waits for it natively or is woken as an event loop; the lock worker takes [`Task`]s in the order in which they came. All
//! that must not depend on the lock worker's JS is here: what becomes of inquiries when their thread or the lock worker ends, and the
//! moment from which a [`Lease`] may be another's. Knows neither JS nor stores nor the engine.

mod clock;
mod inquiry;
mod lease;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

pub use clock::now;
pub use inquiry::{Answer, Inbox, Inquiry, Question, Unanswered};
pub use lease::{Lease, Loss};

/// A task of the lock worker.
pub enum Task {
    /// To see to a request.
    Ask(Arc<Inquiry>),
    /// No thread waits for it any more. If it was granted meanwhile, a release follows.
    Cancel(u32),
    /// To release what was granted; whether its holder's thread ended inside.
    Release(u32, bool),
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
    inquiries: FxHashMap<u32, Arc<Inquiry>>,
    waker: Option<Waker>,
    /// Why it has ended, for messages.
    ended: Option<String>,
}

fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    // Relaxed: only that it is another.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, DeskContents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock worker has come: `waker` is called when there is something to do.
    pub fn serve(&self, waker: Waker) {
        let mut contents = self.lock();
        waker();
        contents.waker = Some(waker);
    }

    /// Whether the lock worker has come.
    pub fn is_served(&self) -> bool {
        self.lock().waker.is_some()
    }

    /// Whether it has ended.
    pub fn is_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    fn push(contents: &mut DeskContents, task: Task) {
        if contents.ended.is_some() {
            return;
        }
        contents.tasks.push_back(task);
        // It takes all that there is each time.
        if contents.tasks.len() == 1
            && let Some(waker) = &contents.waker
        {
            waker();
        }
    }

    /// Takes in a request. If nobody blocks for it, `inbox` gets its number when it is over.
    pub fn ask(&self, question: Question, inbox: &Arc<Inbox>) -> Arc<Inquiry> {
        let inquiry = Arc::new(Inquiry::new(next_number(), question, Arc::clone(inbox)));
        let mut contents = self.lock();
        if let Some(reason) = &contents.ended {
            inquiry.answer(Answer::Failed(reason.clone()));
        } else {
            contents.inquiries.insert(inquiry.number, Arc::clone(&inquiry));
            Self::push(&mut contents, Task::Ask(Arc::clone(&inquiry)));
        }
        inquiry
    }

    /// The next task; `None` if there is nothing to do.
    pub fn next(&self) -> Option<Task> {
        self.lock().tasks.pop_front()
    }

    /// Ends a request, or grants it. False if nobody wants it any more: what was granted has to be released.
    pub fn answer(&self, number: u32, answer: Answer) -> bool {
        let mut contents = self.lock();
        let Some(inquiry) = contents.inquiries.get(&number).cloned() else { return false };
        if !matches!(answer, Answer::Granted { .. }) && !fault!(AnsweredInquiryStays) {
            contents.inquiries.remove(&number);
        }
        drop(contents);
        inquiry.answer(answer)
    }

    /// The asker does not want it any more; false if it knows of its end already.
    pub fn cancel(&self, inquiry: &Inquiry) -> bool {
        self.withdraw(inquiry, inquiry.cancel())
    }

    /// The time of a request is over: whoever asked finds that it was refused. False if it knows of its end already. On any thread.
    pub fn expire(&self, inquiry: &Inquiry) -> bool {
        self.withdraw(inquiry, inquiry.expire())
    }

    fn withdraw(&self, inquiry: &Inquiry, was_granted: Option<bool>) -> bool {
        let Some(was_granted) = was_granted else { return false };
        let mut contents = self.lock();
        contents.inquiries.remove(&inquiry.number);
        let task = if was_granted { Task::Release(inquiry.number, false) } else { Task::Cancel(inquiry.number) };
        Self::push(&mut contents, task);
        true
    }

    /// Its holder does not need it any more. Returns how it was lost before, if it was.
    pub fn release(&self, inquiry: &Inquiry, is_abandoned: bool) -> Option<Loss> {
        let lost = inquiry.release();
        let mut contents = self.lock();
        // If it was lost, the store may have it still. It is released once, though the clock may have done so.
        if fault!(ReleasedInquiryStays) || contents.inquiries.remove(&inquiry.number).is_some() {
            Self::push(&mut contents, Task::Release(inquiry.number, is_abandoned));
        }
        lost
    }

    /// A lease is over: whoever holds by it finds that in its inbox.
    pub fn end_lease(&self, lease: &Arc<Lease>, loss: Loss) {
        lease.end(loss);
        let holders: Vec<Arc<Inquiry>> =
            self.lock().inquiries.values().filter(|inquiry| inquiry.is_held_by(lease)).cloned().collect();
        holders.iter().for_each(|inquiry| inquiry.report_loss());
    }

    /// The lock worker has ended, or never began: what waits fails with `reason`, what is held is lost.
    pub fn end(&self, reason: &str) {
        let mut contents = self.lock();
        if contents.ended.is_some() {
            return;
        }
        contents.ended = Some(reason.to_owned());
        contents.waker = None;
        contents.tasks.clear();
        let inquiries = std::mem::take(&mut contents.inquiries);
        drop(contents);
        for inquiry in inquiries.values() {
            inquiry.answer(Answer::Failed(reason.to_owned()));
            inquiry.lose(Loss::Worker);
        }
    }
}

#[cfg(feature = "audit")]
mod audit;
#[cfg(test)]
mod tests;
