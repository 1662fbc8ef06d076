//! Everything about files, processes and threads that differs between operating systems.

mod identity;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
mod unix_processes;
#[cfg(windows)]
mod windows;

pub use identity::Identity;
#[cfg(unix)]
pub use unix::*;
#[cfg(unix)]
pub use unix_processes::*;
#[cfg(windows)]
pub use windows::*;
