//! The shapes: which vertices are joined.

use windtunnel_model::Probability;

use super::{GenerateError, random};

/// A shape of routers. Numbers are of routers, where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopologyShape {
    /// Nodes around one router.
    Star {
        /// How many nodes.
        nodes: u32,
    },
    /// Routers in a row.
    Chain {
        /// How many.
        routers: u32,
    },
    /// Routers in a circle.
    Ring {
        /// How many.
        routers: u32,
    },
    /// Every router joined to every other.
    FullMesh {
        /// How many.
        routers: u32,
    },
    /// A complete tree; nodes at its leaves.
    Tree {
        /// Children of each router that is not a leaf.
        fanout: u32,
        /// Levels below the root.
        depth: u32,
    },
    /// A rectangle, each router joined to its two to four neighbours.
    Grid {
        /// Rows.
        rows: u32,
        /// Columns.
        columns: u32,
    },
    /// A grid whose opposite edges are joined as well.
    Torus {
        /// Rows.
        rows: u32,
        /// Columns.
        columns: u32,
    },
    /// Two routers with a link between them, and nodes on both sides.
    Dumbbell {
        /// Nodes at the first router.
        left: u32,
        /// Nodes at the second router.
        right: u32,
    },
    /// `dimension + 1` levels of `2^dimension` routers; nodes at the first and the last level.
    Butterfly {
        /// The dimension.
        dimension: u32,
    },
    /// A connected random graph in which each pair is joined with one probability.
    Random {
        /// How many.
        routers: u32,
        /// The probability; `None`: 2·ln(n)/n.
        probability: Option<Probability>,
    },
    /// A random graph that grew by preferential attachment.
    ScaleFree {
        /// How many.
        routers: u32,
        /// Links of each newcomer.
        attach: u32,
    },
}

/// Routers by name, the pairs that are joined, and the routers that nodes are attached to.
pub(super) struct TopologySkeleton {
    pub(super) names: Vec<String>,
    pub(super) edges: Vec<[usize; 2]>,
    pub(super) takers: Vec<usize>,
}

impl TopologyShape {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TopologyShape::Star { .. } => "star",
            TopologyShape::Chain { .. } => "chain",
            TopologyShape::Ring { .. } => "ring",
            TopologyShape::FullMesh { .. } => "full-mesh",
            TopologyShape::Tree { .. } => "tree",
            TopologyShape::Grid { .. } => "grid",
            TopologyShape::Torus { .. } => "torus",
            TopologyShape::Dumbbell { .. } => "dumbbell",
            TopologyShape::Butterfly { .. } => "butterfly",
            TopologyShape::Random { .. } => "random",
            TopologyShape::ScaleFree { .. } => "scale-free",
        }
    }

    /// Whether it depends on the seed.
    pub(super) const fn is_random(self) -> bool {
        matches!(self, TopologyShape::Random { .. } | TopologyShape::ScaleFree { .. })
    }

    /// What it is, with its numbers: a sentence for the head of the file.
    pub(super) fn definition(self) -> String {
        match self {
            TopologyShape::Star { nodes } => format!("A star: {nodes} nodes around one router."),
            TopologyShape::Chain { routers } => format!("A chain of {routers} routers."),
            TopologyShape::Ring { routers } => format!("A ring of {routers} routers."),
            TopologyShape::FullMesh { routers } => {
                format!("A full mesh: {routers} routers, each joined to every other.")
            }
            TopologyShape::Tree { fanout, depth } => {
                format!("A complete tree of {depth} levels below its root, fan-out {fanout}.")
            }
            TopologyShape::Grid { rows, columns } => {
                format!("A grid of {rows} by {columns} routers.")
            }
            TopologyShape::Torus { rows, columns } => {
                format!("A torus of {rows} by {columns} routers.")
            }
            TopologyShape::Dumbbell { left, right } => {
                format!("A dumbbell: {left} and {right} nodes on two sides of one link.")
            }
            TopologyShape::Butterfly { dimension } => format!(
                "A butterfly of dimension {dimension} (Leighton 1992): router r-L-W is on level L; it \
                 is joined to r-(L+1)-W and to r-(L+1)-V, where V is W with bit L flipped."
            ),
            TopologyShape::Random { routers, .. } => format!(
                "A connected random graph G(n, p) with {routers} routers, p = {} (Gilbert 1959).",
                self.probability()
            ),
            TopologyShape::ScaleFree { routers, attach } => format!(
                "A scale-free graph: {routers} routers, preferential attachment with {attach} links \
                 a newcomer (Barabási and Albert 1999)."
            ),
        }
    }

    /// How many routers and links the skeleton has at the most.
    pub(super) fn size(self) -> Result<(u64, u64), GenerateError> {
        let wide = u64::from;
        let size = match self {
            TopologyShape::Star { nodes } => {
                self.least("the number of nodes", nodes, 1)?;
                (1, wide(nodes))
            }
            TopologyShape::Chain { routers } => (self.routers(routers, 2)?, wide(routers) - 1),
            TopologyShape::Ring { routers } => (self.routers(routers, 3)?, wide(routers)),
            TopologyShape::FullMesh { routers } => {
                let n = self.routers(routers, 2)?;
                (n, n * (n - 1) / 2)
            }
            TopologyShape::Tree { fanout, depth } => {
                self.least("the fan-out", fanout, 1)?;
                self.least("the depth", depth, 1)?;
                let routers = tree_routers(wide(fanout), depth);
                (routers, routers - 1)
            }
            TopologyShape::Grid { rows, columns } => {
                let (rows, columns) = self.sides(rows, columns, 1)?;
                (rows * columns, (rows * columns).saturating_mul(2).saturating_sub(rows + columns))
            }
            TopologyShape::Torus { rows, columns } => {
                let (rows, columns) = self.sides(rows, columns, 3)?;
                (rows * columns, (rows * columns).saturating_mul(2))
            }
            TopologyShape::Dumbbell { left, right } => {
                self.least("the number of nodes on the left", left, 1)?;
                self.least("the number of nodes on the right", right, 1)?;
                (2, 1 + wide(left) + wide(right))
            }
            TopologyShape::Butterfly { dimension } => {
                self.least("the dimension", dimension, 1)?;
                let rows = 1_u64.checked_shl(dimension).unwrap_or(u64::MAX);
                let levels = wide(dimension);
                (rows.saturating_mul(levels + 1), rows.saturating_mul(2 * levels))
            }
            // How many links there will be is random; what is drawn is counted afterwards.
            TopologyShape::Random { routers, .. } => (self.routers(routers, 2)?, wide(routers) - 1),
            TopologyShape::ScaleFree { routers, attach } => {
                self.least("the number of links of a newcomer", attach, 1)?;
                let (n, m) = (self.routers(routers, attach.saturating_add(1))?, wide(attach));
                (n, m * (m + 1) / 2 + m * n.saturating_sub(m + 1))
            }
        };
        Ok(size)
    }

    /// Routers, edges, and the routers that nodes are attached to. Its size has been checked.
    pub(super) fn skeleton(self, seed: u64) -> Result<TopologySkeleton, GenerateError> {
        Ok(match self {
            TopologyShape::Star { .. } | TopologyShape::Dumbbell { .. } => {
                TopologySkeleton::numbered(0, Vec::new())
            }
            TopologyShape::Chain { routers } => {
                let edges = (1..index(routers)).map(|at| [at - 1, at]).collect();
                TopologySkeleton::numbered(routers, edges)
            }
            TopologyShape::Ring { routers } => {
                let count = index(routers);
                let edges = (0..count).map(|at| [at, (at + 1) % count]).collect();
                TopologySkeleton::numbered(routers, edges)
            }
            TopologyShape::FullMesh { routers } => {
                let count = index(routers);
                let edges = (0..count).flat_map(|a| (a + 1..count).map(move |b| [a, b])).collect();
                TopologySkeleton::numbered(routers, edges)
            }
            TopologyShape::Tree { fanout, depth } => tree(fanout, depth),
            TopologyShape::Grid { rows, columns } => lattice(rows, columns, false),
            TopologyShape::Torus { rows, columns } => lattice(rows, columns, true),
            TopologyShape::Butterfly { dimension } => butterfly(dimension),
            TopologyShape::Random { routers, .. } => TopologySkeleton::numbered(
                routers,
                random::gilbert(routers, self.probability(), seed)?,
            ),
            TopologyShape::ScaleFree { routers, attach } => {
                TopologySkeleton::numbered(routers, random::barabasi(routers, attach, seed))
            }
        })
    }

    fn probability(self) -> Probability {
        match self {
            TopologyShape::Random { routers, probability } => {
                probability.unwrap_or_else(|| random::comfortable(routers))
            }
            _ => Probability::ALWAYS,
        }
    }

    fn routers(self, routers: u32, least: u32) -> Result<u64, GenerateError> {
        self.least("the number of routers", routers, least)?;
        Ok(u64::from(routers))
    }

    fn sides(self, rows: u32, columns: u32, least: u32) -> Result<(u64, u64), GenerateError> {
        self.least("the number of rows", rows, least)?;
        self.least("the number of columns", columns, least)?;
        Ok((u64::from(rows), u64::from(columns)))
    }

    fn least(self, what: &'static str, value: u32, least: u32) -> Result<(), GenerateError> {
        let (value, least) = (u64::from(value), u64::from(least));
        match value >= least {
            true => Ok(()),
            false => Err(GenerateError::TooSmall { shape: self.noun(), what, value, least }),
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            TopologyShape::Star { .. } => "a star",
            TopologyShape::Chain { .. } => "a chain",
            TopologyShape::Ring { .. } => "a ring",
            TopologyShape::FullMesh { .. } => "a full mesh",
            TopologyShape::Tree { .. } => "a tree",
            TopologyShape::Grid { .. } => "a grid",
            TopologyShape::Torus { .. } => "a torus",
            TopologyShape::Dumbbell { .. } => "a dumbbell",
            TopologyShape::Butterfly { .. } => "a butterfly",
            TopologyShape::Random { .. } => "a random graph",
            TopologyShape::ScaleFree { .. } => "this scale-free graph",
        }
    }
}

impl TopologySkeleton {
    /// Routers `r-1`, `r-2` …, each of which takes nodes.
    fn numbered(routers: u32, edges: Vec<[usize; 2]>) -> Self {
        let names = (1..=routers).map(|number| format!("r-{number}")).collect();
        TopologySkeleton { names, edges, takers: (0..index(routers)).collect() }
    }
}

/// Numbered by level from the root; nodes at the leaves.
fn tree(fanout: u32, depth: u32) -> TopologySkeleton {
    let total = tree_routers(u64::from(fanout), depth);
    let inner = tree_routers(u64::from(fanout), depth - 1);
    let routers = u32::try_from(total).unwrap_or(u32::MAX);
    let edges = (1..index(routers)).map(|at| [(at - 1) / index(fanout), at]).collect();
    let mut skeleton = TopologySkeleton::numbered(routers, edges);
    skeleton.takers.drain(..usize::try_from(inner).unwrap_or(0));
    skeleton
}

/// Routers of a complete tree (saturating).
fn tree_routers(fanout: u64, depth: u32) -> u64 {
    let level = |level| fanout.saturating_pow(level);
    // More levels than this are refused for their size, or are a chain.
    (0..=depth.min(100_000)).map(level).fold(0, u64::saturating_add)
}

/// A grid, closed in both ways for a torus; router `r-ROW-COLUMN`, counted from 1.
fn lattice(rows: u32, columns: u32, closed: bool) -> TopologySkeleton {
    let (height, width) = (index(rows), index(columns));
    let names = (1..=rows).flat_map(|row| (1..=columns).map(move |at| format!("r-{row}-{at}")));
    let at = |row: usize, column: usize| (row % height) * width + column % width;
    let mut edges = Vec::new();
    for row in 0..height {
        for column in 0..width {
            if closed || column + 1 < width {
                edges.push([at(row, column), at(row, column + 1)]);
            }
            if closed || row + 1 < height {
                edges.push([at(row, column), at(row + 1, column)]);
            }
        }
    }
    TopologySkeleton { names: names.collect(), edges, takers: (0..height * width).collect() }
}

/// Leighton, Introduction to Parallel Algorithms and Architectures (1992), 3.2: the vertices of
/// level L and L+1 are joined where their rows are equal or differ in bit L alone.
fn butterfly(dimension: u32) -> TopologySkeleton {
    let (levels, rows) = (index(dimension), 1_usize << dimension);
    let names = (0..=levels).flat_map(|level| (0..rows).map(move |row| format!("r-{level}-{row}")));
    let at = |level: usize, row: usize| level * rows + row;
    let mut edges = Vec::new();
    for level in 0..levels {
        for row in 0..rows {
            edges.push([at(level, row), at(level + 1, row)]);
            edges.push([at(level, row), at(level + 1, row ^ (1 << level))]);
        }
    }
    let takers = (0..rows).chain(at(levels, 0)..at(levels, rows)).collect();
    TopologySkeleton { names: names.collect(), edges, takers }
}

fn index(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
