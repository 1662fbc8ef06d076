//! What is left of requests to stores, for the audit; see `engine/audit.rs`. It may be there for a moment.

use super::Desk;

impl Desk {
    /// What is left of requests that are over, or whose thread has ended, a line for each.
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
