//! Linux and macOS.

use std::ffi::CString;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::Identity;

/// For nobody but the owner.
const PRIVATE: u32 = 0o700;

/// The directory for the locks of this user, the same whatever the environment says.
pub fn default_directory() -> io::Result<PathBuf> {
    // SAFETY: takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    Ok(temporary()?.join(format!("sablock-{user}")))
}

#[cfg(not(target_vendor = "apple"))]
fn temporary() -> io::Result<PathBuf> {
    Ok(PathBuf::from("/tmp"))
}

/// The user's own, which the system knows.
#[cfg(target_vendor = "apple")]
fn temporary() -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let mut path = vec![0_u8; libc::PATH_MAX as usize];
    // SAFETY: the buffer has the length that is given.
    let length = unsafe { libc::confstr(libc::_CS_DARWIN_USER_TEMP_DIR, path.as_mut_ptr().cast(), path.len()) };
    if length == 0 || length > path.len() {
        return Err(io::Error::last_os_error());
    }
    path.truncate(length - 1);
    Ok(PathBuf::from(std::ffi::OsString::from_vec(path)))
}

/// Makes a directory for this user alone; its parent exists.
pub fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE).create(path)
}

/// Who owns a directory, if that is not this user: owner and user.
pub fn foreign_owner(metadata: &Metadata) -> Option<(u32, u32)> {
    // SAFETY: takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    (metadata.uid() != user).then(|| (metadata.uid(), user))
}

/// The permissions, if others than the owner may write.
pub fn writable_by_others(metadata: &Metadata) -> Option<u32> {
    (metadata.mode() & 0o022 != 0).then(|| metadata.mode() & 0o7777)
}

/// The identity of a directory.
pub fn identity(_: &Path, metadata: &Metadata) -> io::Result<Identity> {
    Ok(Identity(metadata.dev(), metadata.ino()))
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

/// Opens a file, or makes it for all who may use its directory; follows no link, and waits for no other end of a pipe.
///
/// Asked to make what exists already, Linux refuses another user's file in a directory like `/tmp`; so that is asked
/// for only when there is none.
/// Returns whether it was made, too.
pub fn open(path: &Path, directory_mode: u32) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    loop {
        match options.create_new(false).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return Ok((regular(opened?)?, false)),
        }
        match options.create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                let file = made?;
                let mode = directory_mode & 0o666;
                if mode != 0o600 {
                    file.set_permissions(Permissions::from_mode(mode))?;
                }
                return Ok((file, true));
            }
        }
    }
}

/// Opens a file to read it, as [`open`].
pub fn open_to_read(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?)
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
}

/// The permissions that the files of a directory get.
pub fn mode(metadata: &Metadata) -> u32 {
    metadata.mode() | 0o600
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

/// What it contains, `longest` bytes at most.
pub fn read_whole(file: &File, longest: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; longest];
    let mut length = 0;
    while length < longest {
        match std::os::unix::fs::FileExt::read_at(file, &mut bytes[length..], length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Writes at the beginning, in one call.
pub fn write_whole(file: &File, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, 0)
}

/// The system's start, at random; zeros if it does not tell.
pub fn boot() -> [u8; 16] {
    static BOOT: OnceLock<[u8; 16]> = OnceLock::new();
    *BOOT.get_or_init(|| read_boot().and_then(|text| parse_uuid(&text)).unwrap_or_default())
}

#[cfg(not(target_vendor = "apple"))]
fn read_boot() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

#[cfg(target_vendor = "apple")]
fn read_boot() -> Option<String> {
    let mut text = [0_u8; 64];
    let mut length = text.len();
    // SAFETY: the name ends in NUL, and the buffer has the length that is given.
    let status = unsafe {
        libc::sysctlbyname(
            c"kern.bootsessionuuid".as_ptr(),
            text.as_mut_ptr().cast(),
            &mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    (status == 0).then(|| String::from_utf8_lossy(&text[..length]).into_owned())
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(digits.get(..32)?, 16).ok().map(u128::to_be_bytes)
}

/// In which namespace numbers of processes are those of this one; 0 if there is one for all.
pub fn process_namespace() -> u64 {
    static NAMESPACE: OnceLock<u64> = OnceLock::new();
    *NAMESPACE.get_or_init(|| {
        if cfg!(target_vendor = "apple") {
            0
        } else {
            Path::new("/proc/self/ns/pid").metadata().map_or(0, |ns| ns.ino())
        }
    })
}

/// False if there is no such process in this namespace.
pub fn may_process_live(process: u32) -> bool {
    let Ok(process @ 1..) = libc::pid_t::try_from(process) else { return false };
    // SAFETY: the signal 0 is never sent; the call only looks for the process.
    let found = unsafe { libc::kill(process, 0) } == 0;
    found || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Runs `start`, whose threads get no signals: those are for the threads that the program knows of.
pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the out-parameters live; `sigfillset` fills in the set that is read.
    let status = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr())
    };
    let result = start();
    if status == 0 {
        // SAFETY: the call above has filled in `before`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    }
    result
}

#[cfg(all(test, not(target_vendor = "apple")))]
mod tests {
    use super::*;

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
    fn the_systems_start_is_a_uuid() {
        assert_eq!(parse_uuid("00000000-0000-0000-0000-0000000000ff\n").unwrap()[15], 0xff);
        assert_eq!(parse_uuid("too short"), None);
    }

    #[test]
    fn processes_are_found() {
        assert!(may_process_live(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!may_process_live(child.id()));
        assert!(!may_process_live(0) && !may_process_live(u32::MAX));
    }
}
