//! A lock that this process holds. Dropped without [`Hold::release`], it is freed as if its process had been killed: the
//! record stays dirty, and the next one is told that it was abandoned.

use std::fs::File;
use std::sync::Arc;

use super::file::{Failure, Files, Locked, Mode};
use super::name::Part;
use super::record::{self, Holder, Past, Status};
use super::system;

/// A lock that is held.
#[derive(Debug)]
pub struct Hold {
    files: Arc<Files>,
    /// Locked by the kernel until the last of those who share it in this process drops it.
    lock: Arc<Locked>,
    /// For an exclusive one.
    info: Option<Info>,
    past: Past,
}

#[derive(Debug)]
struct Info {
    file: File,
    holder: Holder,
}

/// What a release found.
#[derive(Debug, Default)]
pub struct Released {
    /// The file of the lock was removed meanwhile: another process may have held it at the same time.
    pub is_removed: bool,
    /// The record could not be written, so that the next one is told that the lock was abandoned.
    pub unwritten: Option<Failure>,
}

impl Hold {
    /// The kernel has locked `lock`: reads the record, and says there who holds it, if alone.
    pub(super) fn begin(files: &Arc<Files>, mode: Mode, lock: Arc<Locked>, thread: u32) -> Result<Self, Failure> {
        system::touch(&lock);
        let name = files.name();
        let read = |content: Option<&Vec<u8>>| content.map_or(Past::Clean, |content| record::past(name, content));
        let (info, past) = match mode {
            Mode::Shared => (None, read(files.record(record::length(name))?.as_ref())),
            Mode::Exclusive => {
                let (file, is_new) = files.open(Part::Info)?;
                let content = if is_new { None } else { Some(files.read(&file, record::length(name))?) };
                let past = read(content.as_ref());
                let info = Info { file, holder: Holder::now(thread) };
                write(files, &info, Status { is_held: true, is_abandoned: past != Past::Clean })?;
                if content.is_some_and(|content| content.len() > record::length(name)) {
                    // Cut last: until then it is too long, and so dirty.
                    let cut = info.file.set_len(record::length(name) as u64);
                    cut.map_err(|error| files.failure("write", Part::Info, error))?;
                }
                (Some(info), past)
            }
        };
        Ok(Self { files: Arc::clone(files), lock, info, past })
    }

    /// What earlier holders have left.
    pub fn past(&self) -> Past {
        self.past
    }

    /// Whether an earlier holder ended inside.
    pub fn is_abandoned(&self) -> bool {
        self.past != Past::Clean
    }

    /// What it protects was repaired: the next one is not told any more. Only for an exclusive hold.
    pub fn mark_consistent(&mut self) {
        debug_assert!(self.info.is_some(), "those who share it write nothing");
        self.past = Past::Clean;
    }

    /// Frees it.
    pub fn release(self) -> Released {
        // What cannot be looked at was not removed.
        let is_removed = matches!(self.files.leads_to(Part::Lock, &self.lock), Ok(false));
        let unwritten = match &self.info {
            // The record may be that of another holder by now.
            Some(info) if !is_removed => {
                write(&self.files, info, Status { is_held: false, is_abandoned: self.is_abandoned() }).err()
            }
            _ => None,
        };
        Released { is_removed, unwritten }
    }
}

fn write(files: &Files, info: &Info, status: Status) -> Result<(), Failure> {
    let bytes = record::encode(files.name(), status, &info.holder);
    system::write_whole(&info.file, &bytes).map_err(|error| files.failure("write", Part::Info, error))
}
