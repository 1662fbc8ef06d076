//! Files of Linux and macOS.

use std::ffi::CString;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::identity::Identity;

/// For nobody but the owner.
const PRIVATE: u32 = 0o700;

/// The directory for the locks of this user, the same whatever the environment says.
pub fn default_directory() -> io::Result<PathBuf> {
    // SAFETY: takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    Ok(parent()?.join(format!("sablock-{user}")))
}

#[cfg(not(target_vendor = "apple"))]
fn parent() -> io::Result<PathBuf> {
    Ok(PathBuf::from("/tmp"))
}

/// The user's own folder beside the temporary one (`confstr(3)`). From the temporary one, macOS removes what was not used for
/// three days, even if it is locked.
#[cfg(target_vendor = "apple")]
fn parent() -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let mut path = vec![0_u8; libc::PATH_MAX as usize];
    // SAFETY: the buffer has the length that is given.
    let length = unsafe { libc::confstr(libc::_CS_DARWIN_USER_DIR, path.as_mut_ptr().cast(), path.len()) };
    if length == 0 || length > path.len() {
        return Err(io::Error::last_os_error());
    }
    path.truncate(length - 1);
    Ok(PathBuf::from(std::ffi::OsString::from_vec(path)))
}

/// Makes a directory for this user alone; its parent exists. It has its permissions, whatever the umask takes away, before it
/// has its name: nobody finds it with others.
pub fn make_directory(path: &Path) -> io::Result<()> {
    let made = unnamed(path, |temporary| DirBuilder::new().mode(PRIVATE).create(temporary))?.1;
    let named = std::fs::set_permissions(&made, Permissions::from_mode(PRIVATE)).and_then(|()| rename_new(&made, path));
    if named.is_err() {
        // Another one has the name by now, or it cannot be had.
        let _ = std::fs::remove_dir(&made);
    }
    named
}

/// Makes something under a name that nobody has, beside the place that it is for.
fn unnamed<T>(path: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, PathBuf)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // Relaxed: only that no two are the same counts. Those of other processes may be the same in other namespaces.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_file_name(format!(".sablock-{}-{number}", std::process::id()));
        match make(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((made?, temporary)),
        }
    }
}

/// Renames a directory, but not to a name that exists.
#[cfg(not(target_vendor = "apple"))]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let (old, new) = (CString::new(from.as_os_str().as_bytes())?, CString::new(to.as_os_str().as_bytes())?);
    let here = libc::AT_FDCWD;
    // SAFETY: the paths end in NUL. The system's call, since older C libraries have no function for it.
    if unsafe { libc::syscall(libc::SYS_renameat2, here, old.as_ptr(), here, new.as_ptr(), libc::RENAME_NOREPLACE) }
        == 0
    {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) => rename_empty(from, to),
        error => Err(error),
    }
}

#[cfg(target_vendor = "apple")]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let (old, new) = (CString::new(from.as_os_str().as_bytes())?, CString::new(to.as_os_str().as_bytes())?);
    // SAFETY: the paths end in NUL.
    if unsafe { libc::renamex_np(old.as_ptr(), new.as_ptr(), libc::RENAME_EXCL) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if matches!(error.raw_os_error(), Some(libc::ENOTSUP | libc::EINVAL)) => rename_empty(from, to),
        error => Err(error),
    }
}

/// For file systems that cannot do that: replaces at most an empty directory, which somebody has made just now.
fn rename_empty(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to).map_err(|error| match error.kind() {
        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => io::ErrorKind::AlreadyExists.into(),
        _ => error,
    })
}

/// The owner of a directory and this user, if they are two.
pub fn foreign_owner(metadata: &Metadata) -> Option<(u32, u32)> {
    // SAFETY: takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    (metadata.uid() != user).then(|| (metadata.uid(), user))
}

/// The permissions of a directory.
pub fn permissions(metadata: &Metadata) -> Option<u32> {
    Some(metadata.mode() & 0o7777)
}

/// The rights of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights {
    mode: u32,
    owner: Option<u32>,
    group: Option<u32>,
}

/// The rights that the files of a directory get: who may write there may lock there, and nobody else.
pub fn rights(directory: &Metadata) -> Rights {
    // A file that root makes for another user would else lock that user out.
    // SAFETY: takes nothing and cannot fail.
    let owner = (unsafe { libc::geteuid() } == 0).then(|| directory.uid());
    if directory.mode() & 0o002 != 0 {
        // A user that is neither the owner nor in the group can give nothing to that.
        return Rights { mode: 0o666, owner, group: None };
    }
    if directory.mode() & 0o020 != 0 {
        return Rights { mode: 0o660, owner, group: Some(directory.gid()) };
    }
    Rights { mode: 0o600, owner, group: None }
}

/// The identity of a directory.
pub fn identity(_: &Path, metadata: &Metadata) -> io::Result<Identity> {
    Ok(Identity(metadata.dev(), metadata.ino().into()))
}

/// The name of the file system, if processes on other machines may use it, or its locks are not the kernel's own.
pub fn refused_file_system(path: &Path) -> io::Result<Option<&'static str>> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut info = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path ends in NUL, and the out-parameter lives.
    if unsafe { libc::statfs(path.as_ptr(), info.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `statfs` has returned 0, so it has filled it in.
    Ok(refused(unsafe { info.assume_init_ref() }))
}

#[cfg(not(target_vendor = "apple"))]
fn refused(info: &libc::statfs) -> Option<&'static str> {
    refused_magic(info.f_type as u32)
}

/// The numbers of `linux/magic.h`, and those of the kernel's SMB clients.
#[cfg(not(target_vendor = "apple"))]
fn refused_magic(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x0102_1997 => "9p",
        0x6573_5546 => "FUSE",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x786f_4256 => "VirtualBox's shared folders",
        _ => return None,
    })
}

#[cfg(target_vendor = "apple")]
fn refused(info: &libc::statfs) -> Option<&'static str> {
    // SAFETY: the system ends the name in NUL.
    let name = unsafe { std::ffi::CStr::from_ptr(info.f_fstypename.as_ptr()) }.to_bytes();
    Some(match name {
        b"nfs" => "NFS",
        b"smbfs" => "SMB",
        b"9p" => "9p",
        b"afpfs" => "AFP",
        b"afs" => "AFS",
        b"webdav" => "WebDAV",
        _ if name.windows(4).any(|part| part == b"fuse") => "FUSE",
        _ => return None,
    })
}

/// Opens a file, or makes it; follows no link, and waits for no other end of a pipe. Returns whether it was made, too.
///
/// Asked to make what exists already, Linux refuses another user's file in a directory like `/tmp`; so it is made only when there
/// is none. Then it has its rights before it has its name: nobody who may use it is ever refused.
pub fn open(path: &Path, rights: Rights) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    loop {
        match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return Ok((regular(opened?)?, false)),
        }
        match make(path, rights) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((made?, true)),
        }
    }
}

fn make(path: &Path, rights: Rights) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
    let (file, temporary) = unnamed(path, |temporary| options.open(temporary))?;
    let linked = give(&file, rights).and_then(|()| match std::fs::hard_link(&temporary, path) {
        // The file system has no links.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOTSUP)) => options.open(path).map(Some),
        linked => linked.map(|()| None),
    });
    // If that fails, it is in nobody's way.
    let removed = std::fs::remove_file(&temporary);
    debug_assert!(removed.is_ok(), "{removed:?}");
    match linked? {
        None => Ok(file),
        Some(unlinked) => give(&unlinked, rights).map(|()| unlinked),
    }
}

fn give(file: &File, Rights { mode, owner, group }: Rights) -> io::Result<()> {
    let found = file.metadata()?;
    let is_other = |wanted: Option<u32>, found| wanted.is_some_and(|wanted| wanted != found);
    if is_other(owner, found.uid()) || is_other(group, found.gid()) {
        std::os::unix::fs::fchown(file, owner, group)?;
    }
    if found.mode() & 0o777 == mode { Ok(()) } else { file.set_permissions(Permissions::from_mode(mode)) }
}

/// Opens a file to read it, as [`open`].
pub fn open_to_read(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?)
}

/// Opens a directory, to be locked.
pub fn open_directory(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NONBLOCK | libc::O_CLOEXEC).open(path)
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
}

/// Whether the path leads to this file.
pub fn leads_to(path: &Path, file: &File) -> io::Result<bool> {
    let opened = file.metadata()?;
    match path.symlink_metadata() {
        Ok(found) => Ok((found.dev(), found.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The file was used just now: programs that remove old files are to leave it.
pub fn touch(file: &File) {
    // SAFETY: the descriptor is open. A null pointer stands for the present time, which whoever may write may set.
    // If it fails, the file looks older than it is.
    unsafe { libc::futimens(file.as_raw_fd(), std::ptr::null()) };
}

/// Its content, `longest` bytes at most. A regular file returns all that it has of them in one call.
pub fn read_whole(file: &File, longest: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; longest];
    loop {
        match std::os::unix::fs::FileExt::read_at(file, &mut bytes, 0) {
            Ok(read) => {
                bytes.truncate(read);
                return Ok(bytes);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes at the beginning, in one call.
pub fn write_whole(file: &File, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, 0)
}

#[cfg(all(test, not(target_vendor = "apple")))]
mod tests {
    use super::*;
    use crate::files::testing::Scratch;

    #[test]
    fn file_systems_that_other_machines_share_are_refused() {
        for (magic, name) in [
            (0x6969, Some("NFS")),
            (0xff53_4d42, Some("SMB")),
            (0xfe53_4d42, Some("SMB")),
            (0x0102_1997, Some("9p")),
            (0x6573_5546, Some("FUSE")),
            (0x5346_414f, Some("AFS")),
            (0xef53, None),
            (0x0102_1994, None),
            (0x9123_683e, None),
            (0x794c_7630, None),
        ] {
            assert_eq!(refused_magic(magic), name, "{magic:#x}");
        }
    }

    #[test]
    fn the_files_of_a_directory_belong_to_its_group_if_that_may_write_there_and_not_all_may() {
        let scratch = Scratch::new();
        let group = 54_321;
        // Root alone may give it to any group.
        if std::os::unix::fs::chown(scratch.path(), None, Some(group)).is_err() {
            return;
        }
        for (mode, is_given) in [(0o1770, true), (0o1777, false), (0o700, false)] {
            std::fs::set_permissions(scratch.path(), Permissions::from_mode(mode)).unwrap();
            let rights = rights(&scratch.path().metadata().unwrap());
            let (file, _) = open(&scratch.path().join(format!("{mode:o}")), rights).unwrap();
            assert_eq!(file.metadata().unwrap().gid() == group, is_given, "{mode:o}");
        }
    }

    #[test]
    fn a_directory_that_exists_is_not_made_again_and_nothing_is_left_beside_it() {
        let scratch = Scratch::new();
        let path = scratch.path().join("made");
        make_directory(&path).unwrap();
        assert_eq!(make_directory(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(scratch.path().read_dir().unwrap().count(), 1);
    }
}

/// The number of an open file.
#[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
pub fn descriptor(file: &File) -> Option<i32> {
    Some(file.as_raw_fd())
}
