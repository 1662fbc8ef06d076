//! A lock that this process holds. Dropped without [`FileHold::release`], it is freed as if its process had been killed: the
//! record stays dirty, and the next one learns that it was abandoned.

use std::fs::File;
use std::io;
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
    /// The content of the record before, if that told of an end inside.
    before: Option<Vec<u8>>,
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
                    before: if matches!(past, Past::Ended(_)) { content.clone() } else { None },
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
                written.inspect_err(|_| drop(undo(files, &info.file, content.as_deref())))?;
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
            self.give_back();
            return;
        }
        let Some(info) = self.info else { return };
        if matches!(self.files.leads_to(FileRole::Lock, &self.lock), Ok(true)) || fault!(EndWritesOthersRecord) {
            let info = Info { holder: info.holder.ended(), ..info };
            // If that fails, the record says what it said.
            let _ = write(
                &self.files,
                &info,
                Status { is_held: true, is_in: true, is_abandoned: self.past != Past::Clean },
            );
        }
    }

    /// Frees it. Its thread has not learned of an end inside that this would have reported: the next one does.
    pub fn give_back(self) {
        if let Past::Ended(ended) = self.past
            && !matches!(self.files.leads_to(FileRole::Lock, &self.lock), Ok(false))
        {
            match &self.info {
                None => {
                    let (mut reported, record) = (REPORTED.lock(), self.files.path(FileRole::Info));
                    if reported.get(record) == Some(&ended) {
                        reported.remove(record);
                    }
                }
                Some(Info { file, before, .. }) if undo(&self.files, file, before.as_deref()).is_ok() => return,
                Some(_) => {}
            }
        }
        self.release();
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

/// No code ran with the lock: as far as possible, the record says what it said before.
fn undo(files: &Files, file: &File, before: Option<&[u8]>) -> io::Result<()> {
    match before {
        None => std::fs::remove_file(files.path(FileRole::Info)),
        Some(before) => system::write_whole(file, before).and_then(|()| file.set_len(before.len() as u64)),
    }
}

fn write(files: &Files, info: &Info, status: Status) -> Result<(), FileFailure> {
    let bytes = record::encode(files.name(), status, &info.holder, info.last_fence);
    system::write_whole(&info.file, &bytes).map_err(|error| files.failure("write", FileRole::Info, error))
}

#[cfg(test)]
mod tests;
