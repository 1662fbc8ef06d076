//! The audit of requests to stores (see `engine/audit.rs`): remains of those that are over. They may be there for a moment.

use super::Desk;

impl Desk {
    /// A line for each request that is over, or whose thread has ended, and that is there still.
    pub fn left(&self, has_ended: impl Fn(u32) -> bool) -> Vec<String> {
        let contents = self.lock();
        let of_inquiry = |(number, inquiry): (&u32, &std::sync::Arc<super::Inquiry>)| {
            let thread = inquiry.question.thread;
            let is_left = inquiry.is_over() || has_ended(thread);
            is_left.then(|| {
                format!("request {number} of thread {thread} at its desk, which is over or of a thread that has ended")
            })
        };
        contents.inquiries.iter().filter_map(of_inquiry).collect()
    }
}
