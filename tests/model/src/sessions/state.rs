//! Connections with their sessions, requests, and who holds what in the server.

use arrayvec::ArrayVec;

/// Each has two connections: the home, and the one that waits.
pub type Client = u8;
/// A connection, by its place.
pub type Link = u8;
/// A request, by its place.
pub type Id = u8;

pub fn home(client: Client) -> Link {
    2 * client
}

pub fn waiting(client: Client) -> Link {
    2 * client + 1
}

pub fn is_home(link: Link) -> bool {
    link.is_multiple_of(2)
}

pub fn client_of(link: Link) -> Client {
    link / 2
}

/// The query of a session, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Query {
    Try(Id),
    /// By the home, for a request that has no session to block in.
    TryInLine(Id),
    /// Blocks.
    Lock(Id),
    /// After a wait: whether the session still answers.
    Ping(Id),
    /// After a wait that may have been granted.
    Clean(Id),
    Fence(Id),
    /// The number of a name, and whether shared.
    Unlock(u8, bool),
    /// After a release of which nobody knows.
    UnlockAll,
    Beat,
    /// Whether the server knows of the wait in the other session of the client, if it is still that one.
    LookAfter(u8),
    /// The number of the query of the client's other session, if it is still that one.
    Cancel(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// With how many grants there were before, which nobody can see.
    Yes(u8),
    No,
    Fence(u8),
    Cancelled,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    #[default]
    Idle,
    /// Its query is on the way, or the backend is at it.
    Asked,
    /// The backend waits for a lock, or has just been granted it.
    Blocked,
    Answered(Answer),
}

/// A connection, and the session of the server at its other end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Connection {
    /// Whether the session lives.
    pub lives: bool,
    /// A cancel has reached the backend.
    pub signal: bool,
    pub phase: Phase,
    /// The last query.
    pub query: Option<Query>,
    pub sent: u8,
    /// The number of sessions that there were in this place.
    pub number: u8,
    /// Since when nothing passes.
    pub cut: Option<u8>,
    /// Whether the client uses it.
    pub is_open: bool,
    /// The queries that come next.
    pub queue: ArrayVec<Query, 6>,
    /// When the last answered query was sent.
    pub heard: u8,
    /// Until when the server surely keeps the session.
    pub until: u8,
    /// The cancel that was said was done.
    pub said: bool,
    pub cleans: u8,
    /// The number of times that the server has not known of this wait.
    pub missed: u8,
    /// During this wait the home has tried for who is in line.
    pub tried: bool,
    /// Ghost: the server itself has ended the session.
    pub taken: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum At {
    #[default]
    Out,
    /// Behind another of its process.
    Behind,
    /// To be tried by the home.
    Asks,
    Tried,
    /// For a session to block in.
    InLine,
    /// In the session that waits: blocked, asked, cleaned.
    Waits,
    Fenced,
    /// Its code runs.
    In,
    Done,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Request {
    pub at: At,
    pub link: Option<Link>,
    pub withdrawn: bool,
    /// It has learned that it lost its lock.
    pub knows_loss: bool,
    pub fence: u8,
    /// The home tries it now.
    pub is_tried: bool,
    /// ... since the wait of another began.
    pub is_late: bool,
    /// Ghost: of its grant.
    pub grant: u8,
}

/// The holds that a session has of a name: it gets again what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hold {
    pub link: Link,
    pub alone: u8,
    pub shared: u8,
}

impl Hold {
    pub fn count(&mut self, is_shared: bool) -> &mut u8 {
        if is_shared { &mut self.shared } else { &mut self.alone }
    }
}

/// In the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Name {
    pub holds: ArrayVec<Hold, 4>,
    pub grant: u8,
    /// The waiters, and whether they share.
    pub queue: ArrayVec<(Link, bool), 4>,
}

impl Name {
    pub fn has(&self, link: Link) -> bool {
        self.holds.iter().any(|hold| hold.link == link)
    }

    pub fn waits(&self, link: Link) -> bool {
        self.queue.iter().any(|(other, _)| *other == link)
    }

    pub fn conflicts(&self, link: Link, is_shared: bool) -> bool {
        self.holds.iter().any(|hold| hold.link != link && !(is_shared && hold.alone == 0))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub now: u8,
    pub links: ArrayVec<Connection, 6>,
    pub names: ArrayVec<Name, 2>,
    pub requests: ArrayVec<Request, 4>,
    /// By client: those without a session to block in.
    pub lines: ArrayVec<ArrayVec<Id, 2>, 3>,
    pub last_fence: u8,
    pub grants: u8,
    pub ends: u8,
    pub cuts: u8,
    pub quits: u8,
    /// Ghost: of the last write that a register took, which refuses smaller fences; its fence.
    pub written: (u8, u8),
    /// Ghost: the register took a write of somebody whose lock another has had since.
    pub overlap: bool,
    /// Ghost: it has refused somebody who holds.
    pub refused: bool,
    /// Ghost: a try was refused though no other client has or wants the name.
    pub wronged: bool,
}

impl State {
    pub fn link(&mut self, link: Link) -> &mut Connection {
        &mut self.links[usize::from(link)]
    }

    pub fn request(&mut self, id: Id) -> &mut Request {
        &mut self.requests[usize::from(id)]
    }

    pub fn push(&mut self, link: Link, query: Query) {
        self.link(link).queue.push(query);
    }

    /// Whether something is granted by this session.
    pub fn holds(&self, link: Link) -> bool {
        self.requests.iter().any(|r| r.link == Some(link) && matches!(r.at, At::In | At::Fenced))
    }

    /// The request that the session of waits is busy with.
    pub fn waiter(&self, link: Link) -> Option<Id> {
        let waits = |r: &Request| r.link == Some(link) && r.at == At::Waits;
        self.requests.iter().position(waits).map(|place| place as Id)
    }
}
