//! Small numbers that name things inside a plan. They index the plan's lists.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the plan's list.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The id at a position of the plan's list.
            ///
            /// # Panics
            /// If the position is over 2³², which no plan reaches (validation caps it far below).
            #[must_use]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("a plan has fewer than 2^32 of anything"))
            }
        }
    };
}

id!(
    /// A node: a namespace where programs run.
    NodeId
);
id!(
    /// A router: exists only inside the engine; forwards and answers ICMP.
    RouterId
);
id!(
    /// A LAN: an Ethernet segment inside the engine that nodes and routers share.
    LanId
);
id!(
    /// A link between two vertices; both directions of it.
    LinkId
);
id!(
    /// One interface of one node: where packets enter and leave the engine. Numbered over all nodes.
    PortId
);

id!(
    /// A reservation that nodes share.
    ReservationId
);
id!(
    /// A service.
    ServiceId
);

/// Which way along a link: `Up` goes from the first vertex named in `between` to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkDirection {
    /// From the first named to the second.
    Up,
    /// From the second named to the first.
    Down,
}

impl LinkDirection {
    /// Both, in the order in which pairs are stored.
    pub const BOTH: [LinkDirection; 2] = [LinkDirection::Up, LinkDirection::Down];

    /// 0 for up, 1 for down: the position in a per-direction pair.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            LinkDirection::Up => 0,
            LinkDirection::Down => 1,
        }
    }

    /// The other way.
    #[must_use]
    pub const fn reverse(self) -> LinkDirection {
        match self {
            LinkDirection::Up => LinkDirection::Down,
            LinkDirection::Down => LinkDirection::Up,
        }
    }

    /// `up` or `down`, as in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LinkDirection::Up => "up",
            LinkDirection::Down => "down",
        }
    }
}

/// One direction of one link: the unit that has a queue, random streams and counters of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lane {
    /// The link.
    pub link: LinkId,
    /// The way along it.
    pub direction: LinkDirection,
}

impl Lane {
    /// Position in a table that holds both directions of every link: `2·link + direction`.
    #[must_use]
    pub const fn index(self) -> usize {
        self.link.index() * 2 + self.direction.index()
    }

    /// The lane at a position of such a table.
    #[must_use]
    pub fn from_index(index: usize) -> Self {
        let direction =
            if index.is_multiple_of(2) { LinkDirection::Up } else { LinkDirection::Down };
        Lane { link: LinkId::from_index(index / 2), direction }
    }

    /// The other direction of the same link.
    #[must_use]
    pub const fn reverse(self) -> Lane {
        Lane { link: self.link, direction: self.direction.reverse() }
    }
}

/// An end of links: a node, a router or a LAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkVertex {
    /// A node.
    Node(NodeId),
    /// A router.
    Router(RouterId),
    /// A LAN.
    Lan(LanId),
}
