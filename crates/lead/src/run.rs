//! A run over machines of a cluster, from the plan to the report.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windtunnel_cluster::protocol::answers::MissingRequirements;
use windtunnel_cluster::protocol::run::{RunMember, RunSetup};
use windtunnel_cluster::protocol::{AgentDescription, AgentRequest, AllocatedResources};
use windtunnel_cluster::{AgentClient, ClusterKey, PartSessions, parts};
use windtunnel_control::part::with_causes;
use windtunnel_folder::RunOutputFolder;
use windtunnel_host::{Observer, RunOptions};
use windtunnel_model::Plan;
use windtunnel_placement::{NodePlacement, PlacedRunLoad, UplinkTrafficBound};
use windtunnel_trace::report::RunReport;
use windtunnel_verdict::gather;

use crate::conductor::{self, ClusterRunCoordinator, ClusterRunStage};
use crate::error::LeadError;
use crate::machines::DiscoveredMachines;
use crate::placing::PlacementHostSet;
use crate::progress::ClusterRunObserver;

/// A run that is wanted.
pub struct ClusterRunRequest<'a> {
    pub plan: &'a Plan,
    pub options: &'a RunOptions,
    /// Keep them until the run is over: agents that were started end with them.
    pub found: &'a DiscoveredMachines,
    pub key: &'a ClusterKey,
    /// Whether packets between machines go in the clear.
    pub plain: bool,
}

/// A run that has begun, for the process that leads or follows it.
pub struct LiveClusterRun {
    setup: RunSetup,
    options: RunOptions,
    folder: RunOutputFolder,
    conductor: ClusterRunCoordinator,
    progress: Arc<dyn ClusterRunObserver>,
}

impl ClusterRunRequest<'_> {
    /// Makes the run folder, places the nodes, and leads all machines to the beginning of the run.
    /// From now on SIGINT, SIGTERM and SIGHUP end the run, until [`LiveClusterRun`] is dropped.
    ///
    /// # Errors
    /// If the machines cannot carry the plan, or one of them does not come to the beginning. Then
    /// nothing is left of the run.
    pub fn begin(
        &self,
        observer: &Arc<dyn Observer>,
        progress: &Arc<dyn ClusterRunObserver>,
    ) -> Result<LiveClusterRun, LeadError> {
        let folder = folder(self.options, self.plan)?;
        match self.lead(observer, progress) {
            Ok((setup, conductor)) => Ok(LiveClusterRun {
                setup,
                options: self.options.clone(),
                folder,
                conductor,
                progress: Arc::clone(progress),
            }),
            Err(error) => {
                folder.discard();
                Err(error)
            }
        }
    }

    fn lead(
        &self,
        observer: &Arc<dyn Observer>,
        progress: &Arc<dyn ClusterRunObserver>,
    ) -> Result<(RunSetup, ClusterRunCoordinator), LeadError> {
        let setup = self.setup(progress)?;
        progress.begins(&setup);
        let signals = conductor::signals()?;
        let parts = PartSessions::begin(&setup, self.key);
        let mut conductor = ClusterRunCoordinator::new(
            &setup,
            parts,
            Arc::clone(observer),
            ClusterRunStage::Binding,
            signals,
        );
        conductor.until_begun()?;
        Ok((setup, conductor))
    }

    fn setup(&self, progress: &Arc<dyn ClusterRunObserver>) -> Result<RunSetup, LeadError> {
        let cards = &self.found.cards;
        let site = PlacementHostSet::of(cards);
        let placement = site.place(self.plan)?;
        progress.placed(cards, &site, &placement);
        let (members, places) = members(cards, &site, &placement);
        Ok(RunSetup {
            run: parts::run_number()?,
            plan: self.plan.clone(),
            plan_hash: self.options.plan_hash.clone(),
            members,
            placement: places,
            key: if self.plain { None } else { Some(parts::packet_key()?) },
            base_dir: self.options.base_dir.clone(),
            shared: self.options.shared(),
            by: by(),
        })
    }
}

/// What the machines of a placement do not have of what their nodes need: a host and a line each.
///
/// # Errors
/// If an agent does not answer.
pub fn look(
    plan: &Plan,
    found: &DiscoveredMachines,
    site: &PlacementHostSet,
    placement: &NodePlacement,
    base_dir: &Path,
    key: &ClusterKey,
) -> Result<Vec<(String, String)>, LeadError> {
    let options = RunOptions::new(PathBuf::from("/"), base_dir.to_owned());
    let (members, places) = members(&found.cards, site, placement);
    let setup = RunSetup {
        run: 0,
        plan: plan.clone(),
        plan_hash: "0".repeat(64),
        members,
        placement: places,
        key: None,
        base_dir: base_dir.to_owned(),
        shared: options.shared(),
        by: by(),
    };
    let mut missing = Vec::new();
    for (number, member) in (0..).zip(&setup.members) {
        let client = AgentClient::connect(&member.address.to_string(), key)?;
        let question = AgentRequest::look(Box::new(setup.clone()), number);
        let MissingRequirements(what) = client.ask(&question)?;
        missing.extend(what.into_iter().map(|line| (member.host.clone(), line)));
    }
    Ok(missing)
}

impl LiveClusterRun {
    /// Follows a run that others have begun. What [`ClusterRunRequest::begin`] says of signals holds here, too.
    ///
    /// # Errors
    /// If the run folder cannot be made, or signals cannot be taken over.
    pub fn attend(
        setup: RunSetup,
        options: RunOptions,
        key: &ClusterKey,
        observer: &Arc<dyn Observer>,
        progress: &Arc<dyn ClusterRunObserver>,
    ) -> Result<Self, LeadError> {
        let folder = folder(&options, &setup.plan)?;
        let signals = conductor::signals()?;
        let parts = PartSessions::watch(&setup, key);
        let conductor = ClusterRunCoordinator::new(
            &setup,
            parts,
            Arc::clone(observer),
            ClusterRunStage::Running,
            signals,
        );
        Ok(LiveClusterRun { setup, options, folder, conductor, progress: Arc::clone(progress) })
    }

    /// The run as all its machines know it.
    #[must_use]
    pub fn setup(&self) -> &RunSetup {
        &self.setup
    }

    /// Leaves the run to its machines: waits until each knows when it begins. The run folder is
    /// removed; a process that follows the run later makes its own.
    ///
    /// # Errors
    /// If a machine does not come to the beginning.
    pub fn detach(&mut self) -> Result<(), LeadError> {
        let known = self.conductor.until_all_know();
        self.folder.discard();
        known
    }

    /// Watches the run to its end, serves the control socket in the run folder, and gathers the
    /// results of all machines there.
    ///
    /// # Errors
    /// If the control socket cannot be opened, or the results of a machine cannot be fetched.
    pub fn finish(mut self) -> Result<RunReport, LeadError> {
        let (folder, options) = (&self.folder, &self.options);
        let former = folder.latest();
        // Not before: a run that does not begin must not take the place of the last one.
        if options.link_latest
            && let Err(error) = folder.link_latest()
        {
            self.progress.warn(&with_causes(&error));
        }
        self.conductor.until_over(folder)?;
        let gathered = self.conductor.fetch(folder)?;
        let report = gather(&self.setup.plan, options.terms(), folder, &gathered)?;
        if report.partial && options.link_latest {
            folder.unlink_latest(former.as_deref());
        }
        self.conductor.forget(folder, &*self.progress);
        Ok(report)
    }
}

/// Options for following a run that another process has begun.
#[must_use]
pub fn options_of(setup: &RunSetup, folder: PathBuf) -> RunOptions {
    RunOptions::with_shared(folder, setup.base_dir.clone(), &setup.plan_hash, &setup.shared)
}

/// Who begins a run, for the logs of the agents.
fn by() -> String {
    let names = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    let uid = || format!("uid {}", windtunnel_sys::process::current_user().uid);
    let user = names.into_iter().find(|name| !name.is_empty()).unwrap_or_else(uid);
    format!("{user}@{}", windtunnel_cluster::machine::name())
}

fn folder(options: &RunOptions, run: &Plan) -> Result<RunOutputFolder, LeadError> {
    let made = RunOutputFolder::create(&options.folder, run).and_then(|folder| {
        let plan = serde_json::to_vec_pretty(run).unwrap_or_default();
        folder.write("plan.json", &plan)?;
        folder.reserve_report(run)?;
        Ok(folder)
    });
    made.map_err(LeadError::Folder)
}

/// The machines that have nodes, and the member by node.
fn members(
    cards: &[AgentDescription],
    site: &PlacementHostSet,
    placement: &NodePlacement,
) -> (Vec<RunMember>, Vec<u16>) {
    let mut numbers = vec![None; cards.len()];
    let mut members = Vec::new();
    for (at, (card, host)) in cards.iter().zip(&site.hosts).enumerate() {
        if placement.nodes_on(at).next().is_some() {
            numbers[at] = u16::try_from(members.len()).ok();
            members.push(RunMember {
                agent: card.agent.clone(),
                host: host.name.clone(),
                address: card.address,
                has: has(&placement.loads[at]),
            });
        }
    }
    let places = placement.hosts.iter().map(|host| numbers[*host].unwrap_or(0));
    let places = places.collect();
    (members, places)
}

/// What the machine has less of for others.
fn has(load: &PlacedRunLoad) -> AllocatedResources {
    let bounded = |traffic| match traffic {
        UplinkTrafficBound::Bounded(bit_per_s) => bit_per_s,
        // It may fill the uplink, and then shares it with others as the network between the
        // machines does.
        UplinkTrafficBound::Unbounded { .. } => 0,
    };
    AllocatedResources {
        runs: 1,
        nodes: load.nodes,
        cpu_millis: load.cpu_millis,
        memory: load.memory,
        up_bit_per_s: bounded(load.up),
        down_bit_per_s: bounded(load.down),
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::Bytes;

    use super::*;
    use crate::sample::{card, plan};

    #[test]
    fn only_machines_with_nodes_are_members_and_places_count_them() {
        let cards = [card("a", 1), card("b", 2), card("c", 3)];
        let site = PlacementHostSet::of(&cards);
        let plan = plan("nodes: {x: {pin: c}, y: {pin: a}, z: {pin: c}}\n");
        let placement = site.place(&plan).unwrap();
        let (members, places) = members(&cards, &site, &placement);
        let names: Vec<_> =
            members.iter().map(|it| (it.host.as_str(), it.agent.as_str())).collect();
        assert_eq!(names, [("a", "a-1"), ("c", "c-3")]);
        assert_eq!((places, members[1].address), (vec![1, 0, 1], cards[2].address));
        assert_eq!((members[0].has.nodes, members[1].has.nodes), (1, 2));
        assert_eq!((members[0].has.runs, members[1].has.runs), (1, 1));
    }

    #[test]
    fn members_of_one_name_are_called_by_their_addresses() {
        let cards = [card("box", 1), card("box", 2)];
        let site = PlacementHostSet::of(&cards);
        let plan = plan("nodes: {x: {pin: \"box@10.0.0.2:7447\"}}\n");
        let placement = site.place(&plan).unwrap();
        let (members, places) = members(&cards, &site, &placement);
        assert_eq!((members.len(), places), (1, vec![0]));
        assert_eq!(members[0].host, "box@10.0.0.2:7447");
    }

    #[test]
    fn traffic_without_a_bound_takes_nothing_from_other_runs() {
        let load = PlacedRunLoad {
            nodes: 2,
            cpu_millis: 3,
            memory: Bytes(4),
            up: UplinkTrafficBound::Bounded(5),
            down: UplinkTrafficBound::Unbounded { nodes: 1 },
        };
        let expected = AllocatedResources {
            runs: 1,
            nodes: 2,
            cpu_millis: 3,
            memory: Bytes(4),
            up_bit_per_s: 5,
            down_bit_per_s: 0,
        };
        assert_eq!(has(&load), expected);
    }

    #[test]
    fn a_follower_has_the_options_of_the_run_and_a_folder_of_its_own() {
        let mut setup = crate::tests::setup();
        setup.shared.output_limit = Bytes(77);
        setup.plan_hash = "f".repeat(64);
        let options = options_of(&setup, "/tmp/mine".into());
        assert_eq!((options.output_limit, options.plan_hash.len()), (Bytes(77), 64));
        assert_eq!((options.folder, options.base_dir), ("/tmp/mine".into(), "/".into()));
    }
}
