//! The state of one direction of a link, and what changes of the network make of it.

use alloc::vec::Vec;

use crate::id::{Lane, NetworkVertex};
use crate::plan::{EventAction, PartitionMode, PartitionSides, Plan};
use crate::profile::{LinkPatch, LinkProfile};

/// What one direction of a link is like. What cuts it are causes of their own: it takes packets only
/// while none holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneState {
    /// Its properties, with all changes.
    pub profile: LinkProfile,
    /// Flaps in their dark phase.
    flaps: u32,
    is_down: bool,
    is_parted: bool,
}

/// Why a lane takes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneCut {
    /// It was taken down, or is in the dark phase of a flap.
    Down,
    /// A partition lies between its ends.
    Partition,
}

/// What a change of the network is for one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneChange<'a> {
    /// Other properties.
    Set(&'a LinkPatch),
    /// It is taken up (`true`), or down.
    Up(bool),
    /// The dark phase of a flap ends (`true`), or begins.
    Flap(bool),
    /// Whether a partition lies between its ends from now on.
    Parted(bool),
}

impl LaneState {
    /// One that takes packets.
    #[must_use]
    pub const fn new(profile: LinkProfile) -> Self {
        LaneState { profile, flaps: 0, is_down: false, is_parted: false }
    }

    /// As the lanes of `plan` are at first, by lane index.
    #[must_use]
    pub fn all(plan: &Plan) -> Vec<LaneState> {
        plan.links.iter().flat_map(|link| link.profiles.iter().cloned()).map(Self::new).collect()
    }

    /// Takes a change over.
    pub fn apply(&mut self, change: LaneChange<'_>) {
        match change {
            LaneChange::Set(patch) => patch.apply_to(&mut self.profile),
            LaneChange::Up(up) => self.is_down = !up,
            LaneChange::Flap(true) => self.flaps = self.flaps.saturating_sub(1),
            LaneChange::Flap(false) => self.flaps += 1,
            LaneChange::Parted(parted) => self.is_parted = parted,
        }
    }

    /// Whether it takes packets.
    #[inline]
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.cut().is_none()
    }

    /// Why it takes nothing; that it is down goes first.
    #[inline]
    #[must_use]
    pub const fn cut(&self) -> Option<LaneCut> {
        match self {
            LaneState { is_down: true, .. } | LaneState { flaps: 1.., .. } => Some(LaneCut::Down),
            LaneState { is_parted: true, .. } => Some(LaneCut::Partition),
            _ => None,
        }
    }
}

impl EventAction {
    /// Hands to `each` what this is for each lane, in order, in a network whose links have these
    /// `ends`.
    pub fn each_lane<'a>(
        &'a self,
        ends: impl IntoIterator<Item = [NetworkVertex; 2]>,
        mut each: impl FnMut(Lane, LaneChange<'a>),
    ) {
        match self {
            EventAction::Link(change) => {
                change.patches.iter().for_each(|(lane, patch)| each(*lane, LaneChange::Set(patch)));
                change.state.iter().for_each(|(lane, up)| each(*lane, LaneChange::Up(*up)));
            }
            EventAction::Flap { lanes, up } => {
                lanes.iter().for_each(|lane| each(*lane, LaneChange::Flap(*up)));
            }
            _ => {
                let Some(sides) = self.sides() else { return };
                let lanes = ends.into_iter().flat_map(|[a, b]| [(a, b), (b, a)]).enumerate();
                for (index, (from, to)) in lanes {
                    each(Lane::from_index(index), LaneChange::Parted(sides.part(from, to)));
                }
            }
        }
    }

    /// On which sides vertices are after it, where it begins a partition or ends one.
    #[must_use]
    pub fn sides(&self) -> Option<PartitionSides> {
        match self {
            EventAction::Partition { groups, cut } => Some(PartitionSides::new(groups, *cut)),
            EventAction::Heal => Some(PartitionSides::new(&[], PartitionMode::Between)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::id::NodeId;
    use crate::plan::LinkChange;
    use crate::time::Span;

    /// `a` up to `b` is lane 0, `b` down to `a` lane 1, `b` up to `c` lane 2.
    fn network() -> (Vec<[NetworkVertex; 2]>, Vec<LaneState>) {
        let lanes = vec![LaneState::new(LinkProfile::default()); 4];
        (vec![[node(0), node(1)], [node(1), node(2)]], lanes)
    }

    fn node(number: u32) -> NetworkVertex {
        NetworkVertex::Node(NodeId(number))
    }

    fn apply(action: &EventAction, ends: &[[NetworkVertex; 2]], lanes: &mut [LaneState]) {
        action.each_lane(ends.iter().copied(), |lane, change| lanes[lane.index()].apply(change));
    }

    fn cuts(lanes: &[LaneState]) -> Vec<Option<LaneCut>> {
        lanes.iter().map(LaneState::cut).collect()
    }

    #[test]
    fn properties_and_state_of_a_link_change_lane_by_lane() {
        let (ends, mut lanes) = network();
        let latency = Some(Span::from_millis(40));
        let patch = LinkPatch { latency, ..LinkPatch::default() };
        let [one, other] = [1, 2].map(Lane::from_index);
        let change = LinkChange { patches: vec![(one, patch)], state: vec![(other, false)] };
        apply(&EventAction::Link(change), &ends, &mut lanes);
        let latencies: Vec<Span> = lanes.iter().map(|lane| lane.profile.latency).collect();
        assert_eq!(latencies, [Span::ZERO, Span::from_millis(40), Span::ZERO, Span::ZERO]);
        assert_eq!(cuts(&lanes), [None, None, Some(LaneCut::Down), None]);
    }

    #[test]
    fn a_partition_takes_the_place_of_the_one_before_and_mends_no_other_cut() {
        let (ends, mut lanes) = network();
        let flap = |up| EventAction::Flap { lanes: vec![Lane::from_index(0)], up };
        apply(&flap(false), &ends, &mut lanes);
        let part = |groups: [u32; 2]| {
            let groups = groups.map(|number| vec![node(number)]).to_vec();
            EventAction::Partition { groups, cut: PartitionMode::Between }
        };
        let (down, parted) = (Some(LaneCut::Down), Some(LaneCut::Partition));
        apply(&part([0, 1]), &ends, &mut lanes);
        assert_eq!(cuts(&lanes), [down, parted, None, None]);
        apply(&part([1, 2]), &ends, &mut lanes);
        assert_eq!(cuts(&lanes), [down, None, parted, parted]);
        apply(&EventAction::Heal, &ends, &mut lanes);
        assert_eq!(cuts(&lanes), [down, None, None, None]);
        apply(&flap(true), &ends, &mut lanes);
        assert!(lanes.iter().all(LaneState::is_up));
    }
}
