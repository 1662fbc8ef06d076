//! The mutant that is on: `SABLOCK_MUTANT` is its number. While none is, `SABLOCK_REACHED` names a file for those that are asked for.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::{env, fs::File};

static ON: LazyLock<u32> = LazyLock::new(|| env::var("SABLOCK_MUTANT").map_or(0, |on| on.parse().expect("a number")));
static REACHED: LazyLock<Option<File>> = LazyLock::new(|| {
    let file = env::var_os("SABLOCK_REACHED")?;
    Some(OpenOptions::new().append(true).create(true).open(file).expect("a file that can be written"))
});
static SEEN: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];

/// Whether this mutant is on.
pub fn is(number: u32) -> bool {
    if let Some(mut file) = REACHED.as_ref()
        && !SEEN[number as usize].swap(true, Relaxed)
    {
        let _ = file.write_all(format!("{number}\n").as_bytes());
    }
    *ON == number
}
