//! Windows. (Checked by the compiler, and not run yet.)

use std::ffi::{OsString, c_void};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::AsRawHandle;
use std::path::{Component, Path, PathBuf, Prefix};

use super::Identity;

#[repr(C)]
struct Guid(u32, u16, u16, [u8; 8]);

/// `FOLDERID_LocalAppData`.
const LOCAL_APP_DATA: Guid = Guid(0xf1b3_2785, 0x6fba, 0x4fcf, [0x9d, 0x55, 0x7b, 0x8e, 0x7f, 0x15, 0x70, 0x91]);
const DRIVE_REMOTE: u32 = 4;
const FILE_SHARE_READ_WRITE: u32 = 1 | 2;
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
const PROCESS_QUERY_LIMITED_INFORMATION: u32 = 0x1000;
const ERROR_INVALID_PARAMETER: i32 = 87;

#[repr(C)]
#[derive(Default)]
struct FileInformation {
    attributes: u32,
    times: [u32; 6],
    volume: u32,
    size: [u32; 2],
    links: u32,
    index: [u32; 2],
}

#[link(name = "shell32")]
unsafe extern "system" {
    fn SHGetKnownFolderPath(id: *const Guid, flags: u32, token: *mut c_void, path: *mut *mut u16) -> i32;
}

#[link(name = "ole32")]
unsafe extern "system" {
    fn CoTaskMemFree(memory: *mut c_void);
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn GetDriveTypeW(root: *const u16) -> u32;
    fn GetFileInformationByHandle(file: *mut c_void, information: *mut FileInformation) -> i32;
    fn OpenProcess(access: u32, inherit: i32, process: u32) -> *mut c_void;
    fn CloseHandle(handle: *mut c_void) -> i32;
}

/// The directory for the locks of this user, the same whatever the environment says.
pub fn default_directory() -> io::Result<PathBuf> {
    let mut path = std::ptr::null_mut();
    // SAFETY: the id and the out-parameter live; no token stands for the current user.
    let status = unsafe { SHGetKnownFolderPath(&LOCAL_APP_DATA, 0, std::ptr::null_mut(), &mut path) };
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

/// Nobody else owns what is in the user's own folder.
pub fn foreign_owner(_: &Metadata) -> Option<(u32, u32)> {
    None
}

/// Rights are inherited from the user's own folder.
pub fn writable_by_others(_: &Metadata) -> Option<u32> {
    None
}

/// The identity of a directory.
pub fn identity(path: &Path, _: &Metadata) -> io::Result<Identity> {
    let directory = OpenOptions::new().read(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)?;
    let mut information = FileInformation::default();
    // SAFETY: the handle is open, and the out-parameter lives.
    if unsafe { GetFileInformationByHandle(directory.as_raw_handle(), &mut information) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let [high, low] = information.index;
    Ok(Identity(u64::from(information.volume), u64::from(high) << 32 | u64::from(low)))
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
pub fn open(path: &Path, _: u32) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).share_mode(FILE_SHARE_READ_WRITE).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    loop {
        match options.create_new(false).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return Ok((opened?, false)),
        }
        match options.create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((made?, true)),
        }
    }
}

/// Opens a file to read it.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path)
}

/// The files have the rights of their directory.
pub fn mode(_: &Metadata) -> u32 {
    0
}

/// Always: nobody can remove a file that is open here.
pub fn leads_to(_: &Path, _: &File) -> io::Result<bool> {
    Ok(true)
}

/// The file was used just now: programs that remove old files are to leave it. If that fails, it looks older than it is.
pub fn touch(file: &File) {
    let _ = file.set_modified(std::time::SystemTime::now());
}

/// What it contains, `longest` bytes at most.
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

/// The system does not tell.
pub fn boot() -> [u8; 16] {
    [0; 16]
}

/// There is one for all.
pub fn process_namespace() -> u64 {
    0
}

/// False if there is no such process.
pub fn may_process_live(process: u32) -> bool {
    // SAFETY: takes numbers; the handle, if there is one, is closed once.
    unsafe {
        let handle = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, process);
        if handle.is_null() {
            return io::Error::last_os_error().raw_os_error() != Some(ERROR_INVALID_PARAMETER);
        }
        CloseHandle(handle);
    }
    true
}

/// There are no signals.
pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    start()
}
