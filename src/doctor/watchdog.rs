//! The thread that looks for what is stuck, and prints the report when a signal comes, while the JS threads may all be blocked.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use super::signals;
use super::state::Doctor;
use super::stuck::{look, permit_holders};
use super::waits::Outside;
use crate::clients::Names;
use crate::engine::Primitive;

/// The time between two looks, at least and at most.
const LEAST: Duration = Duration::from_millis(5);
const MOST: Duration = Duration::from_millis(50);

/// Starts it, for as long as the doctor that has just been started is on. Without it everything else is as ever, but the report has to
/// be asked for.
///
/// `holder_of` finds the holder of a name of the machine, given its space, in another process.
pub fn watch(
    doctor: &'static Doctor,
    names: &'static Names<'static>,
    locks: &'static [&'static dyn Primitive],
    holder_of: fn(u32, &str) -> Option<Outside>,
) -> io::Result<()> {
    let (generation, options) = doctor.with(|state| (state.generation, state.options));
    let shortest =
        options.stuck.unwrap_or(Duration::MAX).min(options.likely.unwrap_or(Duration::MAX)).min(options.long_hold);
    let step = (shortest / 8).clamp(LEAST, MOST);
    // All names are looked at together: less often.
    let every = options.stuck.map_or(u32::MAX, |stuck| (stuck.as_nanos() / 4 / step.as_nanos()).clamp(1, 50) as u32);
    let mut turn = 0;
    let run = move || {
        loop {
            thread::sleep(step);
            turn += 1;
            // Outside of the doctor's lock, which threads take while they hold none of the engine's, and no file is read under.
            let named = (turn % every == 0).then(|| {
                let asked = doctor.with(|state| state.locks_to_ask_for());
                let told = asked.into_iter().map(|(lock, space, name)| (lock, holder_of(space, &name)));
                (names.queued(), told.collect())
            });
            let seen = look(names.engine(), locks);
            let permits = permit_holders(&seen);
            let came = doctor.with(|state| {
                if state.generation != generation {
                    return None;
                }
                state.arm();
                state.tick();
                let mut is_news = state.watch(seen);
                if let Some((queued, told)) = named {
                    is_news |= state.watch_names(queued);
                    is_news |= state.watch_outside(told);
                }
                is_news |= state.find_old_deadlocks(&permits);
                let came = signals::take();
                let text = match came.last() {
                    Some(signal) => state.text_on(*signal),
                    None if is_news && !std::mem::replace(&mut state.has_spoken, true) => Some(state.news()),
                    None => None,
                };
                if let Some(text) = text {
                    // The end of the process waits for this lock. There is nobody to tell that it could not be written.
                    let _ = std::io::stderr().write_all(text.as_bytes());
                }
                Some(came)
            });
            let Some(came) = came else { return };
            came.into_iter().for_each(signals::go_on);
        }
    };
    thread::Builder::new().name("sablock-doctor".into()).spawn(run).map(drop)
}
