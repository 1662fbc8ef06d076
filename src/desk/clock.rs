//! The clock of leases: it counts the time in which the machine sleeps, because the stores' clocks go on meanwhile.

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
/// This clock of macOS counts sleep.
#[cfg(target_os = "macos")]
const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// Milliseconds since some moment before this process began.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "macos"))]
pub fn now() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives, and is written only. The clock exists on every version of the system that Node.js runs on.
    unsafe { libc::clock_gettime(CLOCK, &mut time) };
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "macos")))]
pub use since_first_use as now;

/// Milliseconds since some moment before now. The standard library's clock of Windows counts sleep.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "macos")))]
pub fn since_first_use() -> f64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64() * 1e3
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_time_since_the_system_began_sleep_included() {
        let reading = || {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: `time` lives, and is written only.
            assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) }, 0);
            1_000 * time.tv_sec + time.tv_nsec / 1_000_000
        };
        let (before, time, after) = (reading(), now() as i64, reading());
        assert!((before..=after).contains(&time), "{time} is not from {before} to {after}");
    }
}
