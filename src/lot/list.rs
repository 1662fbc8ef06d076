//! A doubly linked list through a slab, so that whoever stands in it can leave in one step.
//! Plain data: everything here happens under the lock of the bucket that owns the slab.

use slab::Slab;

/// A waiter's place in its bucket's slab.
pub type NodeId = u32;

const NONE: NodeId = NodeId::MAX;

/// A node's neighbours.
#[derive(Clone, Copy)]
pub struct Links {
    previous: NodeId,
    next: NodeId,
}

impl Links {
    /// Those of a node that stands in no list.
    pub const NONE: Self = Self { previous: NONE, next: NONE };
}

/// What can stand in a list.
pub trait Linked {
    /// Its neighbours.
    fn links(&self) -> Links;
    /// Its neighbours, to be changed by the list only.
    fn links_mut(&mut self) -> &mut Links;
}

/// The two ends.
#[derive(Clone, Copy)]
pub struct List {
    head: NodeId,
    tail: NodeId,
}

impl List {
    /// Without anybody in it.
    pub const EMPTY: Self = Self { head: NONE, tail: NONE };

    /// Its first node.
    pub fn first(self) -> Option<NodeId> {
        some(self.head)
    }

    /// All its nodes in order.
    pub fn iter<N: Linked>(self, nodes: &Slab<N>) -> impl Iterator<Item = NodeId> {
        std::iter::successors(self.first(), |id| some(nodes[*id as usize].links().next))
    }

    /// Puts a new node at the end.
    pub fn push<N: Linked>(&mut self, nodes: &mut Slab<N>, mut node: N) -> NodeId {
        *node.links_mut() = Links { previous: self.tail, next: NONE };
        let id = nodes.insert(node) as NodeId;
        match self.tail {
            NONE => self.head = id,
            tail => nodes[tail as usize].links_mut().next = id,
        }
        self.tail = id;
        id
    }

    /// Takes a node out; it stays in the slab.
    pub fn unlink<N: Linked>(&mut self, nodes: &mut Slab<N>, id: NodeId) {
        let Links { previous, next } = std::mem::replace(nodes[id as usize].links_mut(), Links::NONE);
        match previous {
            NONE => self.head = next,
            previous => nodes[previous as usize].links_mut().next = next,
        }
        match next {
            NONE => self.tail = previous,
            next => nodes[next as usize].links_mut().previous = previous,
        }
    }

    /// Takes a node out, of the slab too.
    pub fn remove<N: Linked>(&mut self, nodes: &mut Slab<N>, id: NodeId) -> N {
        self.unlink(nodes, id);
        nodes.remove(id as usize)
    }
}

fn some(id: NodeId) -> Option<NodeId> {
    (id != NONE).then_some(id)
}
