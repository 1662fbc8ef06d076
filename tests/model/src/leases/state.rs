//! The server's queue, the clients, and the messages between them.

use arrayvec::ArrayVec;

/// A client, by its place.
pub type Client = u8;

/// A request of a client, in the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    pub client: Client,
    pub generation: u8,
    pub deadline: u8,
    pub fence: Option<u8>,
    /// Ghost: when its client was heard last.
    pub heard: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    Enqueue,
    Renew,
    Release,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// To the server.
    Call { client: Client, generation: u8, verb: Verb, sent: u8, number: u8 },
    /// To the client: the answer to the call of this number, which was sent then. `is_known`: the ticket is in the queue.
    /// Ghost: the server has forgotten so often before.
    Answer { client: Client, generation: u8, sent: u8, number: u8, is_known: bool, fence: Option<u8>, epoch: u8 },
    /// To a client whose ticket another's call has granted.
    Grant { client: Client, generation: u8, fence: u8, epoch: u8 },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum At {
    #[default]
    Idle,
    Waiting,
    /// Its code runs with the lock.
    Inside,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Holder {
    pub at: At,
    /// The number of its request; how many it has made.
    pub generation: u8,
    /// Until when the server surely keeps its ticket, as it knows.
    pub until: u8,
    pub fence: u8,
    pub renewals: u8,
    /// The call whose answer it has heard last.
    pub heard: u8,
    /// Ghost: how often the server had forgotten when it said what was heard last.
    pub epoch: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub now: u8,
    pub tickets: ArrayVec<Ticket, 6>,
    pub last_fence: u8,
    pub clients: ArrayVec<Holder, 3>,
    /// On their way, sorted: they arrive in any order. Who would send a fourth waits.
    pub messages: ArrayVec<Message, 3>,
    pub losses: u8,
    pub doubles: u8,
    /// The number of times that the server has forgotten all tickets.
    pub forgets: u8,
    /// Ghost: a grant had a number that was not larger than the last.
    pub repeated: bool,
}

impl State {
    /// Whether its code runs, and it has no reason to think that the lock is not its own.
    pub fn believes(&self, client: Client) -> bool {
        let holder = &self.clients[client as usize];
        holder.at == At::Inside && self.now < holder.until
    }

    /// ... nor has heard nothing of the server since that forgot.
    pub fn may_believe(&self, client: Client) -> bool {
        self.believes(client) && self.clients[client as usize].epoch == self.forgets
    }

    pub fn send(&mut self, message: Message) -> bool {
        if self.messages.is_full() {
            return false;
        }
        let place = self.messages.partition_point(|other| *other <= message);
        self.messages.insert(place, message);
        true
    }
}
