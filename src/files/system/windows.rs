//! Windows.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::{Component, Path, PathBuf, Prefix};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use windows_sys::Wdk::System::SystemInformation::{NtQuerySystemInformation, SystemTimeOfDayInformation};
use windows_sys::Win32::Foundation::{
    ERROR_INVALID_PARAMETER, ERROR_OPERATION_ABORTED, ERROR_SHARING_VIOLATION, HANDLE, WAIT_OBJECT_0,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_ID_INFO,
    FILE_SHARE_READ, FILE_SHARE_WRITE, FileIdInfo, GetDriveTypeW, GetFileInformationByHandle,
    GetFileInformationByHandleEx,
};
use windows_sys::Win32::System::Com::CoTaskMemFree;
use windows_sys::Win32::System::IO::CancelIoEx;
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_SYNCHRONIZE, WaitForSingleObject};
use windows_sys::Win32::System::WindowsProgramming::{DRIVE_REMOTE, SYSTEM_TIMEOFDAY_INFORMATION};
use windows_sys::Win32::UI::Shell::{FOLDERID_LocalAppData, SHGetKnownFolderPath};

use super::identity::Identity;

/// Between the tries to open a file that another program shares with nobody: a quarter of a second in all.
const PAUSES_MS: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// The directory for the locks of this user, the same whatever the environment says.
pub fn default_directory() -> io::Result<PathBuf> {
    let mut path = std::ptr::null_mut();
    // SAFETY: the id and the out-parameter live; no token stands for the current user.
    let status = unsafe { SHGetKnownFolderPath(&FOLDERID_LocalAppData, 0, std::ptr::null_mut(), &mut path) };
    if status < 0 {
        // SAFETY: the memory is the function's, null included.
        unsafe { CoTaskMemFree(path.cast()) };
        return Err(io::Error::from_raw_os_error(status));
    }
    // SAFETY: the path ends in NUL, and its memory is given back once, after it was copied.
    let folder = unsafe {
        let length = (0..).take_while(|&at| *path.add(at) != 0).count();
        let folder = OsString::from_wide(std::slice::from_raw_parts(path, length));
        CoTaskMemFree(path.cast());
        folder
    };
    Ok(PathBuf::from(folder).join("sablock"))
}

/// Makes a directory, with the rights of its parent.
pub fn make_directory(path: &Path) -> io::Result<()> {
    std::fs::create_dir(path)
}

/// The user's own folder has no other owner.
pub fn foreign_owner(_: &Metadata) -> Option<(u32, u32)> {
    None
}

/// Rights are inherited, and are no numbers.
pub fn permissions(_: &Metadata) -> Option<u32> {
    None
}

/// The rights of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights;

/// The files have the rights of their directory.
pub fn rights(_: &Metadata) -> Rights {
    Rights
}

/// The identity of a directory.
pub fn identity(path: &Path, _: &Metadata) -> io::Result<Identity> {
    let directory = opened(OpenOptions::new().read(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS), path)?;
    let handle = directory.as_raw_handle();
    let mut long = FILE_ID_INFO::default();
    let size = size_of_val(&long) as u32;
    // SAFETY: the handle is open, and the out-parameter has the size that is given, and the type of `FileIdInfo`.
    if unsafe { GetFileInformationByHandleEx(handle, FileIdInfo, (&raw mut long).cast(), size) } != 0 {
        return Ok(Identity(long.VolumeSerialNumber, u128::from_le_bytes(long.FileId.Identifier)));
    }
    // FAT has the short number only. The short one of ReFS may be that of two directories.
    let mut short = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, and the out-parameter lives.
    if unsafe { GetFileInformationByHandle(handle, &mut short) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let number = u128::from(short.nFileIndexHigh) << 32 | u128::from(short.nFileIndexLow);
    Ok(Identity(short.dwVolumeSerialNumber.into(), number))
}

/// The name of the file system, if it is on another machine.
pub fn refused_file_system(path: &Path) -> io::Result<Option<&'static str>> {
    let path = std::fs::canonicalize(path)?;
    let Some(Component::Prefix(prefix)) = path.components().next() else { return Ok(None) };
    let drive = match prefix.kind() {
        Prefix::UNC(..) | Prefix::VerbatimUNC(..) => return Ok(Some("a network share")),
        Prefix::Disk(drive) | Prefix::VerbatimDisk(drive) => drive,
        _ => return Ok(None),
    };
    let root = [u16::from(drive), u16::from(b':'), u16::from(b'\\'), 0];
    // SAFETY: the root ends in NUL.
    Ok((unsafe { GetDriveTypeW(root.as_ptr()) } == DRIVE_REMOTE).then_some("a network drive"))
}

/// Opens a file, or makes it. It cannot be removed while it is open. Returns whether it was made, too.
pub fn open(path: &Path, _: Rights) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE);
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    loop {
        match opened(options.create_new(false), path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return Ok((opened?, false)),
        }
        match opened(options.create_new(true), path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((made?, true)),
        }
    }
}

/// Opens a file to read it.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    opened(OpenOptions::new().read(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT), path)
}

/// There are no cleaners that a lock of the directory would keep out.
pub fn open_directory(_: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

fn opened(options: &OpenOptions, path: &Path) -> io::Result<File> {
    until_shared(|| options.open(path))
}

/// Opens a file again if another program, like a scanner for viruses, has it for itself alone: that passes.
fn until_shared(mut open: impl FnMut() -> io::Result<File>) -> io::Result<File> {
    for pause in PAUSES_MS {
        match open() {
            Err(error) if is(&error, ERROR_SHARING_VIOLATION) => thread::sleep(Duration::from_millis(pause)),
            opened => return opened,
        }
    }
    open()
}

fn is(error: &io::Error, code: u32) -> bool {
    error.raw_os_error() == Some(code as i32)
}

/// Always: nobody can remove a file that is open here.
pub fn leads_to(_: &Path, _: &File) -> io::Result<bool> {
    Ok(true)
}

/// The file was used just now: programs that remove old files are to leave it. If that fails, it looks older than it is.
pub fn touch(file: &File) {
    let _ = file.set_modified(std::time::SystemTime::now());
}

/// Its content, `longest` bytes at most.
pub fn read_whole(file: &File, longest: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; longest];
    let mut length = 0;
    while length < longest {
        match file.seek_read(&mut bytes[length..], length as u64)? {
            0 => break,
            read => length += read,
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Writes at the beginning, in one call.
pub fn write_whole(file: &File, bytes: &[u8]) -> io::Result<()> {
    let written = file.seek_write(bytes, 0)?;
    if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// The system's start, by its time; zeros if the system does not tell.
pub fn boot() -> [u8; 16] {
    static BOOT: OnceLock<[u8; 16]> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&started().unwrap_or_default().to_le_bytes());
        id
    })
}

/// When the system started, in units of 100 ns since 1601. The kernel moves this time together with the clock when somebody
/// sets that, and keeps the sum of these moves beside it: without them it is the same until the system ends.
fn started() -> Option<i64> {
    let mut information = MaybeUninit::<SYSTEM_TIMEOFDAY_INFORMATION>::zeroed();
    let size = size_of_val(&information) as u32;
    // SAFETY: the out-parameter has the size that is given, and may have any content.
    let information = unsafe {
        let out = information.as_mut_ptr().cast();
        if NtQuerySystemInformation(SystemTimeOfDayInformation, out, size, std::ptr::null_mut()) < 0 {
            return None;
        }
        information.assume_init()
    };
    let number = |at: usize| information.Reserved1[at..at + 8].try_into().map(i64::from_le_bytes).ok();
    Some(number(BOOT_TIME)? - number(BOOT_TIME_BIAS)?)
}

/// Offsets of the fields; `windows-sys` has no names for them.
const BOOT_TIME: usize = 0;
const BOOT_TIME_BIAS: usize = 32;

/// There is one for all.
pub fn process_namespace() -> u64 {
    0
}

/// False if there is no such process, or it has ended and somebody still has a handle of it.
pub fn may_process_live(process: u32) -> bool {
    // SAFETY: takes numbers.
    let handle = unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, process) };
    if handle.is_null() {
        return !is(&io::Error::last_os_error(), ERROR_INVALID_PARAMETER);
    }
    // SAFETY: the handle is open, and nobody else's; so it is closed once.
    let process = unsafe { OwnedHandle::from_raw_handle(handle) };
    // SAFETY: the handle is open, and may be waited for; the wait takes no time.
    unsafe { WaitForSingleObject(process.as_raw_handle(), 0) != WAIT_OBJECT_0 }
}

/// When the process was started: not looked at here.
pub fn process_start(_: u32) -> u64 {
    0
}

/// As [`process_start`], of this process.
pub fn own_start() -> u64 {
    0
}

/// The system does not show who shares a lock.
pub fn sharers(_: &Metadata) -> Vec<u32> {
    Vec::new()
}

/// A call for a file that blocks a thread.
#[derive(Debug)]
pub struct BlockedThread(HANDLE);

// SAFETY: handles belong to the whole process.
unsafe impl Send for BlockedThread {}

impl BlockedThread {
    /// This thread, in a call for this file.
    pub fn here(file: &File) -> Self {
        Self(file.as_raw_handle())
    }

    /// Ends the call that blocks it, if it has begun. The file is open.
    pub fn interrupt(&self) {
        // SAFETY: the handle is open, by the contract; null stands for whatever is going on with it.
        unsafe { CancelIoEx(self.0, std::ptr::null()) };
    }
}

/// Calls that block can be ended.
pub fn can_interrupt() -> bool {
    true
}

/// Whether this is the error of a call that was ended.
pub fn is_interruption(error: &io::Error) -> bool {
    is(error, ERROR_OPERATION_ABORTED)
}

/// There are no signals.
pub fn let_interruptions_in() {}

/// Whether a thread whose JS waits for it may wait in the kernel itself: no, since a call that `CancelIoEx` has marked may still go on
/// until it is done, as Windows' reference says and Wine does; a thread of its own waits, which may stay there.
pub fn gets_interruptions() -> bool {
    false
}

/// There are no signals.
pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    start()
}

/// A handle has no number that a command could inherit it by.
pub fn descriptor(_: &File) -> Option<i32> {
    None
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::files::testing::Scratch;

    #[test]
    fn a_process_that_has_ended_is_found_to_have_even_if_somebody_has_a_handle_of_it() {
        assert!(may_process_live(std::process::id()));
        let mut child =
            Command::new("cmd").args(["/c", "pause"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        assert!(may_process_live(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        // `child` has the handle.
        assert!(!may_process_live(child.id()));
        assert!(!may_process_live(0) && !may_process_live(u32::MAX));
    }

    #[test]
    fn a_file_that_another_program_has_for_itself_is_opened_once_that_has_closed_it() {
        let scratch = Scratch::new();
        let path = scratch.path().join("file");
        std::fs::write(&path, "content").unwrap();
        let alone = OpenOptions::new().read(true).share_mode(0).open(&path).unwrap();
        let refused = open(&path, Rights).map(drop).unwrap_err();
        assert!(is(&refused, ERROR_SHARING_VIOLATION), "{refused}");
        let mut alone = Some(alone);
        let mut tries = 0;
        until_shared(|| {
            tries += 1;
            if tries == 4 {
                alone = None;
            }
            OpenOptions::new().write(true).open(&path)
        })
        .unwrap();
        assert_eq!(tries, 4);
    }

    #[test]
    fn directories_have_an_identity_of_their_own_by_whatever_path() {
        let scratch = Scratch::new();
        let (one, other) = (scratch.path().join("one"), scratch.path().join("other"));
        let identity = |path: &Path| identity(path, &path.metadata().unwrap()).unwrap();
        make_directory(&one).unwrap();
        make_directory(&other).unwrap();
        assert_ne!(identity(&one), identity(&other));
        assert_eq!(identity(&one), identity(&other.join("../one")));
    }

    #[test]
    fn the_systems_start_is_known_and_past() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let since_1601 = (now + Duration::from_secs(11_644_473_600)).as_nanos() / 100;
        let started = started().unwrap();
        assert!(0 < started && (started as u128) < since_1601, "{started}");
        assert_eq!(boot()[..8], super::started().unwrap().to_le_bytes());
    }
}
