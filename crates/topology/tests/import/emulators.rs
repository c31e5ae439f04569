//! Files of other emulators: Shadow, ModelNet, containerlab and Kollaps.

use windtunnel_model::{Rate, Span};
use windtunnel_topology::{ImportOptions, TopologyFormat};

use super::{
    KOLLAPS, LAB, MODELNET, PLACES, SHADOW, SWITCH, items, path, read, read_with, refused,
};
use crate::common::{assert_loads_as_it_says, load};

#[test]
fn shadows_hosts_have_the_bandwidths_of_their_node_and_edges_their_direction() {
    let topology = read(SHADOW, TopologyFormat::Shadow);
    let plan = load(&topology);
    // 100 Mbit up at net-0, 10 Mbit down at far, 50 ms between them; 60 ms back.
    // The jitter of 2 ms is around the 50 ms.
    assert_eq!(path(&plan, "net-0-host", "far-host"), ("48ms".to_owned(), Some(10_000_000), 3));
    assert_eq!(path(&plan, "far-host", "net-0-host").0, "60ms");
    let (up, down) = (&topology.links[0].up, &topology.links[0].down);
    assert_eq!((up.loss.to_string(), up.jitter.spread), ("1%".to_owned(), Span::from_millis(4)));
    assert!(down.loss.is_never());
    assert_eq!(items(&topology.notes.lost, "Edges that go one way only"), ["far--net-2"]);
    assert!(topology.notes.lost.iter().any(|note| note.text.starts_with("Addresses")));
}

#[test]
fn a_single_shadow_node_is_a_switch_whose_latency_counts_once() {
    let options = ImportOptions { hosts: Some(2), ..ImportOptions::default() };
    let (_, topology) = read_with(SWITCH, &options).unwrap();
    assert_loads_as_it_says(&topology);
    let plan = load(&topology);
    assert_eq!(
        path(&plan, "net-0-host-1", "net-0-host-2"),
        ("10ms".to_owned(), Some(1_000_000_000), 2)
    );
    assert!(topology.notes.lost.is_empty());
}

#[test]
fn modelnet_paths_are_those_of_the_published_vectors() {
    let topology = read(MODELNET, TopologyFormat::ModelNet);
    // Five hops: 100.5 + 30 + 40.25 + 30 + 30.25 = 231 ms, and the least rate is 1024 kbit/s. Two
    // more hops without properties lead from each node to its router.
    assert_eq!(path(&load(&topology), "n-1", "n-2"), ("231ms".to_owned(), Some(1_024_000), 5 + 2));
    // Through vertex 0 it is 200 + 120 = 320 ms at 64 kbit/s: what is left without the fast way.
    let lines = MODELNET.lines().filter(|line| !line.contains("\"fast\""));
    let slow = read(&lines.collect::<Vec<_>>().join("\n"), TopologyFormat::ModelNet);
    assert_eq!(path(&load(&slow), "n-1", "n-2"), ("320ms".to_owned(), Some(64_000), 2));
}

/// SPLAY's own networks have such edges: a vertex needs no link to itself.
#[test]
fn modelnet_edges_from_a_vertex_to_itself_are_dropped_and_reported() {
    let own = |index: &str| {
        format!("    <edge int_src=\"{index}\" int_dst=\"{index}\" specs=\"fast\" />\n")
    };
    // A router, a virtual node with two links, one twice, and a vertex that nothing else names.
    let edges: String = ["0", "1", "1", "99"].map(own).concat();
    let text = MODELNET.replace("  <edges>\n", &format!("  <edges>\n{edges}"));
    let (plain, topology) =
        (read(MODELNET, TopologyFormat::ModelNet), read(&text, TopologyFormat::ModelNet));
    assert_eq!(
        items(&topology.notes.lost, "Edges from a vertex to itself"),
        ["g-0", "n-1", "n-1", "99"]
    );
    assert_eq!((&topology.nodes, &topology.routers), (&plain.nodes, &plain.routers));
    assert_eq!((&topology.links, &topology.notes.assumed), (&plain.links, &plain.notes.assumed));
    let wrong = text.replace("int_dst=\"99\" specs=\"fast\"", "int_dst=\"99\" dbl_kbps=\"0\"");
    assert!(refused(&wrong).ends_with("`0` is not a rate in kbit/s of more than zero"));
}

#[test]
fn a_comment_or_blanks_may_stand_before_the_xml_declaration() {
    for before in ["<!-- made\nby hand -->", "\n  ", "\u{feff}<!-- a --> <!-- <?xml ?> -->\n"] {
        let topology = read(&format!("{before}{MODELNET}"), TopologyFormat::ModelNet);
        assert_eq!(topology.links, read(MODELNET, TopologyFormat::ModelNet).links, "{before:?}");
        let places = read(&format!("{before}{PLACES}"), TopologyFormat::GraphMl);
        assert_eq!(places.links, read(PLACES, TopologyFormat::GraphMl).links, "{before:?}");
    }
    // Places in the file are those of the file.
    let late = "<!-- a\n-->\n<?xml version='1.0'?><topology><vertices><vertex role='stub'/></vertices></topology>";
    assert_eq!(refused(late), "in/net.txt:3:42: this <vertex> has no `int_idx`");
    let inside = "<topology><?xml version='1.0'?></topology>";
    assert!(refused(inside).contains("this is not XML"), "{}", refused(inside));
}

#[test]
fn rates_count_what_the_tool_counts_for_each_packet() {
    // tc's HTB and netem count the frame with its header of 14 bytes: a packet of 1500 bytes takes
    // 1514 * 8 / 10^7 s at 10 Mbit/s, and TCP with timestamps gets 1448 of 1514 bytes, 9.564 Mbit/s.
    for (text, format) in [(KOLLAPS, TopologyFormat::Kollaps), (LAB, TopologyFormat::Containerlab)]
    {
        let plan = load(&read(text, format));
        let mut shaped = 0;
        for lane in plan.links.iter().flat_map(|link| &link.profiles) {
            let Some(rate) = lane.rate else { continue };
            shaped += 1;
            assert_eq!(lane.wire_packet() - u64::from(lane.mtu), 14, "{format:?}");
            let goodput = rate.bits_per_second() * (u64::from(lane.mtu) - 52) / lane.wire_packet();
            if (rate.bits_per_second(), lane.mtu) == (10_000_000, 1500) {
                assert_eq!(goodput, 9_564_068, "{format:?}");
            }
        }
        assert!(shaped > 0, "{format:?}");
    }
    // Shadow's packets have no link layer.
    let plan = load(&read(SHADOW, TopologyFormat::Shadow));
    let lanes = plan.links.iter().flat_map(|link| &link.profiles);
    let shaped: Vec<u64> = lanes
        .filter(|lane| lane.rate.is_some())
        .map(windtunnel_model::LinkProfile::wire_packet)
        .collect();
    assert!(!shaped.is_empty() && shaped.iter().all(|bytes| *bytes == 1500), "{shaped:?}");
    // What the edges of a graph mean is not known: Ethernet's whole framing, as everywhere.
    let plan = load(&read(MODELNET, TopologyFormat::ModelNet));
    let frame = plan.links[0].profiles[0].wire_packet();
    assert_eq!(frame, 1538);
}

#[test]
fn modelnet_edges_without_one_back_are_completed_and_reported() {
    let topology = read(MODELNET, TopologyFormat::ModelNet);
    let lonely = items(&topology.notes.assumed, "These edges have none back");
    assert_eq!(lonely.len(), 6);
    assert!(!lonely.contains(&"g-6--r-2"));
    let last = &topology.links[6];
    assert_eq!(last.between, ["g-6", "r-2"]);
    assert_eq!(last.down.latency, Span::from_millis(31));
    assert_eq!(last.up.queue.map(|queue| queue.to_string()).as_deref(), Some("20p"));
    assert_eq!(topology.links[4].up.loss.to_string(), "0.1%");
    assert_eq!(items(&topology.notes.assumed, "These vertices are not declared"), ["g-6"]);
    let attached = items(&topology.notes.assumed, "Paths may lead");
    assert_eq!(attached, ["n-1 (r-1)", "n-2 (r-2)"]);
}

#[test]
fn containers_become_nodes_and_network_systems_routers() {
    let topology = read(LAB, TopologyFormat::Containerlab);
    assert_eq!(topology.name, "lab");
    let nodes: Vec<_> =
        topology.nodes.iter().map(|node| (node.name.as_str(), node.forward)).collect();
    assert_eq!(nodes, [("h1", true), ("h2", true), ("frr", true)]);
    let routers: Vec<_> = topology.routers.iter().map(|router| router.name.as_str()).collect();
    assert_eq!((routers, &topology.lans), (vec!["spine-1"], &vec!["leaf".to_owned()]));
    assert_eq!(topology.links[0].up.mtu, Some(9000));
    let shaped = &topology.links[1].up;
    assert_eq!(shaped.latency, Span::from_millis(5));
    assert_eq!(shaped.loss.to_string(), "1%");
    assert_eq!(shaped.rate.map(Rate::bits_per_second), Some(10_000_000));
    assert_eq!(items(&topology.notes.lost, "Images"), ["spine-1 (srl)", "h1 (alpine)"]);
    assert_eq!(items(&topology.notes.lost, "Keys of nodes"), ["exec of h1"]);
    assert_eq!(items(&topology.notes.lost, "Links that leave"), ["line 22", "macvlan (line 23)"]);
    assert_eq!(items(&topology.notes.lost, "Keys of the file"), ["mgmt"]);
}

#[test]
fn a_container_without_a_kind_has_that_of_its_group_before_the_default() {
    let text = "
name: groups
topology:
  defaults: {kind: linux, group: hosts}
  groups:
    spines: {kind: nokia_srlinux, image: srl}
    hosts: {labels: {a: b}}
    empty:
  kinds: {linux: {image: alpine}}
  nodes:
    s1: {group: spines}
    s2: {group: spines, kind: bridge}
    h1:
    h2: {group: empty}
    h3: {group: elsewhere}
  links:
    - endpoints: [\"s1:e1\", \"h1:eth1\"]
    - endpoints: [\"s1:e2\", \"s2:e1\"]
    - endpoints: [\"s2:e2\", \"h2:eth1\"]
    - endpoints: [\"s2:e3\", \"h3:eth1\"]
";
    let topology = read(text, TopologyFormat::Containerlab);
    let nodes: Vec<_> = topology.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(nodes, ["h1", "h2", "h3"]);
    let routers: Vec<_> = topology.routers.iter().map(|router| router.name.as_str()).collect();
    assert_eq!((routers, &topology.lans), (vec!["s1"], &vec!["s2".to_owned()]));
    assert_eq!(items(&topology.notes.assumed, "Switches are LANs"), ["s2"]);
    assert_eq!(items(&topology.notes.assumed, "Nodes with a network"), ["s1 (nokia_srlinux)"]);
    let images = ["kinds.linux (alpine)", "groups.spines (srl)"];
    assert_eq!(items(&topology.notes.lost, "Images"), images);
    let none = "topology:\n  groups: {g: {}}\n  nodes: {a: {group: g}}\n";
    assert_eq!(refused(none), "in/net.txt:3:11: the node `a` has no `kind`");
}

#[test]
fn kollaps_services_become_groups_and_share_what_they_share() {
    let topology = read(KOLLAPS, TopologyFormat::Kollaps);
    let nodes: Vec<_> =
        topology.nodes.iter().map(|node| (node.name.as_str(), node.count)).collect();
    assert_eq!(nodes, [("client", Some(3)), ("server", None), ("peer", Some(2)), ("proxy", None)]);
    let plan = load(&topology);
    // By the fewest hops: 10, 20 less the least of the jitter (2.9864 · 1.5 ms), and 5 ms.
    let least = "30520.4us".to_owned();
    assert_eq!(path(&plan, "client-2", "server"), (least.clone(), Some(10_000_000), 3));
    assert_eq!(path(&plan, "server", "client-2"), (least, Some(50_000_000), 3));
    // By the least latency it is shorter through the proxy: 10 + 1 + 2 + 5 ms.
    let config = "<config><routing shortest_path=\"latency\"/></config><services>";
    let plan = load(&read(&KOLLAPS.replacen("<services>", config, 1), TopologyFormat::Kollaps));
    assert_eq!(path(&plan, "client-2", "server"), ("18ms".to_owned(), Some(10_000_000), 4));
    // Both replicas meet at one router, behind which their link of 7 ms and 2 Mbit/s is one.
    assert_eq!(path(&plan, "peer-1", "server"), ("12ms".to_owned(), Some(2_000_000), 3));
    assert_eq!(path(&plan, "client-1", "proxy"), ("11ms".to_owned(), Some(10_000_000), 3));
    assert_eq!(items(&topology.notes.lost, "Supervisors"), ["dashboard"]);
    assert_eq!(items(&topology.notes.lost, "Images and commands").len(), 4);
    assert_eq!(items(&topology.notes.lost, "Links without `download`"), ["server--s2"]);
}

#[test]
fn the_schedule_of_kollaps_becomes_events_where_it_can() {
    let topology = read(KOLLAPS, TopologyFormat::Kollaps);
    let yaml = topology.to_yaml();
    let table = &yaml[yaml.find("{table: ").unwrap()..];
    let table = &table[..=table.find('}').unwrap()];
    let yaml = yaml.replace(table, "JITTER");
    let events: Vec<&str> =
        yaml.lines().filter(|line| line.contains("{at: ")).map(str::trim).collect();
    assert_eq!(
        events,
        [
            "- {at: 12.5s, link: s1-s2, direction: up, down: true}",
            "- {at: 12.5s, reroute: true}",
            "- {at: 15s, link: s1-s2, direction: up, up: true}",
            "- {at: 15s, reroute: true}",
            "- {at: 20s, link: s1-s2, direction: down, set: {latency: 25520.4us, jitter: JITTER, rate: 50mbit}}",
            "- {at: 20s, reroute: true}",
            "- {at: 25s, link: client-s1, down: true}",
            "- {at: 25s, reroute: true}",
            "- {at: 26s, link: client-s1, up: true}",
            "- {at: 26s, reroute: true}",
            "- {at: 30s, link: [s1-s2, server-s2, peer-s2, proxy-router-s2], down: true}",
            "- {at: 30s, reroute: true}",
        ]
    );
    let lost = items(&topology.notes.lost, "What services do");
    assert_eq!(lost, ["crash of server at 40s", "join of server at 50s", "leave of peer at 1min"]);
    let options = ImportOptions { run: Some("sleep 9".to_owned()), ..ImportOptions::default() };
    let (_, topology) = read_with(KOLLAPS, &options).unwrap();
    assert_loads_as_it_says(&topology);
    let yaml = topology.to_yaml();
    assert!(yaml.contains(
        "  - {at: 40s, node: server, do: kill}\n  - {at: 50s, node: server, do: restart}\n"
    ));
    let lost = items(&topology.notes.lost, "What services do");
    assert_eq!(lost, ["leave of peer at 1min"]);
}
