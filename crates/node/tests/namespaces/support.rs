//! Plans, node sets and programs for the cases.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use windtunnel_model::id::{LinkDirection, LinkId, NetworkVertex, PortId, RouterId};
use windtunnel_model::plan::{
    self, Link, LinkEnd, NodeInterface, ProgramUser, Router, RouterInterface,
};
use windtunnel_model::{LinkProfile, NodeId, Plan};
use windtunnel_node::{
    CreateError, ExitStatus, Namespaces, NodeInitReply, NodeInitRequest, NodeSet, NodeSetOptions,
    ProgramSpawnRequest, RunningNode, create, enter_for,
};
use windtunnel_routing::Routes;
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::schedule;

/// A folder for all users that goes away with the value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let unique = format!("windtunnel-node-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(unique);
        fs::create_dir_all(&path).expect("temporary folders can be made");
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, open).expect("the folder is ours");
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed does not fail a case.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A node_set of a case, its plan and its folder.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) node_set: NodeSet,
    pub(crate) namespaces: Namespaces,
    /// Removed when the world ends, unless it is killed.
    pub(crate) folder: Folder,
}

impl World {
    pub(crate) fn new(plan: Plan) -> World {
        World::try_new(plan).unwrap_or_else(|error| panic!("{error}: {:?}", error.hint()))
    }

    pub(crate) fn try_new(plan: Plan) -> Result<World, CreateError> {
        let world = World::try_with(plan, |_, _| ())?;
        assert_eq!(world.node_set.notes(), [""; 0], "nothing is amiss");
        Ok(world)
    }

    /// A world with something special about it.
    pub(crate) fn with(plan: Plan, change: impl FnOnce(&mut NodeSetOptions, &Namespaces)) -> World {
        World::try_with(plan, change).unwrap_or_else(|error| panic!("{error}: {:?}", error.hint()))
    }

    fn try_with(
        plan: Plan,
        change: impl FnOnce(&mut NodeSetOptions, &Namespaces),
    ) -> Result<World, CreateError> {
        let folder = Folder::new("run");
        let namespaces = enter_for(&plan).expect("was tried before");
        let routes = Routes::compute(&plan);
        let mut options = NodeSetOptions::new(folder.path().into());
        // The tests may be run by nice(1), and only the machine's root may be less nice again.
        options.nice = schedule::nice().expect("every process has one");
        change(&mut options, &namespaces);
        let node_set = create(&plan, &routes, &namespaces, &options, |_, _| ())?;
        Ok(World { plan, node_set, namespaces, folder })
    }

    pub(crate) fn node(&self, name: &str) -> &RunningNode {
        let id = self.plan.node_named(name).expect("the plan has it");
        self.node_set.node(id).expect("all nodes are here")
    }

    /// Runs a shell command in a node to its end: what it wrote, and how it ended.
    pub(crate) fn shell(&self, node: &str, command: &str) -> (String, ExitStatus) {
        let node = self.node(node);
        let output = start(node, 1, &["sh", "-c", command]);
        let text = read_to_end(output);
        let exit = loop {
            if let NodeInitReply::Exited { id: 1, status } = next(node) {
                break status;
            }
        };
        (text, exit)
    }

    /// The output of a command that succeeds.
    pub(crate) fn output(&self, node: &str, command: &str) -> String {
        let (text, status) = self.shell(node, command);
        assert_eq!(status, ExitStatus::Code(0), "{command}: {text}");
        text
    }
}

/// Starts a program and returns the reading end of its output and errors.
pub(crate) fn start(node: &RunningNode, id: u64, argv: &[&str]) -> OwnedFd {
    let spawn = spawn(id, argv);
    let (reader, writer) = std::io::pipe().expect("a pipe can be made");
    let input = File::open("/dev/null").expect("every machine has it");
    let fds = [input.as_fd(), writer.as_fd(), writer.as_fd()];
    node.send(&NodeInitRequest::Spawn(spawn), &fds).expect("the node lives");
    reader.into()
}

pub(crate) fn spawn(id: u64, argv: &[&str]) -> ProgramSpawnRequest {
    let argv = argv.iter().map(|word| (*word).to_string()).collect();
    ProgramSpawnRequest {
        id,
        argv,
        env: BTreeMap::new(),
        cwd: None,
        terminal: false,
        program: None,
    }
}

/// The next reply, which must come.
pub(crate) fn next(node: &RunningNode) -> NodeInitReply {
    poll::wait(&mut [PollFd::new(node, PollFlags::IN)], Some(PATIENCE)).expect("poll works");
    node.recv().expect("the node lives").expect("a reply within the time")
}

pub(crate) fn read_to_end(descriptor: OwnedFd) -> String {
    let mut text = String::new();
    File::from(descriptor).read_to_string(&mut text).expect("output is text");
    text
}

/// Nodes on one router, each by a link of its own: 10.0.0.1 and fd00::1 for the first, and so on;
/// the router's ends have 10.1 and fd01.
pub(crate) fn star(names: &[&str]) -> Plan {
    let links = names.iter().enumerate().map(|(position, name)| {
        let ends = [end(NetworkVertex::Node(NodeId::from_index(position)), 0), end(HUB, position)];
        link(format!("{name}--hub"), ends)
    });
    let nodes = names.iter().enumerate().map(|(position, name)| {
        node(name, vec![interface(position, 0, position, LinkDirection::Up)])
    });
    let ends = (0..names.len()).map(|position| RouterInterface {
        link: LinkId::from_index(position),
        outward: LinkDirection::Down,
        v4: Some(v4(1, position)),
        v6: Some(v6(1, position)),
    });
    let hub = Router { name: "hub".into(), interfaces: ends.collect() };
    plan(nodes.collect(), vec![hub], links.collect())
}

/// Nodes in a row, joined directly.
pub(crate) fn row(names: &[&str]) -> Plan {
    let last = names.len() - 1;
    let mut port = 0;
    let mut nodes = Vec::new();
    for (position, name) in names.iter().enumerate() {
        let mut interfaces = Vec::new();
        let sides = [
            (position > 0).then(|| (position - 1, LinkDirection::Down)),
            (position < last).then_some((position, LinkDirection::Up)),
        ];
        for (link, outward) in sides.into_iter().flatten() {
            interfaces.push(interface(port, interfaces.len(), link, outward));
            port += 1;
        }
        nodes.push(node(name, interfaces));
    }
    let links = (0..last).map(|position| {
        let at = |position| NetworkVertex::Node(NodeId::from_index(position));
        let ends = [end(at(position), usize::from(position > 0)), end(at(position + 1), 0)];
        link(format!("{}--{}", names[position], names[position + 1]), ends)
    });
    plan(nodes, vec![], links.collect())
}

fn plan(nodes: Vec<plan::Node>, routers: Vec<Router>, links: Vec<Link>) -> Plan {
    Plan { nodes, routers, links, ..Plan::default() }
}

fn node(name: &str, interfaces: Vec<NodeInterface>) -> plan::Node {
    plan::Node {
        name: name.into(),
        group: name.into(),
        aliases: Vec::new(),
        forward: false,
        user: ProgramUser::Invoker,
        private: false,
        results: false,
        root: None,
        sysctl: BTreeMap::new(),
        pin: None,
        demand: Default::default(),
        reservation: None,
        receive_queue: None,
        internet: None,
        publish: Vec::new(),
        interfaces,
        programs: vec![],
    }
}

fn interface(port: usize, position: usize, link: usize, outward: LinkDirection) -> NodeInterface {
    NodeInterface {
        port: PortId::from_index(port),
        name: format!("eth{position}"),
        link: LinkId::from_index(link),
        outward,
        v4: Some(v4(0, port)),
        v6: Some(v6(0, port)),
        mtu: 1400,
    }
}

fn link(name: String, ends: [LinkEnd; 2]) -> Link {
    Link { name, ends, profiles: [LinkProfile::default(), LinkProfile::default()] }
}

fn end(vertex: NetworkVertex, interface: usize) -> LinkEnd {
    LinkEnd { vertex, interface: u32::try_from(interface).expect("small") }
}

fn v4(net: u8, position: usize) -> Ipv4Addr {
    let host = u16::try_from(position + 1).expect("small").to_be_bytes();
    Ipv4Addr::new(10, net, host[0], host[1])
}

fn v6(net: u16, position: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00 + net, 0, 0, 0, 0, 0, 0, u16::try_from(position + 1).expect("small"))
}

/// The address of a node's first interface.
pub(crate) fn address(plan: &Plan, node: &str, v6: bool) -> IpAddr {
    let node = &plan.nodes[plan.node_named(node).expect("the plan has it").index()];
    let mut addresses = node.interfaces[0].addresses();
    addresses.find(|address| address.is_ipv6() == v6).expect("it has both")
}

const HUB: NetworkVertex = NetworkVertex::Router(RouterId(0));

/// Nothing here takes long; what takes longer than this does not come.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);
