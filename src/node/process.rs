//! The engine and the names of the process, and time limits from JS.

use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use crate::clients::Names;
use crate::engine::clock::Clock;
use crate::engine::{Engine, Limit, Patience};

/// The engine of the process.
pub fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new(256, first_agent_id(), patience(), Box::new(Clock::new(engine))))
}

/// The names of the process.
pub fn names() -> &'static Names<'static> {
    static NAMES: LazyLock<Names<'static>> = LazyLock::new(|| Names::new(engine()));
    &NAMES
}

#[cfg(not(feature = "ablation"))]
fn patience() -> Patience {
    Patience::default()
}

/// For the bench: `SABLOCK_ABLATION` takes a part of the design away (see [`Patience::ablated`]).
#[cfg(feature = "ablation")]
fn patience() -> Patience {
    std::env::var("SABLOCK_ABLATION").ok().and_then(|name| Patience::ablated(&name)).unwrap_or_default()
}

/// A random start above 2^16 leaves three quarters of the 2^26 ids at least, and tells a word of another process, or of another library, apart.
fn first_agent_id() -> u32 {
    use std::hash::{BuildHasher, Hasher};
    let random = std::hash::RandomState::new().build_hasher().finish();
    (1 << 16) + 1 + (random % (1 << 24)) as u32
}

/// Milliseconds from JS: `Infinity` for ever, zero or less one try.
pub fn limit(timeout: f64) -> Limit {
    if timeout <= 0.0 {
        return Limit::Once;
    }
    Duration::try_from_secs_f64(timeout / 1e3).map_or(Limit::Endless, Limit::after)
}

/// As [`limit`], of a wait that a signal may abort.
pub fn limit_with(timeout: f64, has_signal: bool) -> Limit {
    match limit(timeout) {
        Limit::Endless if has_signal => Limit::Revocable,
        limit => limit,
    }
}
