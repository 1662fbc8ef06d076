//! Everything about files, processes and threads that differs between operating systems.

mod identity;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub use identity::Identity;
#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;
