//! Helpers of the tests of this module.
#![cfg_attr(not(target_os = "linux"), allow(unused, reason = "some of these tests are for Linux only"))]

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, process, thread};

/// A directory of one test, removed at its end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // One of a process with the same number may have stayed.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let path = env::temp_dir().join(format!("sablock-test-{}-{number}-{now}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Waits until so many threads wait in the kernel for files of this directory.
    #[cfg(target_os = "linux")]
    pub fn until_blocked_waiters(&self, count: usize) {
        use std::os::unix::fs::MetadataExt;
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let inodes: Vec<String> = fs::read_dir(&self.0)
                .unwrap()
                .map(|entry| format!(":{} ", entry.unwrap().metadata().unwrap().ino()))
                .collect();
            let locks = fs::read_to_string("/proc/locks").unwrap();
            let is_ours = |line: &&str| line.contains("->") && inodes.iter().any(|inode| line.contains(inode));
            let blocked = locks.lines().filter(is_ours).count();
            if blocked == count {
                return;
            }
            assert!(Instant::now() < until, "{blocked} threads wait in the kernel instead of {count}");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Scratch {
    /// A waiter's thread that ends at this moment may make its file once more.
    fn drop(&mut self) {
        let until = Instant::now() + Duration::from_secs(10);
        while let Err(error) = fs::remove_dir_all(&self.0) {
            let is_again = error.kind() == ErrorKind::DirectoryNotEmpty && Instant::now() < until;
            assert!(is_again, "{error}");
            thread::sleep(Duration::from_millis(1));
        }
    }
}
