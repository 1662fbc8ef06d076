//! Each deadlock is told once, and one of its waits gives up.

use super::*;
use crate::doctor::deadlock::PermitHolders;

#[test]
fn a_deadlock_is_told_once_and_the_wait_that_began_last_knows_that_it_did() {
    let mut state = knowing();
    state.options.likely = Some(Duration::ZERO);
    let [first, second] = [8, 16].map(|address| mutex(&mut state, None, address));
    holds(&mut state, 1, first, 0, true, 8);
    holds(&mut state, 2, second, 0, true, 16);
    let serials = [(1, first), (2, second)].map(|(thread, lock)| u64::from(1000 * thread + lock + 1));
    let waits = [(1, second, 16), (2, first, 8)].map(|(thread, lock, address)| {
        let wait = TrackedWait { is_blocking: false, ..testing::wait(thread, lock, address, sync::now()) };
        state.begin_wait(wait)
    });
    let ask = |state: &mut Knowledge, index: usize| {
        state.note_awaiting(waits[index], vec![serials[index]], &PermitHolders::default())
    };
    assert!(ask(&mut state, 0).is_none(), "nobody is known to await the other");
    for (index, facts) in [
        (1, "\"isTold\":false,\"isNewest\":true"),
        (0, "\"isTold\":true,\"isNewest\":false"),
        (1, "\"isTold\":true,\"isNewest\":true"),
    ] {
        let told = ask(&mut state, index).unwrap();
        assert!(told.contains(facts), "{told}");
        let waiters: Vec<_> = told.split("\"waiter\":{\"threadId\":").skip(1).map(|rest| &rest[..1]).collect();
        assert_eq!(waiters, if index == 0 { ["1", "2"] } else { ["2", "1"] }, "{told}");
    }
}
