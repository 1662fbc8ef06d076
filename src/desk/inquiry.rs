//! One request to a lock worker.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::lease::{Lease, Loss};

/// A blocked thread looks this often whether it is to end.
pub(super) const SLICE: Duration = Duration::from_millis(25);

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
        /// Words of the lock worker.
        text: String,
    },
    /// It cannot be had at once.
    Refused,
    /// Why.
    Failed(String),
}

/// The end of a blocking wait without an answer.
#[derive(Debug)]
pub enum Unanswered {
    /// The time was over.
    TimedOut,
    /// The pause between two slices returned that the thread is to end.
    Interrupted,
}

#[derive(Default)]
enum Phase {
    #[default]
    Asked,
    /// The asker has not looked yet.
    Answered(Answer),
    /// The asker holds it.
    Held(Arc<Lease>),
    Over,
}

impl Phase {
    /// Whether it was granted already; `None` if whoever asked knows of its end, or is about to.
    fn was_granted(&self) -> Option<bool> {
        match self {
            Self::Asked => Some(false),
            Self::Answered(Answer::Granted { .. }) => Some(true),
            Self::Answered(_) | Self::Held(_) | Self::Over => None,
        }
    }
}

/// A request.
pub struct Inquiry {
    /// By which the lock worker and the thread know it.
    pub number: u32,
    /// The question.
    pub question: Question,
    phase: Mutex<Progress>,
    changed: Condvar,
    inbox: Arc<Inbox>,
}

#[derive(Default)]
struct Progress {
    phase: Phase,
    /// Beside that of its lease.
    loss: Option<Loss>,
    is_blocking: bool,
    /// No code runs with its hold, since others are waited for that are asked for together with it.
    is_outside: bool,
}

impl Inquiry {
    pub(super) fn new(number: u32, question: Question, inbox: Arc<Inbox>) -> Self {
        Self { number, question, phase: Mutex::default(), changed: Condvar::new(), inbox }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False if nobody wants it.
    pub(super) fn answer(&self, answer: Answer) -> bool {
        let mut state = self.lock();
        if !matches!(state.phase, Phase::Asked) {
            return false;
        }
        state.phase = Phase::Answered(answer);
        let is_blocking = state.is_blocking;
        drop(state);
        self.changed.notify_all();
        if !is_blocking {
            self.inbox.put(self.number);
        }
        true
    }

    /// Its outcome, once; from then on a grant is held.
    pub fn take(&self) -> Option<Answer> {
        let mut state = self.lock();
        if !matches!(state.phase, Phase::Answered(_)) {
            return None;
        }
        let Phase::Answered(answer) = std::mem::take(&mut state.phase) else { return None };
        state.phase = match &answer {
            Answer::Granted { lease, .. } => Phase::Held(Arc::clone(lease)),
            _ => Phase::Over,
        };
        Some(answer)
    }

    /// Blocks the thread until there is an answer, or `deadline`. `pause` is called between two slices; when it returns false, the
    /// thread is to end. Without an answer the request goes on, and is to be cancelled.
    pub fn wait(&self, deadline: Option<Instant>, pause: &mut dyn FnMut() -> bool) -> Result<Answer, Unanswered> {
        let mut slice_end = Instant::now() + SLICE;
        self.lock().is_blocking = true;
        loop {
            let mut state = self.lock();
            while matches!(state.phase, Phase::Asked) {
                let until = deadline.map_or(slice_end, |deadline| deadline.min(slice_end));
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(state);
            if let Some(answer) = self.take() {
                return Ok(answer);
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline)
                && !(fault!(DeadlineOnlyBetweenSlices) && now < slice_end)
            {
                return Err(Unanswered::TimedOut);
            }
            if now >= slice_end {
                if !pause() {
                    return Err(Unanswered::Interrupted);
                }
                slice_end = Instant::now() + SLICE;
            }
        }
    }

    /// Takes it back: whether it was granted already. `None` if whoever asked knows of its end.
    pub(super) fn cancel(&self) -> Option<bool> {
        let mut state = self.lock();
        let was_granted = state.phase.was_granted()?;
        state.phase = Phase::Over;
        Some(was_granted)
    }

    /// Its time is over: as [`Self::cancel`], and whoever asked finds that it was refused.
    pub(super) fn expire(&self) -> Option<bool> {
        let mut state = self.lock();
        let was_granted = state.phase.was_granted()?;
        state.phase = Phase::Answered(Answer::Refused);
        drop(state);
        self.inbox.put(self.number);
        Some(was_granted)
    }

    /// The loss of its hold, if there was one.
    pub fn lost(&self) -> Option<Loss> {
        let state = self.lock();
        match &state.phase {
            Phase::Held(lease) => state.loss.or_else(|| lease.lost()),
            _ => state.loss,
        }
    }

    pub(super) fn release(&self) -> Option<Loss> {
        let lost = self.lost();
        self.lock().phase = Phase::Over;
        lost
    }

    /// Whether what it holds is kept by this lease.
    pub(super) fn is_held_by(&self, lease: &Arc<Lease>) -> bool {
        match &self.lock().phase {
            Phase::Answered(Answer::Granted { .. }) if fault!(LossOfWhatIsNotTakenYetIsUntold) => false,
            Phase::Held(mine) | Phase::Answered(Answer::Granted { lease: mine, .. }) => Arc::ptr_eq(mine, lease),
            _ => false,
        }
    }

    /// Whether code runs with what it holds. Without it, the end of its thread leaves no mark.
    pub fn note_in(&self, is_in: bool) {
        self.lock().is_outside = !is_in;
    }

    /// Whether the end of its thread leaves a mark: it holds alone, and code runs with it.
    pub fn leaves_mark(&self) -> bool {
        !self.question.is_shared && !self.lock().is_outside
    }

    /// Whether its thread knows how it ended, and holds nothing of it.
    #[cfg(feature = "audit")]
    pub(super) fn is_over(&self) -> bool {
        matches!(self.lock().phase, Phase::Over)
    }

    /// Whether its thread holds what was granted, and knows it.
    pub fn is_held(&self) -> bool {
        matches!(self.lock().phase, Phase::Held(_))
    }

    pub(super) fn lose(&self, loss: Loss) {
        let mut state = self.lock();
        state.loss.get_or_insert(loss);
        drop(state);
        self.report_loss();
    }

    /// Its thread looks at it soon.
    pub(super) fn report_loss(&self) {
        self.inbox.put(self.number);
    }
}

/// The requests of a thread of which there is news.
pub struct Inbox {
    numbers: Mutex<VecDeque<u32>>,
    waker: Box<dyn Fn() + Send + Sync>,
}

impl Inbox {
    /// An inbox of the thread that `waker` wakes.
    pub fn new(waker: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { numbers: Mutex::default(), waker }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<u32>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, number: u32) {
        let mut numbers = self.lock();
        numbers.push_back(number);
        let is_first = numbers.len() == 1;
        drop(numbers);
        if is_first {
            (self.waker)();
        }
    }

    /// The next of them.
    pub fn next(&self) -> Option<u32> {
        self.lock().pop_front()
    }
}
