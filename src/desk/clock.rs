//! The clock of leases: it counts the time in which the machine sleeps, because the stores' clocks go on meanwhile.

/// Milliseconds since some moment before this process began.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn now() -> f64 {
    read(libc::CLOCK_BOOTTIME)
}

/// Milliseconds since some moment before this process began. This clock of macOS counts sleep.
#[cfg(target_os = "macos")]
pub fn now() -> f64 {
    read(libc::CLOCK_MONOTONIC)
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "macos"))]
fn read(clock: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives, and is written only. The clock exists on every version of the system that Node.js runs on.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// Milliseconds since some moment before now. The standard library's clock of Windows counts sleep.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "macos")))]
pub fn now() -> f64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64() * 1e3
}
