//! The directory of the locks: which one, whether it can be relied upon, and what its records say.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use super::name::{FileRole, LockName};
use super::record::{self, FileRecord, RecordedHolder};
use super::system::{self, Identity, Rights};

/// Larger ones are not listed: somebody else has written them, or the name is of no use to people.
const LARGEST_LISTED: usize = 64 << 10;

/// A directory that was checked.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    kind: DirectoryKind,
    /// By device and number: other paths may lead here.
    pub identity: Identity,
    rights: Rights,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DirectoryKind {
    /// The user's own: nobody else may own or write it.
    Default,
    /// Its owner and permissions are the business of whoever names it.
    Given,
}

/// Why a directory cannot be used, and which.
#[derive(Debug)]
pub struct Refusal {
    /// The directory.
    pub path: PathBuf,
    /// Why.
    pub reason: Reason,
}

/// Why a directory cannot be used.
#[derive(Debug)]
pub enum Reason {
    /// Another user owns the default one.
    Owner {
        /// That user.
        owner: u32,
        /// This one.
        user: u32,
    },
    /// The default one is not for this user alone: its permissions.
    Permissions(u32),
    /// Others may write there, and remove the files of this user: its permissions.
    NotSticky(u32),
    /// The default one is a link.
    Link,
    /// It is something else.
    NotADirectory,
    /// There is neither the directory nor its parent.
    NoParent,
    /// Its file system is one of several machines, or has locks of its own.
    FileSystem(&'static str),
    /// The system refuses.
    System(io::Error),
}

impl From<io::Error> for Reason {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl Directory {
    /// The directory at `path`, or that of this user. It is made if there is none.
    pub fn open(path: Option<&Path>) -> Result<Self, Refusal> {
        match path {
            Some(path) => Self::check(path, DirectoryKind::Given),
            None => match system::default_directory() {
                Ok(path) => Self::check(&path, DirectoryKind::Default),
                Err(error) => Err(Refusal { path: PathBuf::new(), reason: error.into() }),
            },
        }
    }

    /// Makes the directory again if somebody has removed it; it may be another one then.
    pub(super) fn reopen(&self) -> Result<Self, Refusal> {
        Self::check(&self.path, self.kind)
    }

    fn check(path: &Path, kind: DirectoryKind) -> Result<Self, Refusal> {
        let refuse = |reason| Refusal { path: path.to_owned(), reason };
        let metadata = found_or_made(path, kind).map_err(refuse)?;
        match kind {
            DirectoryKind::Default => check_private(&metadata),
            DirectoryKind::Given => check_sticky(&metadata),
        }
        .map_err(refuse)?;
        let path = path.canonicalize().map_err(|error| refuse(error.into()))?;
        match system::refused_file_system(&path) {
            Ok(None) => {}
            Ok(Some(name)) => return Err(refuse(Reason::FileSystem(name))),
            Err(error) => return Err(refuse(error.into())),
        }
        // Read once for all, and not between a grant and its code.
        let _ = (system::boot(), system::process_namespace());
        let identity = system::identity(&path, &metadata).map_err(|error| refuse(error.into()))?;
        Ok(Self { path, kind, identity, rights: system::rights(&metadata) })
    }

    /// The path, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is this one, at the same path, and was found with the same rights.
    pub fn is_as(&self, other: &Self) -> bool {
        (self.identity, &self.path, self.rights) == (other.identity, &other.path, other.rights)
    }

    /// The rights that its files get.
    pub(super) fn rights(&self) -> Rights {
        self.rights
    }

    /// The names that processes hold exclusively, by what their records say; not those whose process has ended.
    /// A name may be free, or another's, by now.
    pub fn holders(&self) -> io::Result<Vec<(Vec<u16>, RecordedHolder)>> {
        let mut holders = Vec::new();
        for entry in self.path.read_dir()? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == FileRole::Info.extension()) {
                holders.extend(holder_by(&path));
            }
        }
        Ok(holders)
    }

    /// As [`Directory::holders`], of one name.
    pub fn holder(&self, units: &[u16]) -> Option<RecordedHolder> {
        let (found, holder) = holder_by(&self.path.join(LockName::new(units).file(FileRole::Info)))?;
        (found == units).then_some(holder)
    }

    /// The processes that share one name, as far as the system shows them: they leave no records.
    pub fn sharers(&self, units: &[u16]) -> Vec<u32> {
        let file = self.path.join(LockName::new(units).file(FileRole::Lock));
        file.metadata().map_or_else(|_| Vec::new(), |file| system::sharers(&file))
    }
}

/// The holder in the record at `path`, with the name, unless its process has ended. Of one whose number says nothing here the lock
/// says whether it lives.
fn holder_by(path: &Path) -> Option<(Vec<u16>, RecordedHolder)> {
    // A file that cannot be read, or is removed meanwhile, is nobody's.
    let FileRecord { units, holder, .. } = read(path).ok().flatten().and_then(|bytes| record::decode(&bytes))?;
    let is_locked = || is_locked(&path.with_extension(FileRole::Lock.extension()));
    (holder.may_live() && (!holder.is_of_other_namespace() || is_locked())).then_some((units, holder))
}

/// Whether somebody holds the lock of this file alone, if that can be seen. Those who try to hold it alone may find it shared for a
/// moment.
fn is_locked(path: &Path) -> bool {
    match system::open_to_read(path) {
        Ok(file) => file.try_lock_shared().is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn found_or_made(path: &Path, kind: DirectoryKind) -> Result<Metadata, Reason> {
    let look = || if kind == DirectoryKind::Default { path.symlink_metadata() } else { path.metadata() };
    let metadata = match look() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match system::make_directory(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Reason::NoParent),
                // Another process has made it meanwhile, or a link there leads nowhere.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made?,
            }
            look()?
        }
        found => found?,
    };
    if metadata.is_symlink() {
        Err(Reason::Link)
    } else if metadata.is_dir() {
        Ok(metadata)
    } else {
        Err(Reason::NotADirectory)
    }
}

fn check_private(metadata: &Metadata) -> Result<(), Reason> {
    if let Some((owner, user)) = system::foreign_owner(metadata) {
        return Err(Reason::Owner { owner, user });
    }
    match system::permissions(metadata) {
        Some(mode) if mode & 0o777 != 0o700 => Err(Reason::Permissions(mode)),
        _ => Ok(()),
    }
}

/// Refuses a directory where the group or all may write, and so remove anybody's files, unless it is sticky.
fn check_sticky(metadata: &Metadata) -> Result<(), Reason> {
    match system::permissions(metadata) {
        Some(mode) if mode & 0o022 != 0 && mode & 0o1000 == 0 => Err(Reason::NotSticky(mode)),
        _ => Ok(()),
    }
}

/// A record that says that its lock is held.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = system::open_to_read(path)?;
    if !record::may_be_held(&system::read_whole(&file, record::PREFIX)?) {
        return Ok(None);
    }
    let bytes = system::read_whole(&file, LARGEST_LISTED + 1)?;
    Ok((bytes.len() <= LARGEST_LISTED).then_some(bytes))
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::files::testing::Scratch;

    fn refusal(path: &Path, kind: DirectoryKind) -> Reason {
        Directory::check(path, kind).expect_err("it is refused").reason
    }

    #[test]
    fn a_directory_is_made_for_its_user_alone() {
        let scratch = Scratch::new();
        let made = scratch.path().join("made");
        for kind in [DirectoryKind::Default, DirectoryKind::Given] {
            assert_eq!(Directory::check(&made, kind).unwrap().path(), made.canonicalize().unwrap());
            assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o700);
            fs::remove_dir(&made).unwrap();
        }
    }

    #[test]
    fn the_default_one_is_refused_if_it_is_a_link_or_not_for_its_user_alone() {
        let scratch = Scratch::new();
        let (real, link) = (scratch.path().join("real"), scratch.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        assert!(matches!(refusal(&link, DirectoryKind::Default), Reason::Link));
        for mode in [0o770, 0o702, 0o1777, 0o755, 0o500] {
            fs::set_permissions(&real, fs::Permissions::from_mode(mode)).unwrap();
            assert!(
                matches!(refusal(&real, DirectoryKind::Default), Reason::Permissions(found) if found == mode),
                "{mode:o}"
            );
        }
    }

    #[test]
    fn one_in_which_others_may_write_is_sticky_or_refused() {
        let scratch = Scratch::new();
        for mode in [0o770, 0o777, 0o702, 0o2775] {
            fs::set_permissions(scratch.path(), fs::Permissions::from_mode(mode)).unwrap();
            let reason = refusal(scratch.path(), DirectoryKind::Given);
            assert!(matches!(reason, Reason::NotSticky(found) if found == mode), "{mode:o}: {reason:?}");
            fs::set_permissions(scratch.path(), fs::Permissions::from_mode(mode | 0o1000)).unwrap();
            Directory::check(scratch.path(), DirectoryKind::Given).unwrap();
        }
        for mode in [0o755, 0o700] {
            fs::set_permissions(scratch.path(), fs::Permissions::from_mode(mode)).unwrap();
            Directory::check(scratch.path(), DirectoryKind::Given).unwrap();
        }
    }

    #[test]
    fn one_by_two_paths_is_the_same() {
        let scratch = Scratch::new();
        let (real, link) = (scratch.path().join("real"), scratch.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(scratch.path(), &link).unwrap();
        let (one, other) = (Directory::open(Some(&real)).unwrap(), Directory::open(Some(&link.join("real"))).unwrap());
        assert_eq!((one.identity, one.path()), (other.identity, other.path()));
    }

    #[test]
    fn of_a_holder_in_another_namespace_the_lock_says_whether_it_lives() {
        let scratch = Scratch::new();
        let directory = Directory::open(Some(scratch.path())).unwrap();
        let units: Vec<u16> = "far".encode_utf16().collect();
        let name = LockName::new(&units);
        let here = RecordedHolder::now(0);
        let holder = RecordedHolder { namespace: here.namespace + 1, process: u32::MAX, ..here };
        let held = record::Status { is_held: true, is_in: true, is_abandoned: false };
        fs::write(scratch.path().join(name.file(FileRole::Info)), record::encode(&name, held, &holder, 0)).unwrap();
        let found = || (directory.holder(&units), directory.holders().unwrap().len());
        assert_eq!(found(), (None, 0), "there is no file that it could have locked");
        let lock = fs::File::create(scratch.path().join(name.file(FileRole::Lock))).unwrap();
        assert_eq!(found(), (None, 0), "it was killed");
        lock.lock().unwrap();
        assert_eq!(found(), (Some(holder), 1));
        lock.unlock().unwrap();
        assert_eq!(found(), (None, 0));
    }

    #[test]
    fn what_is_no_directory_and_what_has_no_parent_are_refused() {
        let scratch = Scratch::new();
        let file = scratch.path().join("file");
        fs::write(&file, "").unwrap();
        for kind in [DirectoryKind::Default, DirectoryKind::Given] {
            assert!(matches!(refusal(&file, kind), Reason::NotADirectory));
            assert!(matches!(refusal(&scratch.path().join("no/parent"), kind), Reason::NoParent));
        }
        assert!(!scratch.path().join("no").exists());
        symlink(scratch.path().join("nowhere"), scratch.path().join("dangling")).unwrap();
        assert!(matches!(refusal(&scratch.path().join("dangling"), DirectoryKind::Given), Reason::System(_)));
    }

    #[test]
    fn one_that_was_moved_or_made_again_or_has_other_rights_is_another() {
        let scratch = Scratch::new();
        let [path, moved] = ["path", "moved"].map(|name| scratch.path().join(name));
        let open = |path: &Path| Directory::open(Some(path)).unwrap();
        let first = open(&path);
        assert!(first.is_as(&open(&path)));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(!first.is_as(&open(&path)), "its files would get other rights");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        fs::rename(&path, &moved).unwrap();
        assert!(!first.is_as(&open(&moved)), "it was moved");
        assert!(!first.is_as(&open(&path)), "it was made again");
    }

    #[test]
    fn a_record_of_another_name_says_nothing_of_who_holds_this_one() {
        let scratch = Scratch::new();
        let directory = Directory::open(Some(scratch.path())).unwrap();
        let status = record::Status { is_held: true, is_in: true, is_abandoned: false };
        let [this, other] = [[97], [98]].map(|units| LockName::new(&units));
        let holder = RecordedHolder::now(7);
        fs::write(scratch.path().join(this.file(FileRole::Info)), record::encode(&other, status, &holder, 0)).unwrap();
        assert_eq!(directory.holder(this.units()), None);
        fs::write(scratch.path().join(this.file(FileRole::Info)), record::encode(&this, status, &holder, 0)).unwrap();
        assert_eq!(directory.holder(this.units()), Some(holder));
    }
}
