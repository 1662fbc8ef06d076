//! The record in `.info`: who held the lock exclusively last, and whether that ended well.
//!
//! It is written before the holder's code runs (*dirty*) and when it unlocks (clean). So one that is found dirty by whoever
//! locks next says that its holder ended inside. One of several names that are asked for together is held, but not dirty, while the
//! others are waited for. What is not a whole record of this format is as good as dirty: in doubt a
//! lock is marked. No file at all says that the lock was never held; one that is empty, that nobody could write there, or that
//! somebody has emptied it: the lock is marked, and no process is said to have ended.
//!
//! | bytes | |
//! |-------|-|
//! | 0..8  | `sablock`, and the format's version, 2 |
//! | 8     | bit 0: held; bit 1: abandoned, and not yet marked as consistent; bit 2: held, but no code runs with it yet |
//! | 9..16 | when the process was started, as the system counts that; 0 if it does not tell |
//! | 16..32 | the system's start; zeros if it does not tell, ones if the holder's thread has ended before its process |
//! | 32..40 | process, thread |
//! | 40..48 | the namespace of the process's number; 0 if the system has none |
//! | 48..56 | when it was locked, in milliseconds of Unix time |
//! | 56..64 | how many units the name has |
//! | 64..72 | the last fence that was drawn; 0 if none was. Version 1 has no such field |
//! | 72..  | the name in UTF-16, then the first 8 bytes of the SHA-256 of all before |
//!
//! All numbers are little-endian. Records of version 1 are read, and replaced by whoever writes next.

use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use super::name::LockName;
use super::system;

const MAGIC: &[u8] = b"sablock";
const VERSION: u8 = 2;
/// The offset of the flags.
const FLAGS: usize = 8;
const HELD: u8 = 1;
const ABANDONED: u8 = 2;
const OUTSIDE: u8 = 4;
/// The number of bytes behind the flags that are the start of the process.
const STARTED: usize = 7;
const HEADER: usize = 72;
/// The length of version 1, which ends before the fence.
const FIRST_HEADER: usize = 64;
const CHECKSUM: usize = 8;

/// The holder of a lock. For people: numbers of processes are used again, and are others in other namespaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedHolder {
    /// The system's start; zeros if it does not tell.
    pub boot: [u8; 16],
    /// The process.
    pub process: u32,
    /// Its thread, by the number of Node.js.
    pub thread: u32,
    /// The namespace of the process's number.
    pub namespace: u64,
    /// When the process was started, as the system counts that; 0 if it does not tell.
    pub started: u64,
    /// When it was locked, in milliseconds of Unix time.
    pub since: u64,
}

/// In the place of the system's start: whoever reads it knows that this holder does not live.
const ENDED: [u8; 16] = [0xff; 16];

impl RecordedHolder {
    /// The same, once its thread has ended, though its process lives.
    #[must_use]
    pub fn ended(self) -> Self {
        Self { boot: ENDED, ..self }
    }

    /// A thread of this process, now.
    pub fn now(thread: u32) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
        Self {
            boot: system::boot(),
            process: std::process::id(),
            thread,
            namespace: system::process_namespace(),
            started: system::own_start(),
            since,
        }
    }

    /// Whether it belongs to this process.
    pub fn is_here(&self) -> bool {
        self.process == std::process::id() && self.namespace == system::process_namespace()
    }

    /// Whether the number of its process is one of another namespace, and says nothing here.
    pub fn is_of_other_namespace(&self) -> bool {
        self.namespace != system::process_namespace() && !fault!(NamespaceDoesNotCount)
    }

    /// False if its process has ended for certain; true if that cannot be known.
    pub fn may_live(&self) -> bool {
        self.may_be_of_start(system::boot()) && (self.is_of_other_namespace() || self.has_its_number())
    }

    /// Whether it is one of the system's start `boot`, as far as either is known, and its thread has not ended.
    fn may_be_of_start(&self, boot: [u8; 16]) -> bool {
        self.boot != ENDED && (self.boot == boot || [self.boot, boot].contains(&[0; 16]))
    }

    /// Whether there is a process of its number, which was not started later.
    fn has_its_number(&self) -> bool {
        let is_another = || self.started != 0 && ![0, self.started].contains(&system::process_start(self.process));
        system::may_process_live(self.process) && !is_another()
    }
}

/// The state of a lock, in its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// It is held, or its holder ended while it was.
    pub is_held: bool,
    /// The holder's code runs with it.
    pub is_in: bool,
    /// An earlier holder ended inside, and nobody has marked the lock as consistent since.
    pub is_abandoned: bool,
}

/// The content of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileRecord {
    /// The whole name, in UTF-16.
    pub units: Vec<u16>,
    /// The state of the lock.
    pub status: Status,
    /// The last exclusive holder.
    pub holder: RecordedHolder,
    /// The last fence that was drawn; 0 if none was.
    pub last_fence: u64,
}

/// The record as bytes.
pub fn encode(name: &LockName, status: Status, holder: &RecordedHolder, last_fence: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length(name));
    bytes.extend(MAGIC);
    bytes.push(VERSION);
    let held = match status {
        Status { is_held: false, .. } => 0,
        Status { is_in: false, .. } => HELD | OUTSIDE,
        _ => HELD,
    };
    bytes.push(held | if status.is_abandoned { ABANDONED } else { 0 });
    bytes.extend(&holder.started.to_le_bytes()[..STARTED]);
    bytes.extend(holder.boot);
    bytes.extend(holder.process.to_le_bytes());
    bytes.extend(holder.thread.to_le_bytes());
    bytes.extend(holder.namespace.to_le_bytes());
    bytes.extend(holder.since.to_le_bytes());
    bytes.extend((name.units().len() as u64).to_le_bytes());
    bytes.extend(last_fence.to_le_bytes());
    bytes.extend(name.units().iter().flat_map(|unit| unit.to_le_bytes()));
    let checksum = checksum(&bytes);
    bytes.extend(checksum);
    bytes
}

/// The length of a name's record.
pub fn length(name: &LockName) -> usize {
    HEADER + 2 * name.units().len() + CHECKSUM
}

/// The length of a record's begin that is enough for [`may_be_held`].
pub const PREFIX: usize = FLAGS + 1;

/// False for what is no record of a lock that is held; most are not, and no more has to be looked at.
pub fn may_be_held(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) && bytes.get(FLAGS).is_some_and(|flags| flags & HELD != 0)
}

/// The content of a record's bytes; `None` if this is no whole record.
pub fn decode(bytes: &[u8]) -> Option<FileRecord> {
    let (content, sum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM)?)?;
    let has_fence = match content.strip_prefix(MAGIC)?.first()? {
        1 => false,
        &VERSION => true,
        _ => return None,
    };
    let (header, name) = content.split_at_checked(if has_fence { HEADER } else { FIRST_HEADER })?;
    let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let is_whole = number(56).checked_mul(2) == Some(name.len() as u64);
    let flags = header[FLAGS];
    if !is_whole || sum != checksum(content) || flags > (HELD | ABANDONED | OUTSIDE) || flags & !ABANDONED == OUTSIDE {
        return None;
    }
    let boot = header[16..32].try_into().expect("sixteen bytes");
    Some(FileRecord {
        units: name.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect(),
        status: Status {
            is_held: flags & HELD != 0,
            is_in: flags & (HELD | OUTSIDE) == HELD,
            is_abandoned: flags & ABANDONED != 0,
        },
        holder: RecordedHolder {
            boot,
            process: half(32),
            thread: half(36),
            namespace: number(40),
            // Behind the flags, which are the lowest byte there.
            started: number(FLAGS) >> 8,
            since: number(48),
        },
        last_fence: if has_fence { number(64) } else { 0 },
    })
}

/// The past of a lock, as the next that locks it learns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Past {
    /// All ended well.
    Clean,
    /// An earlier holder ended inside, and nobody has marked the lock as consistent since; its end was reported.
    Abandoned,
    /// The last holder ended inside; who that was, if the record can be read.
    Ended(Option<RecordedHolder>),
}

/// The past by the content of a name's `.info`, and the last fence that was drawn; 0 if none is known. The caller has the lock, so
/// nobody holds it exclusively any more.
pub fn past(name: &LockName, content: &[u8]) -> (Past, u64) {
    match decode(content) {
        _ if content.is_empty() => (Past::Abandoned, 0),
        Some(FileRecord { units, status, holder, last_fence }) if units == name.units() => {
            let past = match status {
                Status { is_in: true, .. } => Past::Ended(Some(holder)),
                Status { is_abandoned: true, .. } => Past::Abandoned,
                _ => Past::Clean,
            };
            (past, last_fence)
        }
        _ => (Past::Ended(None), 0),
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    Sha256::digest(bytes)[..CHECKSUM].try_into().expect("a SHA-256 is longer")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: Status = Status { is_held: false, is_in: false, is_abandoned: false };
    const HELD: Status = Status { is_held: true, is_in: true, is_abandoned: false };

    fn name(name: &str) -> LockName {
        LockName::new(&name.encode_utf16().collect::<Vec<_>>())
    }

    #[test]
    fn what_was_written_is_read() {
        let (name, holder) = (name("a job"), RecordedHolder::now(3));
        for (status, past) in [
            (CLEAN, Past::Clean),
            (Status { is_abandoned: true, ..CLEAN }, Past::Abandoned),
            (HELD, Past::Ended(Some(holder))),
            (Status { is_abandoned: true, ..HELD }, Past::Ended(Some(holder))),
            (Status { is_in: false, ..HELD }, Past::Clean),
            (Status { is_in: false, is_abandoned: true, ..HELD }, Past::Abandoned),
        ] {
            let bytes = encode(&name, status, &holder, u64::MAX - 7);
            assert_eq!(super::past(&name, &bytes), (past, u64::MAX - 7));
            assert_eq!(bytes.len(), length(&name));
            let record = FileRecord { units: name.units().to_vec(), status, holder, last_fence: u64::MAX - 7 };
            assert_eq!(decode(&bytes), Some(record));
        }
    }

    #[test]
    fn whatever_else_stands_there_counts_as_abandoned() {
        let (name, holder) = (name("a job"), RecordedHolder::now(0));
        let clean = encode(&name, CLEAN, &holder, 1);
        let foreign = (Past::Ended(None), 0);
        assert_eq!(past(&name, &clean), (Past::Clean, 1));
        assert_eq!(past(&name, b""), (Past::Abandoned, 0), "nobody has written it");
        for length in 1..clean.len() {
            assert_eq!(past(&name, &clean[..length]), foreign, "cut to {length}");
        }
        for at in 0..clean.len() {
            let mut changed = clean.clone();
            changed[at] ^= 0x40;
            assert_eq!(past(&name, &changed), foreign, "byte {at} changed");
        }
        assert_eq!(past(&name, &[clean.as_slice(), b"\n"].concat()), foreign);
        assert_eq!(past(&name, &encode(&self::name("another"), CLEAN, &holder, 1)), foreign);
    }

    /// A record of another version, otherwise whole.
    fn with_version(version: u8, mut bytes: Vec<u8>) -> Vec<u8> {
        bytes[7] = version;
        let end = bytes.len() - CHECKSUM;
        let sum = checksum(&bytes[..end]);
        bytes[end..].copy_from_slice(&sum);
        bytes
    }

    #[test]
    fn a_whole_record_that_says_what_none_can_say_counts_as_abandoned() {
        let name = name("a job");
        let with = |at: usize, byte| {
            let mut bytes = encode(&name, CLEAN, &RecordedHolder::now(0), 1);
            bytes[at] = byte;
            with_version(VERSION, bytes)
        };
        assert_eq!(past(&name, &with(FLAGS, 0)), (Past::Clean, 1));
        // The last is the number of units.
        for (at, byte) in [(FLAGS, 8), (FLAGS, OUTSIDE), (FLAGS, OUTSIDE | ABANDONED), (56, 4)] {
            assert_eq!(past(&name, &with(at, byte)), (Past::Ended(None), 0), "{byte} at {at}");
        }
        assert!(may_be_held(&encode(&name, HELD, &RecordedHolder::now(0), 1)) && !may_be_held(b"another\x02\x01"));
    }

    #[test]
    fn a_newer_format_counts_as_abandoned() {
        let name = name("a job");
        let newer = with_version(VERSION + 1, encode(&name, CLEAN, &RecordedHolder::now(0), 1));
        assert_eq!(past(&name, &newer), (Past::Ended(None), 0));
    }

    #[test]
    fn the_first_format_is_read() {
        let (name, holder) = (name("a job"), RecordedHolder::now(2));
        let status = Status { is_abandoned: true, ..HELD };
        let mut bytes = encode(&name, status, &holder, 0);
        bytes.drain(FIRST_HEADER..HEADER);
        let first = with_version(1, bytes);
        assert_eq!(first.len(), length(&name) - 8);
        assert_eq!(past(&name, &first), (Past::Ended(Some(holder)), 0));
        assert_eq!(past(&name, &with_version(VERSION, first)), (Past::Ended(None), 0), "it says that it has a fence");
    }

    #[test]
    fn this_process_lives_here() {
        let holder = RecordedHolder::now(0);
        assert!(holder.is_here() && holder.may_live());
        assert!(!RecordedHolder { boot: [7; 16], ..holder }.may_live());
        assert!(holder.ended().is_here() && !holder.ended().may_live(), "its process does");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_was_started_at_another_time_is_another() {
        let holder = RecordedHolder::now(0);
        assert!(holder.started != 0 && holder.namespace != 0);
        assert!(!RecordedHolder { started: holder.started + 1, ..holder }.may_live());
        assert!(RecordedHolder { started: 0, ..holder }.may_live(), "a record of an earlier copy does not tell");
    }

    #[test]
    fn a_process_of_another_namespace_may_live() {
        let holder = RecordedHolder { process: u32::MAX, ..RecordedHolder::now(0) };
        assert!(!holder.may_live() && !RecordedHolder { process: u32::MAX, ..holder }.is_here());
        let elsewhere = RecordedHolder { namespace: holder.namespace + 1, ..holder };
        assert!(elsewhere.may_live(), "its number says nothing here");
        assert!(!RecordedHolder { process: std::process::id(), ..elsewhere }.is_here());
    }

    #[test]
    fn a_start_of_the_system_that_is_not_told_says_nothing_of_a_process() {
        let holder = RecordedHolder::now(0);
        assert!(RecordedHolder { boot: [0; 16], ..holder }.may_live());
        assert!(!RecordedHolder { boot: [0; 16], process: u32::MAX, ..holder }.may_live());
        let unknown = [0; 16];
        assert!(holder.may_be_of_start(unknown) && !holder.ended().may_be_of_start(unknown), "its thread has ended");
    }
}
