//! Partitions: what is cut off from what.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::id::NetworkVertex;

/// What a partition cuts, of its groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionMode {
    /// All that leads from one group to another. The groups are disjoint.
    #[default]
    Between,
    /// Only what leads from the first group to the second.
    OneWay,
    /// All that leads between the first group and the second, between the third and the fourth, and
    /// so on. Only the two of a pair are disjoint.
    Pairs,
}

/// Which vertices a partition parts.
#[derive(Debug, Clone)]
pub struct PartitionSides {
    cut: PartitionMode,
    /// The groups of each vertex that is in one, in ascending order.
    groups: BTreeMap<NetworkVertex, Vec<usize>>,
}

impl PartitionMode {
    /// Whether this is that of all partitions which do not say.
    #[must_use]
    pub fn is_between(&self) -> bool {
        *self == PartitionMode::Between
    }

    /// Whether what is in the groups `from` reaches nothing that is in the groups `to`. Both are in
    /// ascending order.
    #[must_use]
    pub fn parts(self, from: &[usize], to: &[usize]) -> bool {
        match self {
            PartitionMode::Between => {
                matches!((from.first(), to.first()), (Some(a), Some(b)) if a != b)
            }
            PartitionMode::OneWay => from.contains(&0) && to.contains(&1),
            PartitionMode::Pairs => from.iter().any(|group| to.binary_search(&(group ^ 1)).is_ok()),
        }
    }
}

impl PartitionSides {
    /// Those of a partition into `groups`.
    #[must_use]
    pub fn new(groups: &[Vec<NetworkVertex>], cut: PartitionMode) -> PartitionSides {
        let mut of: BTreeMap<NetworkVertex, Vec<usize>> = BTreeMap::new();
        for (index, group) in groups.iter().enumerate() {
            for vertex in group {
                of.entry(*vertex).or_default().push(index);
            }
        }
        PartitionSides { cut, groups: of }
    }

    /// What it cuts.
    #[must_use]
    pub const fn cut(&self) -> PartitionMode {
        self.cut
    }

    /// The groups that a vertex is in, in ascending order.
    #[must_use]
    pub fn of(&self, vertex: NetworkVertex) -> &[usize] {
        self.groups.get(&vertex).map_or(&[], Vec::as_slice)
    }

    /// Whether nothing gets from one vertex to another.
    #[must_use]
    pub fn part(&self, from: NetworkVertex, to: NetworkVertex) -> bool {
        self.cut.parts(self.of(from), self.of(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NodeId;

    fn node(number: u32) -> NetworkVertex {
        NetworkVertex::Node(NodeId(number))
    }

    /// Jepsen's majorities-ring of five: each sees itself and two others, and no two see the same.
    #[test]
    fn pairs_part_what_is_in_them_and_nothing_else() {
        let cut = [[0, 2], [0, 3], [1, 3], [1, 4], [2, 4]];
        let groups: Vec<Vec<NetworkVertex>> =
            cut.iter().flatten().map(|number| alloc::vec![node(*number)]).collect();
        let sides = PartitionSides::new(&groups, PartitionMode::Pairs);
        for a in 0..5 {
            for b in 0..5 {
                let is_cut = cut.contains(&[a, b]) || cut.contains(&[b, a]);
                assert_eq!(sides.part(node(a), node(b)), is_cut, "{a} {b}");
            }
        }
    }

    #[test]
    fn one_way_leaves_the_way_back() {
        let sides = PartitionSides::new(
            &[alloc::vec![node(0)], alloc::vec![node(1)]],
            PartitionMode::OneWay,
        );
        assert!(sides.part(node(0), node(1)) && !sides.part(node(1), node(0)));
        assert!(!sides.part(node(0), node(2)), "a vertex of no group");
    }

    #[test]
    fn groups_are_parted_from_each_other_and_not_from_what_is_in_none() {
        let groups = [alloc::vec![node(0), node(1)], alloc::vec![node(2)]];
        let sides = PartitionSides::new(&groups, PartitionMode::Between);
        assert!(sides.part(node(1), node(2)) && sides.part(node(2), node(0)));
        assert!(!sides.part(node(0), node(1)) && !sides.part(node(3), node(0)));
    }
}
