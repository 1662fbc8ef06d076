//! Requests for locks of files, which the kernel answers, and for lists of their holders (see `outer.rs`).
//!
//! A request that was given up may still be granted by the kernel, and is given back then. Until nothing of it is left, others find
//! the name locked: whoever gave it up can wait for that, too.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;

use super::held::{Held, ThreadHold, Told};
use super::outer_requests::{OuterRequest, OuterWait, Outside};
use crate::engine::{Caller, Failure, Limit, Request};
use crate::files::reader::{self, Listing};
use crate::files::{Asker, Directory, FileFailure, FileOutcome, FileWait, Left, LockMode, NamedFile};
use crate::memory::Place;
use crate::primitives::futex::OUTER;
use crate::sync::{AtomicU32, Ordering};

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

    fn place(&self) -> Place {
        // SAFETY: an aligned atomic. Whoever waits or settles has the request.
        unsafe { Place::name(NonNull::from(&self.has_left), 0) }
    }
}

/// No code has run with it.
fn give_back(outcome: FileOutcome) {
    match outcome {
        Ok(hold) if fault!(InterruptedFileGrantIsMarked) => hold.end(),
        Ok(hold) => hold.give_back(),
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
        self.engine.settle(&OUTER, self.kind.place(), true, || {});
    }
}

impl Outside for InFile {
    type Question = Asker;
    type Answer = FileOutcome;

    fn ask(request: &Arc<OuterRequest<Self>>, asker: Asker) {
        request.kind.wait.begin(asker, request.reply());
    }

    fn ask_here(request: &Arc<OuterRequest<Self>>, asker: Asker, until: Instant) {
        request.kind.wait.begin_here(asker, until, &|| request.is_answered(), request.reply());
    }

    fn is_granted(outcome: &FileOutcome) -> bool {
        outcome.is_ok()
    }

    fn take_in(&self, _: u64, outcome: FileOutcome) -> (Option<Held>, Told) {
        match outcome {
            Ok(hold) => (Some(Held::File(ThreadHold::new(hold))), Told::File(Ok(()))),
            Err(failure) => (None, Told::File(Err(failure))),
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
        engine.wait(agent, &OUTER, kind.place(), while_there, Limit::Endless, caller).map(drop)
    }

    fn remains(&self) -> Option<Place> {
        Some(self.place())
    }
}

/// The holders of the names of a directory.
pub struct FileHolders(pub Arc<Directory>);

impl Outside for FileHolders {
    type Question = ();
    type Answer = Listing;

    fn ask(request: &Arc<OuterRequest<Self>>, (): ()) {
        let asker = Arc::clone(request);
        reader::list(&request.kind.0, move |listed| drop(asker.answer(listed)));
    }

    fn is_granted(_: &Listing) -> bool {
        true
    }

    fn take_in(&self, _: u64, listed: Listing) -> (Option<Held>, Told) {
        let failure =
            listed.as_ref().as_ref().err().filter(|error| error.kind() != io::ErrorKind::NotFound).map(|error| {
                let error = error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
                FileFailure::System { verb: "read", path: self.0.path().to_owned(), error }
            });
        (None, Told::Holders(failure.map_or(Ok(listed), Err)))
    }

    fn give_up(_: &Arc<OuterRequest<Self>>, _: Option<Listing>) {}
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
