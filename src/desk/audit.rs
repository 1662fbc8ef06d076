//! The audit of requests to stores (see `engine/audit.rs`): remains of those that are over. They may be there for a moment.

use std::sync::Arc;

use super::{Desk, Inquiry};

impl Desk {
    /// A line for each request that is over, or whose thread has ended, and that is there still.
    pub fn left(&self, has_ended: impl Fn(u32) -> bool) -> Vec<String> {
        let contents = self.lock();
        let is_left = |inquiry: &&Arc<Inquiry>| inquiry.is_over() || has_ended(inquiry.question.thread);
        let describe = |inquiry: &Arc<Inquiry>| {
            let (number, thread) = (inquiry.number, inquiry.question.thread);
            format!("request {number} of thread {thread} at its desk, which is over or of a thread that has ended")
        };
        contents.inquiries.values().filter(is_left).map(describe).collect()
    }
}
