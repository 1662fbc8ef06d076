//! Processes and threads of Linux and macOS.

use std::fs::{File, Metadata};
use std::io;
#[cfg(not(target_vendor = "apple"))]
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

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
    (found || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)) && !is_ghost(process)
}

/// The part of the system's list of locks that is read: an event loop waits for it.
#[cfg(not(target_vendor = "apple"))]
const LONGEST_LIST: u64 = 64 << 10;

/// The processes that share a lock of this file, as far as the system shows them: it gives its list page by page, and one may be
/// missing while others lock.
#[cfg(not(target_vendor = "apple"))]
pub fn sharers(file: &Metadata) -> Vec<u32> {
    let mut list = Vec::new();
    let read = File::open("/proc/locks").and_then(|locks| locks.take(LONGEST_LIST).read_to_end(&mut list));
    let place = format!("{:02x}:{:02x}:{}", libc::major(file.dev()), libc::minor(file.dev()), file.ino());
    match read {
        Ok(_) => sharers_in(&String::from_utf8_lossy(&list), &place),
        Err(_) => Vec::new(),
    }
}

#[cfg(not(target_vendor = "apple"))]
fn sharers_in(list: &str, place: &str) -> Vec<u32> {
    // `1: FLOCK  ADVISORY  READ 1234 08:01:5678 0 EOF`; with an arrow before `FLOCK`, one that waits.
    let sharer = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, "READ", process, at, _, ..] if at == place => process.parse().ok(),
            _ => None,
        }
    };
    list.lines().filter_map(sharer).filter(|process| *process != 0).collect()
}

/// The system has no such list.
#[cfg(target_vendor = "apple")]
pub fn sharers(_: &Metadata) -> Vec<u32> {
    Vec::new()
}

/// Whether the process has ended, and its parent has not looked yet.
#[cfg(not(target_vendor = "apple"))]
fn is_ghost(process: libc::pid_t) -> bool {
    stat(format!("/proc/{process}/stat"), STATE).is_some_and(|state| matches!(state.as_str(), "Z" | "X"))
}

/// Fields behind the name of a process: its state, and when it was started, in ticks since the system's start.
#[cfg(not(target_vendor = "apple"))]
const STATE: usize = 0;
#[cfg(not(target_vendor = "apple"))]
const STARTED: usize = 19;

#[cfg(not(target_vendor = "apple"))]
fn stat(path: String, field: usize) -> Option<String> {
    // `1234 (name) Z ...`: the name may contain anything.
    let stat = std::fs::read(path).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = String::from_utf8_lossy(&stat[end + 1..]);
    fields.split_ascii_whitespace().nth(field).map(str::to_owned)
}

/// When the process was started, as the system counts that; 0 if it does not tell.
#[cfg(not(target_vendor = "apple"))]
pub fn process_start(process: u32) -> u64 {
    // Its first thread's: QEMU tells each thread of a process another start of the process itself.
    let ticks = stat(format!("/proc/{process}/task/{process}/stat"), STARTED);
    ticks.and_then(|ticks| ticks.parse().ok()).unwrap_or_default()
}

#[cfg(target_vendor = "apple")]
pub fn process_start(_: u32) -> u64 {
    0
}

/// As [`process_start`], of this process.
pub fn own_start() -> u64 {
    static START: OnceLock<u64> = OnceLock::new();
    *START.get_or_init(|| process_start(std::process::id()))
}

#[cfg(target_vendor = "apple")]
fn is_ghost(_: libc::pid_t) -> bool {
    false
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

/// That ends a call which blocks: it means nothing to most programs, and is ignored where nobody handles it.
const INTERRUPTION: libc::c_int = libc::SIGURG;

/// A thread that is blocked in the kernel.
#[derive(Debug)]
pub struct BlockedThread(libc::pthread_t);

// SAFETY: it names a thread, which any thread may signal.
unsafe impl Send for BlockedThread {}

impl BlockedThread {
    /// This thread, in a call for this file.
    pub fn here(_: &File) -> Self {
        // SAFETY: takes nothing and cannot fail.
        Self(unsafe { libc::pthread_self() })
    }

    /// Ends the call that blocks it, if it has begun. The thread lives.
    pub fn interrupt(&self) {
        // SAFETY: the thread lives, by the contract; the signal has a handler, or is ignored.
        unsafe { libc::pthread_kill(self.0, INTERRUPTION) };
    }
}

/// Whether calls that block can be ended: not in a program that uses the signal itself.
pub fn can_interrupt() -> bool {
    extern "C" fn on_signal(_: libc::c_int) {}
    let ours = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
    let mut found = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: nothing is changed, and the out-parameter lives.
    if unsafe { libc::sigaction(INTERRUPTION, std::ptr::null(), found.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: `sigaction` has returned 0, so it has filled it in.
    let found = unsafe { found.assume_init_ref() }.sa_sigaction;
    if found == ours {
        return true;
    }
    if found != libc::SIG_DFL && found != libc::SIG_IGN {
        return false;
    }
    // SAFETY: all zeros are a `sigaction`: an empty mask, and no flags, without which calls are not begun again.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = ours;
    action.sa_flags = libc::SA_ONSTACK;
    // SAFETY: the handler does nothing, which is allowed at any time.
    unsafe { libc::sigaction(INTERRUPTION, &action, std::ptr::null_mut()) == 0 }
}

/// Whether this is the error of a call that was ended.
pub fn is_interruption(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}

/// Lets the signal through to this thread, which gets no others.
pub fn let_interruptions_in() {
    mask(libc::SIG_UNBLOCK, &[INTERRUPTION]);
}

/// Whether the signal comes through to this thread.
pub fn gets_interruptions() -> bool {
    // SAFETY: `mask` has filled it in.
    mask(libc::SIG_UNBLOCK, &[]).is_some_and(|set| unsafe { libc::sigismember(&set, INTERRUPTION) } == 0)
}

/// Changes which signals this thread does not get; returns those before.
fn mask(how: libc::c_int, signals: &[libc::c_int]) -> Option<libc::sigset_t> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the out-parameters live; `sigemptyset` fills in the set that is changed and read.
    let status = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        libc::pthread_sigmask(how, set.as_ptr(), before.as_mut_ptr())
    };
    // SAFETY: `pthread_sigmask` has returned 0, so it has filled it in.
    (status == 0).then(|| unsafe { before.assume_init() })
}

#[cfg(all(test, not(target_vendor = "apple")))]
mod tests {
    use super::*;

    #[test]
    fn the_systems_start_is_a_uuid() {
        assert_eq!(parse_uuid("00000000-0000-0000-0000-0000000000ff\n").unwrap()[15], 0xff);
        assert_eq!(parse_uuid("too short"), None);
    }

    #[test]
    fn those_who_share_a_lock_are_told_from_others_in_the_list() {
        let list = "1: FLOCK  ADVISORY  READ 12 08:01:5678 0 EOF\n\
            1: -> FLOCK  ADVISORY  READ 13 08:01:5678 0 EOF\n\
            2: FLOCK  ADVISORY  WRITE 14 08:01:5678 0 EOF\n\
            3: POSIX  ADVISORY  READ 15 08:01:5678 0 EOF\n\
            4: FLOCK  ADVISORY  READ 16 08:01:56781 0 EOF\n\
            5: FLOCK  ADVISORY  READ 0 08:01:5678 0 EOF\n\
            6: FLOCK  ADVISORY  READ 17 08:01:5678 0 EOF\n\
            7: FLOCK  ADVISORY  READ 18 08:01:5678";
        assert_eq!(sharers_in(list, "08:01:5678"), [12, 17], "the last line is cut off");
    }

    #[test]
    fn the_name_of_a_process_may_contain_anything() {
        let scratch = crate::files::testing::Scratch::new();
        let path = scratch.path().join("stat");
        std::fs::write(&path, b"12 (a) X (b \n) S 1 12 \xff").unwrap();
        let field = |index| stat(path.to_str().unwrap().to_owned(), index);
        assert_eq!([field(STATE).as_deref(), field(2).as_deref(), field(5).as_deref()], [Some("S"), Some("12"), None]);
    }

    #[test]
    fn processes_are_found() {
        assert!(may_process_live(std::process::id()));
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        assert!(may_process_live(child.id()));
        child.kill().unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while may_process_live(child.id()) {
            assert!(std::time::Instant::now() < end, "it has ended, though nobody has waited for it");
        }
        child.wait().unwrap();
        assert!(!may_process_live(child.id()));
        assert!(!may_process_live(0) && !may_process_live(u32::MAX));
    }
}
