//! One file of a name: opened, locked by the kernel, and checked to be the one that its path leads to.

use std::fs::{File, TryLockError};
use std::io;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::directory::{Directory, Refusal};
use super::guard::Guard;
use super::interrupt::Interrupt;
use super::name::{FileRole, LockName};
use super::system;
use crate::sync::Mutex;

/// The mode in which a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// Alone.
    Exclusive,
    /// With others who share it.
    Shared,
}

/// The number of tries before the gate counts as closed.
const GATE_LOOKS: u32 = 4;

/// Why a file could not be locked or used.
#[derive(Debug)]
pub enum FileFailure {
    /// Its directory was removed, and what is there now cannot be used.
    Refused(Refusal),
    /// The system refuses.
    System {
        /// The verb that failed, for a message.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The system refuses the thread that the wait needs.
    NoThread(io::Error),
}

/// A file that the kernel has locked; dropped, it is unlocked. Closing it is not enough: a process that is being started
/// has the file too, until it has become its own program.
#[derive(Debug)]
pub struct Locked {
    file: File,
    is_locked: AtomicBool,
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Locked {
    fn new(file: File) -> Self {
        Self { file, is_locked: AtomicBool::new(true) }
    }

    /// Unlocks it already now.
    pub fn unlock(&self) {
        // Relaxed: it guards no data.
        if self.is_locked.swap(false, Ordering::Relaxed) {
            // If that fails, closing it has to do.
            let _ = self.file.unlock();
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.unlock();
    }
}

/// The files of one name in its directory.
#[derive(Debug)]
pub struct Files {
    directory: Arc<Directory>,
    name: LockName,
    lock: PathBuf,
    info: PathBuf,
    turn: PathBuf,
    gate: PathBuf,
    /// Keeps cleaners out of the directory for as long as the name is used.
    guard: Mutex<Option<Arc<Guard>>>,
}

impl Files {
    /// The files of `name`, in a directory that was checked.
    pub fn new(directory: Arc<Directory>, name: LockName) -> Self {
        let path = |role| directory.path().join(name.file(role));
        let (lock, info, turn, gate) =
            (path(FileRole::Lock), path(FileRole::Info), path(FileRole::Turn), path(FileRole::Gate));
        let guard = Mutex::new(Guard::of(&directory));
        Self { directory, name, lock, info, turn, gate, guard }
    }

    /// The descriptor that keeps cleaners out of the directory, if there is one.
    pub fn guard_descriptor(&self) -> Option<i32> {
        self.guard.lock().as_ref().and_then(|guard| guard.descriptor())
    }

    /// The name.
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// The path of a file.
    pub fn path(&self, role: FileRole) -> &PathBuf {
        match role {
            FileRole::Lock => &self.lock,
            FileRole::Info => &self.info,
            FileRole::Turn => &self.turn,
            FileRole::Gate => &self.gate,
        }
    }

    /// Opens a file, or makes it, and its directory if somebody has removed that. Returns whether it was made, too.
    pub fn open(&self, role: FileRole) -> Result<(File, bool), FileFailure> {
        let path = self.path(role);
        let opened = match system::open(path, self.directory.rights()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let directory = self.directory.reopen().map_err(FileFailure::Refused)?;
                *self.guard.lock() = Guard::of(&directory);
                system::open(path, directory.rights())
            }
            opened => opened,
        };
        opened.map_err(|error| self.failure("open", role, error))
    }

    /// Opens a file and locks it if that can be at once.
    pub fn try_lock(&self, role: FileRole, mode: LockMode) -> Result<Option<Locked>, FileFailure> {
        loop {
            let (file, _) = self.open(role)?;
            if !try_mode(&file, mode).map_err(|error| self.failure("lock", role, error))? {
                return Ok(None);
            }
            touch(role, &file);
            if self.leads_to(role, &file)? {
                return Ok(Some(Locked::new(file)));
            }
        }
    }

    /// Opens a file and blocks the thread until it is locked, or until `interrupt` ends that: then there is none.
    pub fn lock(&self, role: FileRole, mode: LockMode, interrupt: &Interrupt) -> Result<Option<Locked>, FileFailure> {
        loop {
            let (file, _) = self.open(role)?;
            // Not once it is locked: whoever waits in line has waited long enough by then.
            touch(role, &file);
            let locked = interrupt.run(&file, || match mode {
                LockMode::Exclusive => file.lock(),
                LockMode::Shared => file.lock_shared(),
            });
            if !locked.map_err(|error| self.failure("lock", role, error))? {
                return Ok(None);
            }
            // It may have been removed and made again meanwhile: then others lock another one.
            if self.leads_to(role, &file)? {
                return Ok(Some(Locked::new(file)));
            }
        }
    }

    /// Whether nobody waits to hold the name alone.
    pub fn is_gate_open(&self) -> Result<bool, FileFailure> {
        let gate = match system::open_to_read(self.path(FileRole::Gate)) {
            Ok(gate) => gate,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(self.failure("open", FileRole::Gate, error)),
        };
        let gate = Locked::new(gate);
        let locks = |mode| try_mode(&gate, mode).map_err(|error| self.failure("lock", FileRole::Gate, error));
        for _ in 0..GATE_LOOKS {
            // One that keeps both out has it exclusively: it looks as well, and may be stopped there. So nobody has closed it.
            if locks(LockMode::Exclusive)? || !locks(LockMode::Shared)? {
                return Ok(true);
            }
            // It was closed, or one who looked has left since. Others who look take this one's lock for a closed gate.
            let _ = gate.file.unlock();
            std::thread::yield_now();
        }
        Ok(false)
    }

    /// The content of the name's record, and one byte more than `longest` of it at most; `None` if there is none.
    pub fn record(&self, longest: usize) -> Result<Option<Vec<u8>>, FileFailure> {
        match system::open_to_read(self.path(FileRole::Info)) {
            Ok(file) => self.read(&file, longest).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failure("open", FileRole::Info, error)),
        }
    }

    /// The same of a record that is open.
    pub fn read(&self, file: &File, longest: usize) -> Result<Vec<u8>, FileFailure> {
        system::read_whole(file, longest + 1).map_err(|error| self.failure("read", FileRole::Info, error))
    }

    /// Whether the path of a file still leads to it.
    pub fn leads_to(&self, role: FileRole, file: &File) -> Result<bool, FileFailure> {
        system::leads_to(self.path(role), file).map_err(|error| self.failure("look at", role, error))
    }

    /// A failure of a file.
    pub fn failure(&self, verb: &'static str, role: FileRole, error: io::Error) -> FileFailure {
        FileFailure::System { verb, path: self.path(role).clone(), error }
    }
}

/// Cleaners of old files are to leave those that are locked.
fn touch(role: FileRole, file: &File) {
    if role == FileRole::Lock {
        system::touch(file);
    }
}

/// Locks a file if that can be at once.
fn try_mode(file: &File, mode: LockMode) -> io::Result<bool> {
    let tried = || match mode {
        LockMode::Exclusive => file.try_lock(),
        LockMode::Shared => file.try_lock_shared(),
    };
    uninterrupted(|| match tried() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    })
}

/// Runs `call` again whenever a signal interrupts it.
fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::testing::Scratch;

    #[cfg_attr(not(target_os = "linux"), allow(unused, reason = "some of these tests are for Linux only"))]
    impl Files {
        /// The files of a name in the directory of a test.
        pub fn of(scratch: &Scratch, name: &str) -> Self {
            let units: Vec<u16> = name.encode_utf16().collect();
            Self::new(Arc::new(Directory::open(Some(scratch.path())).unwrap()), LockName::new(&units))
        }
    }

    #[test]
    fn a_call_that_a_signal_interrupts_is_made_again() {
        let mut calls = 0;
        let result = uninterrupted(|| {
            calls += 1;
            if calls < 3 { Err(io::ErrorKind::Interrupted.into()) } else { Ok(calls) }
        });
        assert_eq!(result.unwrap(), 3);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn one_who_waited_for_a_file_that_was_removed_locks_the_new_one() {
        let scratch = Scratch::new();
        let files = Files::of(&scratch, "removed");
        let lock = || files.lock(FileRole::Lock, LockMode::Exclusive, &Interrupt::default()).unwrap().unwrap();
        let old = lock();
        std::thread::scope(|threads| {
            let waiter = threads.spawn(lock);
            scratch.until_blocked_waiters(1);
            std::fs::remove_file(files.path(FileRole::Lock)).unwrap();
            drop(old);
            let new = waiter.join().unwrap();
            assert!(files.leads_to(FileRole::Lock, &new).unwrap());
        });
    }

    #[test]
    fn a_file_looks_young_to_cleaners_whenever_it_is_locked() {
        let scratch = Scratch::new();
        let files = Files::of(&scratch, "young");
        let interrupt = Interrupt::default();
        for is_blocking in [false, true] {
            let (file, _) = files.open(FileRole::Lock).unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
            let locked = match is_blocking {
                true => files.lock(FileRole::Lock, LockMode::Shared, &interrupt),
                false => files.try_lock(FileRole::Lock, LockMode::Shared),
            };
            let modified = locked.unwrap().unwrap().metadata().unwrap().modified().unwrap();
            assert!(modified > std::time::UNIX_EPOCH + std::time::Duration::from_secs(1), "blocking: {is_blocking}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_link_or_a_pipe_in_place_of_a_file_is_an_error() {
        let scratch = Scratch::new();
        let files = Files::of(&scratch, "linked");
        std::os::unix::fs::symlink(scratch.path().join("elsewhere"), files.path(FileRole::Lock)).unwrap();
        assert!(matches!(files.open(FileRole::Lock), Err(FileFailure::System { verb: "open", .. })));
        assert!(!scratch.path().join("elsewhere").exists());
        let made = std::process::Command::new("mkfifo").arg(files.path(FileRole::Info)).status().unwrap();
        assert!(made.success());
        assert!(matches!(files.open(FileRole::Info), Err(FileFailure::System { .. })));
    }

    #[test]
    #[cfg(unix)]
    fn a_gate_is_open_unless_somebody_waits_there_and_what_cannot_be_opened_is_an_error() {
        let scratch = Scratch::new();
        let files = Files::of(&scratch, "gate");
        assert!(files.is_gate_open().unwrap(), "there is none");
        let closed = files.try_lock(FileRole::Gate, LockMode::Shared).unwrap().unwrap();
        assert!(!files.is_gate_open().unwrap());
        drop(closed);
        assert!(files.is_gate_open().unwrap());
        let looked_at = files.try_lock(FileRole::Gate, LockMode::Exclusive).unwrap().unwrap();
        assert!(files.is_gate_open().unwrap(), "one who was stopped while it looked there does not wait");
        drop(looked_at);
        std::fs::remove_file(files.path(FileRole::Gate)).unwrap();
        std::os::unix::fs::symlink(scratch.path().join("elsewhere"), files.path(FileRole::Gate)).unwrap();
        assert!(matches!(files.is_gate_open(), Err(FileFailure::System { verb: "open", .. })));
    }

    #[test]
    #[cfg(unix)]
    fn a_record_is_read_to_one_byte_more_than_is_expected_and_one_that_cannot_be_opened_is_an_error() {
        let scratch = Scratch::new();
        let files = Files::of(&scratch, "record");
        assert_eq!(files.record(4).unwrap(), None);
        std::fs::write(files.path(FileRole::Info), "123456").unwrap();
        assert_eq!(files.record(4).unwrap().unwrap(), *b"12345");
        std::fs::remove_file(files.path(FileRole::Info)).unwrap();
        std::os::unix::fs::symlink(scratch.path().join("elsewhere"), files.path(FileRole::Info)).unwrap();
        assert!(matches!(files.record(4), Err(FileFailure::System { verb: "open", .. })));
    }

    #[test]
    #[cfg(unix)]
    fn a_directory_that_was_made_again_is_kept_from_cleaners_too() {
        let scratch = Scratch::new();
        let files = Files::of(&scratch, "again");
        std::fs::remove_dir_all(scratch.path()).unwrap();
        let _made = files.open(FileRole::Lock).unwrap();
        let cleaner = File::open(scratch.path()).unwrap();
        assert!(matches!(cleaner.try_lock(), Err(std::fs::TryLockError::WouldBlock)));
    }

    #[test]
    #[cfg(unix)]
    fn files_have_the_rights_that_those_of_the_directory_say() {
        use std::fs;
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::new();
        for (mode, expected) in
            [(0o700, 0o600), (0o755, 0o600), (0o1770, 0o660), (0o1775, 0o660), (0o1777, 0o666), (0o1703, 0o666)]
        {
            fs::set_permissions(scratch.path(), fs::Permissions::from_mode(mode)).unwrap();
            let (file, is_new) = Files::of(&scratch, "a").open(FileRole::Lock).unwrap();
            assert!(is_new);
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, expected, "{mode:o}");
            assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing else is left there");
            fs::remove_file(Files::of(&scratch, "a").path(FileRole::Lock)).unwrap();
        }
    }

    #[test]
    #[cfg(unix)]
    fn what_root_makes_in_the_directory_of_another_user_is_that_users() {
        use std::os::unix::fs::{MetadataExt, chown};
        let scratch = Scratch::new();
        let someone = 54_321;
        // Root alone may give a directory away.
        if chown(scratch.path(), Some(someone), None).is_err() {
            return;
        }
        for role in [FileRole::Lock, FileRole::Info, FileRole::Turn, FileRole::Gate] {
            let (file, _) = Files::of(&scratch, "a").open(role).unwrap();
            assert_eq!(file.metadata().unwrap().uid(), someone, "{role:?}");
        }
    }
}
