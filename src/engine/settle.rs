//! The end of a wait by an outsider: whoever keeps a lock outside of the process has granted it, or will not.

use super::primitive::Primitive;
use super::queue::Settlement;
use super::table::Engine;
use super::wakes::Wakes;
use crate::memory::Place;

impl Engine {
    /// Settles the only waiter at `place` with a grant or, not `is_granted`, a refusal. `keep` is called under the lock under which
    /// it is settled, for what its thread collects with it. False: nobody waits there any more, and nothing is kept.
    pub(crate) fn settle(
        &self,
        primitive: &'static dyn Primitive,
        place: Place,
        is_granted: bool,
        keep: impl FnOnce(),
    ) -> bool {
        let address = place.address();
        let mut wakes = Wakes::default();
        let mut contents = self.contents(primitive.space(), address);
        let Some(id) = contents.queue(address).and_then(|(queue, waiters)| queue.first(waiters)) else {
            return false;
        };
        let settlement = if is_granted {
            Settlement::Granted { abandoned_by: None, found: 0 }
        } else {
            Settlement::Refused { found: 0 }
        };
        keep();
        contents.settle(address, id, settlement, &mut wakes);
        contents.forget_if_empty(address);
        drop(contents);
        wakes.carry_out(&*self.timers);
        true
    }
}
