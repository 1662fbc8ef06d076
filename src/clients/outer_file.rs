//! Requests for locks of files, which the kernel answers, and for lists of their holders (see `outer.rs`).
//!
//! A request that was given up may still be granted by the kernel, and is given back then. Until nothing of it is left, others find
//! the name locked: whoever gave it up can wait for that, too.

use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;

use super::outer_requests::{OuterRequest, Outside};
use crate::engine::{Caller, Failure, Limit, Request};
use crate::files::reader::{self, Listing};
use crate::files::{Asker, Directory, FileFailure, FileHold, FileOutcome, FileWait, Left, LockMode, NamedFile};
use crate::memory::Place;
use crate::primitives::futex::OUTER;
use crate::sync::{AtomicU32, Mutex, Ordering};

/// A lock of a file.
pub struct InFile {
    wait: FileWait,
    /// 0 until nothing is left of it.
    has_left: AtomicU32,
}

impl InFile {
    /// In this mode.
    pub fn of(name: &Arc<NamedFile>, mode: LockMode) -> Self {
        Self { wait: FileWait::new(name, mode), has_left: AtomicU32::new(0) }
    }

    /// The place at which threads wait while it holds 0.
    pub(super) fn remains(&self) -> Place {
        // SAFETY: an aligned atomic. Whoever waits or settles has the request.
        unsafe { Place::name(NonNull::from(&self.has_left), 0) }
    }
}

/// No code has run with it.
fn give_back(outcome: FileOutcome) {
    match outcome {
        Ok(hold) if fault!(InterruptedFileGrantIsMarked) => hold.end(),
        Ok(hold) => drop(hold.release()),
        Err(_) => {}
    }
}

impl OuterRequest<InFile> {
    fn reply(self: &Arc<Self>) -> impl FnOnce(FileOutcome) + Send + 'static {
        let request = Arc::clone(self);
        move |outcome| {
            if let Some(unwanted) = request.answer(outcome) {
                give_back(unwanted);
                request.note_left();
            }
        }
    }

    /// Nothing is left of it.
    fn note_left(&self) {
        self.kind.has_left.store(1, Ordering::SeqCst);
        self.engine.settle(&OUTER, self.kind.remains(), true, || {});
    }
}

impl Outside for InFile {
    type Question = Asker;
    type Answer = FileOutcome;
    type Told = Result<(), FileFailure>;
    type Hold = ThreadHold;

    fn ask(request: &Arc<OuterRequest<Self>>, asker: Asker) {
        request.kind.wait.begin(asker, request.reply());
    }

    fn ask_here(request: &Arc<OuterRequest<Self>>, asker: Asker, until: Instant) {
        request.kind.wait.begin_here(asker, until, &|| request.is_answered(), request.reply());
    }

    fn is_granted(outcome: &FileOutcome) -> bool {
        outcome.is_ok()
    }

    fn take_in(&self, _: u64, outcome: FileOutcome) -> (Option<ThreadHold>, Self::Told) {
        match outcome {
            Ok(hold) => (Some(ThreadHold::new(hold)), Ok(())),
            Err(failure) => (None, Err(failure)),
        }
    }

    fn give_up(request: &Arc<OuterRequest<Self>>, outcome: Option<FileOutcome>) {
        if let Some(outcome) = outcome {
            give_back(outcome);
            request.note_left();
            return;
        }
        let left = Left::new({
            let request = Arc::clone(request);
            move || request.note_left()
        });
        if !request.kind.wait.withdraw(&left) {
            // Not asked for yet; or its outcome is on the way, and will find nobody.
            Left::is_so(left);
        }
    }

    fn leave_blocking(request: &Arc<OuterRequest<Self>>, caller: &mut dyn Caller) -> Result<(), Failure> {
        let (OuterRequest { engine, agent, kind, .. }, while_there) = (&**request, Request::NotificationWhile(0));
        engine.wait(agent, &OUTER, kind.remains(), while_there, Limit::Endless, caller).map(drop)
    }

    fn release(hold: ThreadHold, has_ended: bool) {
        if !has_ended {
            hold.give_back();
        } else if let Some(hold) = hold.take() {
            hold.end();
        }
    }
}

/// A hold of a thread, which the clock may give back before its code knows of it.
#[derive(Clone)]
pub struct ThreadHold(Arc<Mutex<Option<FileHold>>>);

impl ThreadHold {
    /// It is held.
    pub fn new(hold: FileHold) -> Self {
        Self(Arc::new(Mutex::new(Some(hold))))
    }

    /// The hold; `None` if it has gone back.
    pub fn take(&self) -> Option<FileHold> {
        self.0.lock().take()
    }

    /// Gives it back, if that was not done: nobody's code has run with it. Whoever finds it gone finds the file free.
    pub fn give_back(&self) {
        let mut held = self.0.lock();
        if let Some(hold) = held.take() {
            hold.release();
        }
    }

    /// Has `act` look at it; `None` if it has gone back.
    pub fn with<T>(&self, act: impl FnOnce(&mut FileHold) -> T) -> Option<T> {
        self.0.lock().as_mut().map(act)
    }
}

/// The holders of the names of a directory.
pub struct FileHolders(pub Arc<Directory>);

impl Outside for FileHolders {
    type Question = ();
    type Answer = Listing;
    type Told = ();
    type Hold = HolderList;

    fn ask(request: &Arc<OuterRequest<Self>>, (): ()) {
        let asker = Arc::clone(request);
        reader::list(&request.kind.0, move |listed| drop(asker.answer(listed)));
    }

    fn is_granted(_: &Listing) -> bool {
        true
    }

    fn take_in(&self, _: u64, listed: Listing) -> (Option<HolderList>, ()) {
        let directory = Arc::clone(&self.0);
        (Some(HolderList { directory, listed, taken: 0 }), ())
    }

    fn give_up(_: &Arc<OuterRequest<Self>>, _: Option<Listing>) {}

    fn release(_: HolderList, _: bool) {}
}

/// A list of them.
pub struct HolderList {
    /// Whose names they hold.
    pub directory: Arc<Directory>,
    /// As it was read.
    pub listed: Listing,
    /// The number of them that the thread has taken, or left out.
    pub taken: usize,
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
