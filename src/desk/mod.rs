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

/// What the lock worker has to do.
pub enum Task {
    /// To see to a request.
    Ask(Arc<Inquiry>),
    /// Nobody waits for it any more. If it was granted meanwhile, a release follows.
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
    /// Those that are neither over nor refused.
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

    /// How a request ends, or with what it is granted. False if nobody wants it any more: what was granted has to be released.
    pub fn answer(&self, number: u32, answer: Answer) -> bool {
        let mut contents = self.lock();
        let Some(inquiry) = contents.inquiries.get(&number).cloned() else { return false };
        if !matches!(answer, Answer::Granted { .. }) {
            contents.inquiries.remove(&number);
        }
        drop(contents);
        inquiry.answer(answer)
    }

    /// Whoever asked does not want it any more; false if it knows of its end already.
    pub fn cancel(&self, inquiry: &Inquiry) -> bool {
        let Some(was_granted) = inquiry.cancel() else { return false };
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
        contents.inquiries.remove(&inquiry.number);
        // The store may have it still.
        Self::push(&mut contents, Task::Release(inquiry.number, is_abandoned));
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn question(verb: u32) -> Question {
        Question { store: 1, verb, name: vec![97], is_shared: false, flags: 0, payload: String::new(), thread: 0 }
    }

    fn desk() -> (Arc<Desk>, Arc<Inbox>) {
        let desk = Arc::new(Desk::default());
        desk.serve(Box::new(|| {}));
        (desk, Arc::new(Inbox::new(Box::new(|| {}))))
    }

    fn granted(lease: &Arc<Lease>) -> Answer {
        Answer::Granted { fence: 7, lease: Arc::clone(lease), text: String::new() }
    }

    #[test]
    fn a_lock_worker_is_woken_once_for_all_that_there_is_to_do() {
        let desk = Desk::default();
        let inbox = Arc::new(Inbox::new(Box::new(|| {})));
        let wakes = Arc::new(AtomicU32::new(0));
        let woken = || wakes.swap(0, Ordering::Relaxed);
        let here = Arc::clone(&wakes);
        desk.ask(question(0), &inbox);
        assert!(!desk.is_served() && !desk.is_ended());
        desk.serve(Box::new(move || {
            here.fetch_add(1, Ordering::Relaxed);
        }));
        assert!(desk.is_served() && !desk.is_ended());
        assert_eq!(woken(), 1, "of what was asked before it came");
        desk.ask(question(0), &inbox);
        assert_eq!(woken(), 0, "it has not looked since");
        assert!(desk.next().is_some() && desk.next().is_some() && desk.next().is_none());
        desk.ask(question(0), &inbox);
        assert_eq!(woken(), 1);
        desk.end("it has ended");
        assert!(!desk.is_served() && desk.is_ended());
        desk.ask(question(0), &inbox);
        assert!(desk.next().is_none());
        assert_eq!(woken(), 0);
    }

    #[test]
    fn what_was_granted_to_nobody_has_to_be_released() {
        let (desk, inbox) = desk();
        let inquiry = desk.ask(question(0), &inbox);
        assert!(matches!(desk.next(), Some(Task::Ask(_))));
        assert!(desk.cancel(&inquiry));
        assert!(matches!(desk.next(), Some(Task::Cancel(number)) if number == inquiry.number));
        assert!(!desk.answer(inquiry.number, granted(&Lease::endless())));
        assert!(inbox.next().is_none());
    }

    #[test]
    fn a_grant_that_nobody_has_looked_at_can_be_cancelled_and_is_released() {
        let (desk, inbox) = desk();
        let inquiry = desk.ask(question(0), &inbox);
        desk.next();
        assert!(desk.answer(inquiry.number, granted(&Lease::endless())));
        assert!(desk.cancel(&inquiry));
        assert!(matches!(desk.next(), Some(Task::Release(number, false)) if number == inquiry.number));
        assert!(inbox.next().is_none_or(|number| number == inquiry.number));
        assert!(inquiry.take().is_none());
    }

    #[test]
    fn a_lease_that_is_over_is_seen_by_whoever_looks_though_nobody_tells() {
        let (desk, inbox) = desk();
        let inquiry = desk.ask(question(0), &inbox);
        let lease = Lease::endless();
        desk.answer(inquiry.number, granted(&lease));
        assert_eq!(inquiry.take(), Some(Answer::Granted { fence: 7, lease: Arc::clone(&lease), text: String::new() }));
        assert_eq!(inquiry.lost(), None);
        lease.set_end(now() + 3_600_000.0);
        assert_eq!(inquiry.lost(), None);
        lease.set_end(now() - 1.0);
        assert_eq!(inquiry.lost(), Some(Loss::Unreachable));
        lease.set_end(now() + 3_600_000.0);
        assert_eq!(inquiry.lost(), Some(Loss::Unreachable), "what was lost stays lost");
        assert_eq!(desk.release(&inquiry, false), Some(Loss::Unreachable));
    }

    #[test]
    fn of_several_reasons_of_a_loss_the_first_is_kept() {
        let lease = Lease::endless();
        lease.end(Loss::Closed);
        lease.end(Loss::Worker);
        assert_eq!(lease.lost(), Some(Loss::Closed));
    }

    #[test]
    fn a_second_answer_changes_nothing_and_says_so() {
        let (desk, inbox) = desk();
        let inquiry = desk.ask(question(0), &inbox);
        assert!(desk.answer(inquiry.number, Answer::Refused));
        assert!(!desk.answer(inquiry.number, granted(&Lease::endless())), "the lock is to be released");
        assert_eq!(inquiry.take(), Some(Answer::Refused));
        assert!(!desk.answer(inquiry.number, granted(&Lease::endless())));
        assert_eq!(inquiry.take(), None);
    }

    #[test]
    fn a_second_grant_does_not_replace_the_first() {
        let (desk, inbox) = desk();
        let (inquiry, lease) = (desk.ask(question(0), &inbox), Lease::endless());
        assert!(desk.answer(inquiry.number, granted(&lease)));
        assert!(!desk.answer(inquiry.number, granted(&Lease::endless())), "the lock is to be released");
        assert_eq!(inquiry.take(), Some(granted(&lease)));
        assert!(!desk.answer(inquiry.number, granted(&Lease::endless())));
        assert!(inquiry.take().is_none() && inquiry.is_held_by(&lease));
    }

    #[test]
    fn a_grant_that_meets_a_cancel_halfway_has_to_be_released() {
        let (desk, inbox) = desk();
        let inquiry = desk.ask(question(0), &inbox);
        // As `Desk::cancel`, before the desk knows.
        assert_eq!(inquiry.cancel(), Some(false));
        assert!(!desk.answer(inquiry.number, granted(&Lease::endless())));
        assert!(inquiry.take().is_none());
    }

    #[test]
    fn an_answer_for_a_thread_that_blocks_is_nothing_for_its_loop() {
        let (desk, inbox) = desk();
        let inquiry = desk.ask(question(0), &inbox);
        let mut is_answered = false;
        let answer = inquiry.wait(None, &mut || {
            is_answered = is_answered || desk.answer(inquiry.number, Answer::Refused);
            true
        });
        assert_eq!((answer.ok(), is_answered), (Some(Answer::Refused), true));
        assert_eq!(inbox.next(), None);
    }

    #[test]
    fn the_end_of_the_lock_worker_fails_what_waits_and_ends_what_is_held() {
        let (desk, inbox) = desk();
        let (held, waits) = (desk.ask(question(0), &inbox), desk.ask(question(0), &inbox));
        desk.answer(held.number, granted(&Lease::endless()));
        held.take();
        let blocked = {
            let waits = Arc::clone(&waits);
            std::thread::spawn(move || waits.wait(None, &mut || true))
        };
        desk.end("gone");
        assert_eq!(blocked.join().unwrap().ok(), Some(Answer::Failed("gone".into())));
        assert_eq!(held.lost(), Some(Loss::Worker));
        assert!(desk.next().is_none());
        let late = desk.ask(question(0), &inbox);
        assert_eq!(late.take(), Some(Answer::Failed("gone".into())));
    }

    #[test]
    fn a_blocked_wait_ends_with_its_time_or_its_thread() {
        let (desk, inbox) = desk();
        let inquiry = desk.ask(question(0), &inbox);
        let deadline = Instant::now() + Duration::from_millis(30);
        assert!(matches!(inquiry.wait(Some(deadline), &mut || true), Err(Unanswered::TimedOut)));
        assert!(Instant::now() >= deadline);
        assert!(matches!(inquiry.wait(None, &mut || false), Err(Unanswered::Interrupted)));
    }
}
