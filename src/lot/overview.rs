//! All queues of the process at a glance, for people in trouble.

use std::time::Instant;

use super::{Bucket, Lot, WaiterView, WordView};
use crate::agent::{AgentId, Standing};
use crate::shared_word::SharedWord;
use crate::sync::Ordering;
use crate::word::Word;

/// What is copied of a waiter under the lock.
struct Copied {
    agent: AgentId,
    is_blocking: bool,
    since: Instant,
}

impl Lot {
    /// Every word that somebody waits for, in no order; changes nothing. Each bucket's lock is held while its queues are
    /// copied, and not longer: a snapshot of each word, and not one of all.
    pub fn inspect_all(&self) -> Vec<(SharedWord, WordView)> {
        self.buckets.iter().flat_map(copy).map(|(word, value, waiters)| (word, self.view(value, waiters))).collect()
    }

    fn view(&self, word: Word, waiters: Vec<Copied>) -> WordView {
        let now = crate::sync::now();
        let view = |waiter: Copied| WaiterView {
            thread: self.agents.thread(waiter.agent).unwrap_or_default(),
            is_blocking: waiter.is_blocking,
            waited: now.saturating_duration_since(waiter.since),
        };
        let owner = word.owner();
        WordView {
            word,
            owner: self.agents.thread(owner),
            owner_is_dead: owner != 0 && self.agents.standing(owner) == Standing::Dead,
            waiters: waiters.into_iter().map(view).collect(),
        }
    }
}

/// The queues of a bucket.
fn copy(bucket: &Bucket) -> Vec<(SharedWord, Word, Vec<Copied>)> {
    let contents = bucket.contents.lock();
    let copied = contents.queues.values().map(|queue| {
        // Acquire: as in `Lot::inspect`. The memory lives, since whoever is queued keeps its buffer.
        let value = Word(queue.word.atomic().load(Ordering::Acquire));
        let waiters = queue.waiters(&contents.nodes);
        let copy = |node: &super::queue::Node| Copied {
            agent: node.agent,
            is_blocking: node.is_blocking(),
            since: node.since,
        };
        (queue.word, value, waiters.into_iter().map(copy).collect())
    });
    copied.collect()
}
