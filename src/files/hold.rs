//! A lock that this process holds. Dropped without [`FileHold::release`], it is freed as if its process had been killed: the
//! record stays dirty, and the next one learns that it was abandoned.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use rustc_hash::FxHashMap;

use super::file::{FileFailure, Files, LockMode, Locked};
use super::name::FileRole;
use super::record::{self, Past, RecordedHolder, Status};
use super::system;
use crate::fence;
use crate::sync::Mutex;

/// The asker of a lock, and what it asks for beside it.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// The thread, by the number of Node.js.
    pub thread: u32,
    /// Whether it wants the fence of its grant; see [`FileHold::fence`].
    pub wants_fence: bool,
    /// Whether it is asked for together with others, without which no code runs; see [`FileHold::note_in`].
    pub is_part: bool,
}

/// A lock that is held.
#[derive(Debug)]
pub struct FileHold {
    /// Locked by the kernel until the last of those who share it here drops it: before all else, which takes time to close.
    lock: Arc<Locked>,
    files: Arc<Files>,
    /// For an exclusive one.
    info: Option<Info>,
    past: Past,
    fence: Option<u64>,
    /// Whether code runs with it; not while others are waited for that are asked for together with it.
    is_in: bool,
}

#[derive(Debug)]
struct Info {
    file: File,
    holder: RecordedHolder,
    last_fence: u64,
}

/// The findings of a release.
#[derive(Debug)]
pub enum Released {
    /// All as it was left.
    Whole,
    /// The file of the lock was removed meanwhile: another process may have held it at the same time.
    Removed,
    /// The record could not be written, so that the next one learns that the lock was abandoned.
    Unwritten(FileFailure),
}

/// The ends that this process has reported of those who held a name alone, and that stand in the records still.
static REPORTED: LazyLock<Mutex<FxHashMap<PathBuf, Option<RecordedHolder>>>> = LazyLock::new(Mutex::default);

/// One end is reported once: those who share a lock find it in the record again and again.
fn report_once(files: &Files, mode: LockMode, past: Past) -> Past {
    let record = files.path(FileRole::Info);
    let mut reported = REPORTED.lock();
    let Past::Ended(ended) = past else {
        reported.remove(record);
        return past;
    };
    // A holder that is alone writes another record.
    let before = if mode == LockMode::Shared || fault!(ReportedStaysKnown) {
        reported.insert(record.clone(), ended)
    } else {
        reported.remove(record)
    };
    if before == Some(ended) { Past::Abandoned } else { past }
}

impl FileHold {
    /// The kernel has locked `lock`: reads the record, and says there who holds it, if alone.
    pub(super) fn begin(
        files: &Arc<Files>,
        mode: LockMode,
        lock: Arc<Locked>,
        asker: Asker,
    ) -> Result<Self, FileFailure> {
        let name = files.name();
        let read = |content: Option<&Vec<u8>>| content.map_or((Past::Clean, 0), |content| record::past(name, content));
        let wanted = |fence| if asker.wants_fence { Some(fence) } else { None };
        let (info, past, fence) = match mode {
            LockMode::Shared => {
                let (past, last_fence) = read(files.record(record::length(name))?.as_ref());
                (None, past, wanted(fence::of_shared(last_fence, fence::now())))
            }
            LockMode::Exclusive => {
                let (file, is_new) = files.open(FileRole::Info)?;
                let content = if is_new { None } else { Some(files.read(&file, record::length(name))?) };
                let (past, last_fence) = read(content.as_ref());
                // Drawn with the lock held, and written with the record: the next one finds it, however this one ends.
                let fence = wanted(fence::after(last_fence, fence::now()));
                let info = Info {
                    file,
                    holder: RecordedHolder::now(asker.thread),
                    last_fence: if fault!(FenceIsNotKept) { 0 } else { fence.unwrap_or(last_fence) },
                };
                let is_in = !asker.is_part || fault!(PartBeginsInside);
                let status = Status { is_held: true, is_in, is_abandoned: past != Past::Clean };
                let length = record::length(name);
                let is_long = content.as_ref().is_some_and(|content| content.len() > length);
                // Cut last: until then it is too long, and so dirty.
                let written = write(files, &info, status).and_then(|()| {
                    let cut = if is_long { info.file.set_len(length as u64) } else { Ok(()) };
                    cut.map_err(|error| files.failure("write", FileRole::Info, error))
                });
                written.inspect_err(|_| undo(files, &info.file, content.as_deref()))?;
                (Some(info), past, fence)
            }
        };
        let past = report_once(files, mode, past);
        Ok(Self { lock, files: Arc::clone(files), info, past, fence, is_in: !asker.is_part })
    }

    /// The state that earlier holders have left.
    pub fn past(&self) -> Past {
        self.past
    }

    /// Whether an earlier holder ended inside.
    pub fn is_abandoned(&self) -> bool {
        self.past != Past::Clean
    }

    /// The fence of this grant, if it was asked for: of an exclusive one, larger than all before; of a shared one, not below
    /// that of the last exclusive one.
    pub fn fence(&self) -> Option<u64> {
        self.fence
    }

    /// The protected data was repaired: the next one does not learn of it any more. Only for an exclusive hold.
    pub fn mark_consistent(&mut self) {
        debug_assert!(self.info.is_some(), "those who share it write nothing");
        self.past = Past::Clean;
    }

    /// Whether code runs with it; not yet, if it was asked for as a part of several. Without it, the end of its thread, or of the process, leaves no mark. If this fails, no code may
    /// run with it.
    pub fn note_in(&mut self, is_in: bool) -> Result<(), FileFailure> {
        if is_in == self.is_in {
            return Ok(());
        }
        // If the file was removed, the record may be that of another holder by now.
        if let Some(info) = &self.info
            && !matches!(self.files.leads_to(FileRole::Lock, &self.lock), Ok(false))
        {
            write(&self.files, info, Status { is_held: true, is_in, is_abandoned: self.is_abandoned() })?;
        }
        self.is_in = is_in;
        Ok(())
    }

    /// The descriptors that keep the lock, for as long as this holds it, and cleaners out of its directory; none where files have none.
    pub fn descriptors(&self) -> impl Iterator<Item = i32> {
        system::descriptor(&self.lock).into_iter().chain(self.files.guard_descriptor())
    }

    /// The thread that holds it has ended: frees it as if its process had been killed, but for those who ask who holds it, to whom the
    /// process, which lives, would say that it does.
    pub fn end(self) {
        if !self.is_in {
            self.release();
            return;
        }
        let Some(Info { file, holder, last_fence }) = self.info else { return };
        if matches!(self.files.leads_to(FileRole::Lock, &self.lock), Ok(true)) || fault!(EndWritesOthersRecord) {
            let info = Info { file, holder: holder.ended(), last_fence };
            // If that fails, the record says what it said.
            let _ = write(
                &self.files,
                &info,
                Status { is_held: true, is_in: true, is_abandoned: self.past != Past::Clean },
            );
        }
    }

    /// Frees it.
    pub fn release(self) -> Released {
        // A file that cannot be looked at was not removed.
        if matches!(self.files.leads_to(FileRole::Lock, &self.lock), Ok(false)) {
            // The record may be that of another holder by now.
            return Released::Removed;
        }
        let Some(info) = &self.info else { return Released::Whole };
        match write(&self.files, info, Status { is_held: false, is_in: false, is_abandoned: self.is_abandoned() }) {
            Ok(()) => Released::Whole,
            Err(failure) => {
                // A record that says nothing takes no room: the next one does not learn that this process has ended.
                let _ = info.file.set_len(0);
                Released::Unwritten(failure)
            }
        }
    }
}

/// The record could not be written, so that nobody's code ran with the lock: as far as possible, it says what it said before.
fn undo(files: &Files, file: &File, before: Option<&[u8]>) {
    let _ = match before {
        None => std::fs::remove_file(files.path(FileRole::Info)),
        Some(before) => system::write_whole(file, before).and_then(|()| file.set_len(before.len() as u64)),
    };
}

fn write(files: &Files, info: &Info, status: Status) -> Result<(), FileFailure> {
    let bytes = record::encode(files.name(), status, &info.holder, info.last_fence);
    system::write_whole(&info.file, &bytes).map_err(|error| files.failure("write", FileRole::Info, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::record::FileRecord;
    use crate::files::testing::Scratch;

    #[test]
    fn an_end_is_reported_once_however_many_share_the_lock() {
        let scratch = Scratch::new();
        let files = Arc::new(Files::of(&scratch, "reported"));
        for _ in 0..2 {
            drop(begin(&files, LockMode::Exclusive, false));
            assert!(matches!(begin(&files, LockMode::Shared, false).past(), Past::Ended(Some(_))));
            assert_eq!(begin(&files, LockMode::Shared, false).past(), Past::Abandoned);
            let mut hold = begin(&files, LockMode::Exclusive, false);
            assert_eq!(hold.past(), Past::Abandoned, "this process has learned of it");
            hold.mark_consistent();
            hold.release();
        }
        drop(begin(&files, LockMode::Exclusive, false));
        assert!(matches!(begin(&files, LockMode::Exclusive, false).past(), Past::Ended(Some(_))));
    }

    #[test]
    fn an_end_that_looks_like_the_last_is_reported_to_the_next_who_holds_it_alone() {
        let scratch = Scratch::new();
        let files = Arc::new(Files::of(&scratch, "alike"));
        for _ in 0..2 {
            std::fs::write(files.path(FileRole::Info), "foreign").unwrap();
            let hold = begin(&files, LockMode::Exclusive, false);
            assert_eq!(hold.past(), Past::Ended(None));
            hold.release();
        }
    }

    /// Windows removes no file that is open.
    #[cfg(unix)]
    #[test]
    fn who_ends_with_a_file_that_was_removed_leaves_the_record_to_the_next_holder() {
        let scratch = Scratch::new();
        let files = Arc::new(Files::of(&scratch, "removed"));
        let lost = begin(&files, LockMode::Exclusive, false);
        std::fs::remove_file(files.path(FileRole::Lock)).unwrap();
        let next = begin(&files, LockMode::Exclusive, false);
        lost.end();
        let record = record::decode(&std::fs::read(files.path(FileRole::Info)).unwrap()).unwrap();
        assert!(record.holder.may_live(), "it says who holds it");
        next.release();
    }

    #[test]
    fn the_record_says_who_holds_and_whether_an_earlier_one_ended_inside() {
        let scratch = Scratch::new();
        let files = Arc::new(Files::of(&scratch, "status"));
        let status = || {
            let bytes = files.record(record::length(files.name())).unwrap().unwrap();
            let FileRecord { status, holder, .. } = record::decode(&bytes).unwrap();
            assert_eq!(status.is_in, status.is_held);
            (status.is_held, status.is_abandoned, holder.may_live())
        };
        let hold = begin(&files, LockMode::Exclusive, false);
        assert_eq!(status(), (true, false, true));
        hold.end();
        assert_eq!(status(), (true, false, false));
        let hold = begin(&files, LockMode::Exclusive, false);
        assert_eq!(status(), (true, true, true));
        hold.end();
        assert_eq!(status(), (true, true, false));
        let mut hold = begin(&files, LockMode::Exclusive, false);
        hold.mark_consistent();
        hold.release();
        assert_eq!(status(), (false, false, true));
    }

    #[test]
    fn an_end_while_others_are_waited_for_leaves_no_mark_and_keeps_one() {
        let scratch = Scratch::new();
        let files = Arc::new(Files::of(&scratch, "outside"));
        let mut hold = begin(&files, LockMode::Exclusive, false);
        hold.note_in(false).unwrap();
        let bytes = files.record(record::length(files.name())).unwrap().unwrap();
        assert!(
            record::may_be_held(&bytes) && record::decode(&bytes).unwrap().holder.may_live(),
            "others see who holds it"
        );
        drop(hold);
        let mut hold = begin(&files, LockMode::Exclusive, false);
        assert_eq!(hold.past(), Past::Clean);
        hold.note_in(false).unwrap();
        hold.note_in(true).unwrap();
        drop(hold);
        let mut hold = begin(&files, LockMode::Exclusive, false);
        assert!(matches!(hold.past(), Past::Ended(Some(_))), "its code ran");
        hold.note_in(false).unwrap();
        drop(hold);
        assert_eq!(begin(&files, LockMode::Exclusive, false).past(), Past::Abandoned);
    }

    #[test]
    fn a_thread_that_ends_while_others_are_waited_for_is_said_to_hold_it_no_more() {
        let scratch = Scratch::new();
        let files = Arc::new(Files::of(&scratch, "thread"));
        let mut hold = begin(&files, LockMode::Exclusive, false);
        hold.note_in(false).unwrap();
        hold.end();
        assert!(!record::may_be_held(&std::fs::read(files.path(FileRole::Info)).unwrap()));
        assert_eq!(begin(&files, LockMode::Exclusive, false).past(), Past::Clean);
    }

    #[test]
    fn a_part_of_several_that_ends_before_all_are_there_leaves_no_mark() {
        let scratch = Scratch::new();
        let files = Arc::new(Files::of(&scratch, "part"));
        let part = || {
            let lock = Arc::new(files.try_lock(FileRole::Lock, LockMode::Exclusive).unwrap().unwrap());
            FileHold::begin(&files, LockMode::Exclusive, lock, Asker { thread: 0, wants_fence: false, is_part: true })
                .unwrap()
        };
        drop(part());
        let mut hold = part();
        assert_eq!(hold.past(), Past::Clean, "no code ran with it");
        hold.note_in(true).unwrap();
        drop(hold);
        assert!(matches!(part().past(), Past::Ended(Some(_))), "code ran");
        let hold = part();
        let bytes = std::fs::read(files.path(FileRole::Info)).unwrap();
        drop(hold);
        // As a process that is killed leaves it.
        std::fs::write(files.path(FileRole::Info), bytes).unwrap();
        assert_eq!(part().past(), Past::Abandoned, "the mark of an earlier one stays");
    }

    /// As a clock that went back leaves it.
    const AHEAD: u64 = u64::MAX / 2;

    fn begin(files: &Arc<Files>, mode: LockMode, wants_fence: bool) -> FileHold {
        let lock = Arc::new(files.try_lock(FileRole::Lock, mode).unwrap().unwrap());
        FileHold::begin(files, mode, lock, Asker { thread: 0, wants_fence, is_part: false }).unwrap()
    }

    fn fence(files: &Arc<Files>, mode: LockMode) -> u64 {
        let hold = begin(files, mode, true);
        let fence = hold.fence().expect("it was asked for");
        hold.release();
        fence
    }

    #[test]
    fn fences_go_on_from_the_record_however_the_holders_ended() {
        let scratch = Scratch::new();
        let files = Arc::new(Files::of(&scratch, "fences"));
        let status = Status { is_held: false, is_in: false, is_abandoned: false };
        let bytes = record::encode(files.name(), status, &RecordedHolder::now(0), AHEAD);
        std::fs::write(files.path(FileRole::Info), bytes).unwrap();
        assert_eq!(fence(&files, LockMode::Shared), AHEAD);
        assert_eq!(fence(&files, LockMode::Exclusive), AHEAD + 1);
        assert_eq!(begin(&files, LockMode::Exclusive, false).fence(), None);
        // That one ended inside.
        assert_eq!(fence(&files, LockMode::Shared), AHEAD + 1);
        assert_eq!(begin(&files, LockMode::Exclusive, true).fence(), Some(AHEAD + 2));
        assert_eq!(fence(&files, LockMode::Exclusive), AHEAD + 3);
    }

    #[test]
    fn fences_grow_though_the_record_is_lost() {
        let scratch = Scratch::new();
        let files = Arc::new(Files::of(&scratch, "lost"));
        let mut last = fence(&files, LockMode::Shared);
        for content in [None, Some(""), Some("foreign")] {
            let next = fence(&files, LockMode::Exclusive);
            assert!(next > last, "{next} after {last}");
            last = next;
            match content {
                None => std::fs::remove_file(files.path(FileRole::Info)).unwrap(),
                Some(content) => std::fs::write(files.path(FileRole::Info), content).unwrap(),
            }
            let shared = fence(&files, LockMode::Shared);
            assert!(shared > last, "{shared} after {last}");
            last = shared;
        }
    }
}
