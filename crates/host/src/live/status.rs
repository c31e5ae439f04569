//! What a live run tells about itself: programs, and what links are like and do.

use windtunnel_control::{LaneStatus, NodeStatus, ProgramStatus, RunStatus, Snapshot};
use windtunnel_model::plan::{Action, LinkChange};
use windtunnel_model::{Lane, LinkProfile, NodeId, Plan, Rate, Vertex};

use super::Live;
use crate::supervisor::{Life, Supervised};

/// What a direction of a link is asked to be like, changes included. What cuts it is as in the
/// engine: each cause by itself.
#[derive(Debug)]
pub(super) struct Asked {
    down: bool,
    /// Flaps in their dark phase.
    flaps: u32,
    parted: bool,
    profile: LinkProfile,
}

impl Asked {
    /// By lane index, as the run begins.
    pub(super) fn all(plan: &Plan) -> Vec<Asked> {
        let profiles = plan.links.iter().flat_map(|link| link.profiles.iter().cloned());
        let asked = |profile| Asked { down: false, flaps: 0, parted: false, profile };
        profiles.map(asked).collect()
    }

    fn state(&self) -> &'static str {
        match self {
            Asked { down: true, .. } | Asked { flaps: 1.., .. } => "down",
            Asked { parted: true, .. } => "parted",
            _ => "up",
        }
    }
}

impl Live {
    /// A change of the network has taken effect.
    pub(super) fn note_change(&mut self, action: &Action) {
        match action {
            Action::Link(change) => self.note_link_change(change),
            Action::Flap { lanes, up } => {
                for lane in lanes {
                    if let Some(Asked { flaps, .. }) = self.asked.get_mut(lane.index()) {
                        *flaps = if *up { flaps.saturating_sub(1) } else { *flaps + 1 };
                    }
                }
            }
            Action::Partition { groups, one_way } => self.note_partition(groups, *one_way),
            Action::Heal => self.asked.iter_mut().for_each(|asked| asked.parted = false),
            _ => {}
        }
    }

    fn note_link_change(&mut self, change: &LinkChange) {
        for (lane, patch) in &change.patches {
            if let Some(asked) = self.asked.get_mut(lane.index()) {
                patch.apply_to(&mut asked.profile);
            }
        }
        for (lane, up) in &change.state {
            if let Some(asked) = self.asked.get_mut(lane.index()) {
                asked.down = !up;
            }
        }
    }

    /// A new partition takes the place of the one before.
    fn note_partition(&mut self, groups: &[Vec<Vertex>], one_way: bool) {
        let group = |vertex: Vertex| groups.iter().position(|group| group.contains(&vertex));
        for (link, pair) in self.plan.links.iter().zip(self.asked.chunks_mut(2)) {
            let ends = link.ends.each_ref().map(|end| group(end.vertex));
            for (asked, [from, to]) in pair.iter_mut().zip([[0, 1], [1, 0]]) {
                asked.parted = match (ends[from], ends[to]) {
                    (Some(from), Some(to)) if one_way => (from, to) == (0, 1),
                    (Some(from), Some(to)) => from != to,
                    _ => false,
                };
            }
        }
    }

    /// The state of every program.
    pub(super) fn status(&self) -> RunStatus {
        let nodes = self.plan.nodes.iter().enumerate();
        let made = |index| self.village.node(NodeId::from_index(index));
        let nodes = nodes.map(|(index, spec)| NodeStatus {
            node: spec.name.clone(),
            addresses: spec
                .interfaces
                .iter()
                .flat_map(windtunnel_model::plan::Interface::addresses)
                .map(|address| address.to_string())
                .collect(),
            init_pid: made(index).and_then(|node| i32::try_from(node.pid()).ok()).unwrap_or(0),
            absent: self
                .supervisor
                .programs()
                .any(|(key, program)| key.node == index && program.absent),
            programs: self
                .supervisor
                .programs()
                .filter(|(key, _)| key.node == index)
                .map(|(_, program)| program_status(program))
                .collect(),
        });
        RunStatus {
            name: self.plan.name.clone(),
            elapsed_ns: self.elapsed().as_nanos(),
            nodes: nodes.collect(),
        }
    }

    /// The same with what links are like and do.
    pub(super) fn snapshot(&self) -> Snapshot {
        let (at, window, done) = self.threads.recorder.recent().lanes();
        let done = done.into_iter().map(Some).chain(std::iter::repeat(None));
        let links = self.asked.iter().zip(done).enumerate().map(|(index, (asked, done))| {
            let lane = Lane::from_index(index);
            LaneStatus {
                link: self.plan.links[lane.link.index()].name.clone(),
                direction: self.plan.lane_name(lane),
                ..with_asked(asked, done.unwrap_or_default())
            }
        });
        Snapshot {
            links: links.collect(),
            sampled_ns: at.as_nanos(),
            window_ns: window.as_nanos(),
            status: self.status(),
        }
    }
}

fn with_asked(asked: &Asked, done: LaneStatus) -> LaneStatus {
    let profile = &asked.profile;
    let traces = &profile.traces;
    let traced = [
        ("latency", traces.latency.is_some()),
        ("rate", traces.rate.is_some()),
        ("loss", traces.loss.is_some()),
    ];
    LaneStatus {
        state: asked.state().to_owned(),
        latency_ns: profile.latency.as_nanos(),
        rate_bit_per_s: profile.rate.map(Rate::bits_per_second),
        loss_ppb: profile.loss.long_run().parts_per_billion(),
        traced: traced.iter().filter(|(_, is)| *is).map(|(key, _)| (*key).to_owned()).collect(),
        ..done
    }
}

fn program_status(program: &Supervised) -> ProgramStatus {
    let pid = match program.life {
        Life::Running { pid, .. } => Some(pid),
        _ => None,
    };
    ProgramStatus {
        argv: program.spec.argv.clone(),
        state: program.state().to_owned(),
        pid,
        exit: program.last_exit.map(|exit| exit.code),
    }
}
