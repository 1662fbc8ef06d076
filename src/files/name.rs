//! From the name of a lock to the names of its files.
//!
//! Lower-case letters, digits, `-` and `_` stand for themselves; each other byte is `%` and two hexadecimal digits. So no
//! name leaves the directory, two names never share a file, on file systems that ignore case or normalize Unicode either,
//! and no name is a device of Windows. A name that gets too long that way is written as its SHA-256.

use sha2::{Digest, Sha256};

/// The version of the files' names and content. Processes with different ones would not exclude each other: it never changes
/// without need.
const PREFIX: &str = "v1-";
/// Before the hash of a long name; no other name's file begins so.
const LONG_PREFIX: &str = "v1h-";
/// The bytes that a name may take in a file's name; some encrypting file systems allow 143 bytes in all.
const LONGEST: usize = 120;

/// The name of a lock: UTF-16, lone surrogates included.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LockName {
    units: Box<[u16]>,
    stem: Box<str>,
}

/// Which of the files of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileRole {
    /// That the holders lock.
    Lock,
    /// That says who held it last.
    Info,
    /// That whoever is next locks.
    Turn,
    /// That those lock together who wait to hold the name alone.
    Gate,
}

impl LockName {
    /// From UTF-16.
    pub fn new(units: &[u16]) -> Self {
        let bytes = to_bytes(units);
        let escaped = escape(&bytes);
        let stem = if escaped.len() <= LONGEST {
            format!("{PREFIX}{escaped}")
        } else {
            let digits = Sha256::digest(&bytes);
            digits.iter().fold(LONG_PREFIX.to_owned(), |stem, byte| stem + &format!("{byte:02x}"))
        };
        Self { units: units.into(), stem: stem.into() }
    }

    /// The name.
    pub fn units(&self) -> &[u16] {
        &self.units
    }

    /// The name of one of its files.
    pub fn file(&self, role: FileRole) -> String {
        format!("{}.{}", self.stem, role.extension())
    }
}

impl FileRole {
    /// The end of its files' names.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Info => "info",
            Self::Turn => "turn",
            Self::Gate => "gate",
        }
    }
}

/// UTF-8, in which a lone surrogate has three bytes like any other unit (WTF-8): different names, different bytes.
fn to_bytes(units: &[u16]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(units.len());
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(character) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => {
                let unit = lone.unpaired_surrogate();
                bytes.extend([0xe0 | (unit >> 12) as u8, 0x80 | (unit >> 6 & 0x3f) as u8, 0x80 | (unit & 0x3f) as u8]);
            }
        }
    }
    bytes
}

fn escape(bytes: &[u8]) -> String {
    let mut escaped = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_') {
            escaped.push(char::from(byte));
        } else {
            escaped += &format!("%{byte:02x}");
        }
        if escaped.len() > LONGEST {
            break;
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn file(name: &str) -> String {
        LockName::new(&name.encode_utf16().collect::<Vec<_>>()).file(FileRole::Lock)
    }

    #[test]
    fn plain_names_can_be_read_in_the_directory() {
        assert_eq!(file("nightly-report_2"), "v1-nightly-report_2.lock");
        assert_eq!(file(""), "v1-.lock");
    }

    #[test]
    fn no_name_leads_out_of_the_directory_or_to_a_device() {
        assert_eq!(file("../../etc/passwd"), "v1-%2e%2e%2f%2e%2e%2fetc%2fpasswd.lock");
        for name in ["..", ".", "/", "\\", "a/b", "C:\\x", "con", "nul", "a\0b", "*?\"<>|", "trailing. "] {
            let file = file(name);
            assert!(file.starts_with("v1-") && file.ends_with(".lock"), "{file}");
            assert!(
                !file["v1-".len()..].trim_end_matches(".lock").contains(['/', '\\', '.', ':', '\0', ' ']),
                "{file}"
            );
        }
    }

    #[test]
    fn names_that_differ_in_case_or_normal_form_only_have_files_of_their_own() {
        let names = ["a", "A", "é", "e\u{301}", "ß", "SS", "ſ", "%41", "%61", "İ", "i"];
        let files: HashSet<_> = names.iter().map(|name| file(name).to_lowercase()).collect();
        assert_eq!(files.len(), names.len());
    }

    #[test]
    fn each_unit_has_a_file_of_its_own() {
        let files: HashSet<_> = (0..=u16::MAX).map(|unit| LockName::new(&[unit]).file(FileRole::Lock)).collect();
        assert_eq!(files.len(), 1 << 16);
    }

    #[test]
    fn lone_surrogates_are_told_apart() {
        let names: [&[u16]; 6] =
            [&[0xd83d], &[0xde00], &[0xd83d, 0xde00], &[0xde00, 0xd83d], &[0xfffd], &[0xd83d, 0xd83d, 0xde00]];
        let files: HashSet<_> = names.iter().map(|units| LockName::new(units).file(FileRole::Lock)).collect();
        assert_eq!(files.len(), names.len());
    }

    #[test]
    fn long_names_are_hashed_and_differ() {
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(file(&long[1..]), format!("v1-{}.lock", &long[1..]));
        assert_eq!(file(&long).len(), "v1h-.lock".len() + 64);
        assert_ne!(file(&long), file(&(long.clone() + "x")));
        // A name that spells another's hash is not that one's file.
        let spelled = file(&long).trim_start_matches("v1").trim_end_matches(".lock").to_owned();
        assert_ne!(file(&spelled), file(&long));
    }
}
