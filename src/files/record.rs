//! What `.info` says: who held the lock exclusively last, and whether that ended well.
//!
//! It is written before the holder's code runs (*dirty*) and when it unlocks (clean). So one that is found dirty by whoever
//! locks next says that its holder ended inside. What is not a whole record of this format is as good as dirty: in doubt a
//! lock is marked. No file at all says that the lock was never held.
//!
//! | bytes | |
//! |-------|-|
//! | 0..8  | `sablock`, and the format's version, 1 |
//! | 8     | bit 0: held; bit 1: abandoned, and not yet marked as consistent |
//! | 16..32 | the system's start, at random; zeros if it does not tell |
//! | 32..40 | process, thread |
//! | 40..48 | the namespace of the process's number; 0 if the system has none |
//! | 48..56 | when it was locked, in milliseconds of Unix time |
//! | 56..64 | how many units the name has |
//! | 64..  | the name in UTF-16, then the first 8 bytes of the SHA-256 of all before |
//!
//! All numbers are little-endian.

use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use super::name::LockName;
use super::system;

const MAGIC: [u8; 8] = *b"sablock\x01";
const HELD: u8 = 1;
const ABANDONED: u8 = 2;
const HEADER: usize = 64;
const CHECKSUM: usize = 8;

/// Who holds a lock. For people: numbers of processes are used again, and are others in other namespaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder {
    /// The system's start.
    pub boot: [u8; 16],
    /// The process.
    pub process: u32,
    /// Its thread, by the number of Node.js.
    pub thread: u32,
    /// The namespace of the process's number.
    pub namespace: u64,
    /// When it was locked, in milliseconds of Unix time.
    pub since: u64,
}

impl Holder {
    /// A thread of this process, now.
    pub fn now(thread: u32) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
        Self {
            boot: system::boot(),
            process: std::process::id(),
            thread,
            namespace: system::process_namespace(),
            since,
        }
    }

    /// Whether it belongs to this process.
    pub fn is_here(&self) -> bool {
        self.process == std::process::id() && self.namespace == system::process_namespace()
    }

    /// False if its process has ended for certain; true if that cannot be known.
    pub fn may_live(&self) -> bool {
        self.boot == system::boot()
            && (self.namespace != system::process_namespace() || system::may_process_live(self.process))
    }
}

/// What a record says of its lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// It is held, or its holder ended inside.
    pub is_held: bool,
    /// An earlier holder ended inside, and nobody has marked the lock as consistent since.
    pub is_abandoned: bool,
}

/// The record as bytes.
pub fn encode(name: &LockName, status: Status, holder: &Holder) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length(name));
    bytes.extend(MAGIC);
    let held = if status.is_held { HELD } else { 0 };
    bytes.extend([held | if status.is_abandoned { ABANDONED } else { 0 }, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(holder.boot);
    bytes.extend(holder.process.to_le_bytes());
    bytes.extend(holder.thread.to_le_bytes());
    bytes.extend(holder.namespace.to_le_bytes());
    bytes.extend(holder.since.to_le_bytes());
    bytes.extend((name.units().len() as u64).to_le_bytes());
    bytes.extend(name.units().iter().flat_map(|unit| unit.to_le_bytes()));
    let checksum = checksum(&bytes);
    bytes.extend(checksum);
    bytes
}

/// How long the record of a name is.
pub fn length(name: &LockName) -> usize {
    HEADER + 2 * name.units().len() + CHECKSUM
}

/// What a record says, with its name; `None` if this is no whole record.
pub fn decode(bytes: &[u8]) -> Option<(Vec<u16>, Status, Holder)> {
    let (content, sum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM)?)?;
    let (header, name) = content.split_at_checked(HEADER)?;
    let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let is_whole = header.starts_with(&MAGIC) && number(56).checked_mul(2) == Some(name.len() as u64);
    if !is_whole || sum != checksum(content) || header[8] & !(HELD | ABANDONED) != 0 {
        return None;
    }
    let status = Status { is_held: header[8] & HELD != 0, is_abandoned: header[8] & ABANDONED != 0 };
    let boot = header[16..32].try_into().expect("sixteen bytes");
    let holder = Holder { boot, process: half(32), thread: half(36), namespace: number(40), since: number(48) };
    let units = name.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
    Some((units, status, holder))
}

/// What whoever locks next learns of those before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Past {
    /// All ended well.
    Clean,
    /// An earlier holder ended inside, and nobody has marked the lock as consistent since; its end was reported.
    Abandoned,
    /// The last holder ended inside; who that was, if the record can be read.
    Ended(Option<Holder>),
}

/// What the content of a name's `.info` says. The caller has the lock, so nobody holds it exclusively any more.
pub fn past(name: &LockName, content: &[u8]) -> Past {
    match decode(content) {
        Some((units, status, holder)) if units == name.units() => match status {
            Status { is_held: true, .. } => Past::Ended(Some(holder)),
            Status { is_abandoned: true, .. } => Past::Abandoned,
            _ => Past::Clean,
        },
        _ => Past::Ended(None),
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    Sha256::digest(bytes)[..CHECKSUM].try_into().expect("a SHA-256 is longer")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: Status = Status { is_held: false, is_abandoned: false };

    fn name(name: &str) -> LockName {
        LockName::new(&name.encode_utf16().collect::<Vec<_>>())
    }

    #[test]
    fn what_was_written_is_read() {
        let (name, holder) = (name("a job"), Holder::now(3));
        for (status, past) in [
            (CLEAN, Past::Clean),
            (Status { is_abandoned: true, ..CLEAN }, Past::Abandoned),
            (Status { is_held: true, ..CLEAN }, Past::Ended(Some(holder))),
            (Status { is_held: true, is_abandoned: true }, Past::Ended(Some(holder))),
        ] {
            assert_eq!(super::past(&name, &encode(&name, status, &holder)), past);
            let bytes = encode(&name, status, &holder);
            assert_eq!(bytes.len(), length(&name));
            assert_eq!(decode(&bytes), Some((name.units().to_vec(), status, holder)));
        }
    }

    #[test]
    fn whatever_else_stands_there_counts_as_abandoned() {
        let (name, holder) = (name("a job"), Holder::now(0));
        let clean = encode(&name, CLEAN, &holder);
        assert_eq!(past(&name, &clean), Past::Clean);
        for length in 0..clean.len() {
            assert_eq!(past(&name, &clean[..length]), Past::Ended(None), "cut to {length}");
        }
        for at in 0..clean.len() {
            let mut changed = clean.clone();
            changed[at] ^= 0x40;
            assert_eq!(past(&name, &changed), Past::Ended(None), "byte {at} changed");
        }
        assert_eq!(past(&name, &[clean.as_slice(), b"\n"].concat()), Past::Ended(None));
        assert_eq!(past(&name, &encode(&self::name("another"), CLEAN, &holder)), Past::Ended(None));
    }

    #[test]
    fn a_newer_format_counts_as_abandoned() {
        let name = name("a job");
        let mut newer = encode(&name, CLEAN, &Holder::now(0));
        newer[7] = 2;
        let end = newer.len() - CHECKSUM;
        let sum = checksum(&newer[..end]);
        newer[end..].copy_from_slice(&sum);
        assert_eq!(past(&name, &newer), Past::Ended(None));
    }

    #[test]
    fn this_process_lives_here() {
        let holder = Holder::now(0);
        assert!(holder.is_here() && holder.may_live());
        assert!(!Holder { boot: [7; 16], ..holder }.may_live());
    }
}
