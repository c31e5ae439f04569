//! Edges that go one way each, in all formats, and what surrounds a latency.

use windtunnel_model::Span;
use windtunnel_topology::{LinkDirectionProperties, TopologyFormat, TopologyLink};

use super::{items, read, refused};

/// Ends, with latency and rate there and back.
fn seen(links: &[TopologyLink]) -> Vec<String> {
    let way = |way: &LinkDirectionProperties| match way.rate {
        Some(rate) => format!("{} {rate}", way.latency),
        None => way.latency.to_string(),
    };
    let one = |link: &TopologyLink| {
        format!("{}: {}, back {}", link.between.join("--"), way(&link.up), way(&link.down))
    };
    links.iter().map(one).collect()
}

#[test]
fn links_of_kollaps_that_go_one_way_each_are_one_link() {
    let text = "<experiment><services><service name='a' image='i'/><service name='b' image='i'/></services>\
                <links><link origin='a' dest='b' latency='40' upload='100Mbps'/>\
                <link origin='b' dest='a' latency='45' upload='20Mbps'/></links>\
                <dynamic><schedule origin='b' dest='a' time='9' upload='5Mbps'/></dynamic></experiment>";
    let topology = read(text, TopologyFormat::Kollaps);
    assert_eq!(seen(&topology.links), ["a--b: 40ms 100mbit, back 45ms 20mbit"]);
    assert!(!topology.notes.lost.iter().any(|note| note.text.contains("one way")));
    assert!(
        topology.to_yaml().contains("{at: 9s, link: a-b, direction: down, set: {rate: 5mbit}}")
    );
}

#[test]
fn a_change_of_a_link_that_goes_one_way_in_kollaps_changes_both_ways_that_stand_for_it() {
    let link = "<link origin='a' dest='b' latency='4' upload='8Mbps'/>";
    let text = format!(
        "<experiment><services><service name='a' image='i'/><service name='b' image='i'/></services>\
         <links>{link}</links><dynamic><schedule origin='a' dest='b' time='1' upload='5Mbps'/>\
         <schedule origin='b' dest='a' time='2' upload='6Mbps'/></dynamic></experiment>"
    );
    let topology = read(&text, TopologyFormat::Kollaps);
    assert!(topology.to_yaml().contains("{at: 1s, link: a-b, set: {rate: 5mbit}}"));
    let lost = items(&topology.notes.lost, "Changes of a direction that the file has no link for");
    assert_eq!(lost, ["b--a at 2s"]);
}

/// 60 Mbit/s both ways, then 5 as Kollaps' own example asks; only `download` changes something.
#[test]
fn a_schedule_of_kollaps_changes_the_way_back_as_well() {
    let text = |change: &str| {
        format!(
            "<experiment><services><service name='a' image='i'/><service name='b' image='i'/></services><links>\
             <link origin='a' dest='b' latency='10' upload='60Mbps' download='60Mbps'/></links>\
             <dynamic><schedule origin='a' dest='b' time='35.0' {change}/></dynamic></experiment>"
        )
    };
    let changed = |change: &str| read(&text(change), TopologyFormat::Kollaps).to_yaml();
    assert!(changed("upload='5Mbps' download='5Mbps'").contains("link: a-b, set: {rate: 5mbit}}"));
    assert!(
        changed("download='5Mbps'").contains("link: a-b, direction: down, set: {rate: 5mbit}}")
    );
    // The latency is that of both ways where both are named, and else of the one.
    let both = changed("latency='20' upload='5Mbps' download='6Mbps'");
    assert!(both.contains("direction: up, set: {latency: 20ms, rate: 5mbit}}"), "{both}");
    assert!(both.contains("direction: down, set: {latency: 20ms, rate: 6mbit}}"), "{both}");
    assert!(changed("latency='20'").contains("direction: up, set: {latency: 20ms}}"));
    assert!(refused(&text("")).ends_with("this <schedule> changes nothing"));
}

#[test]
fn rows_of_csv_that_name_the_same_ends_are_one_link_and_others_stay_parallel() {
    let text = "source,target,latency,bandwidth_mbps\n\
                a,b,5,100\nb,a,7,20\nb,c,1,10\nb,c,2,10\nc,b,3,30\n";
    let topology = read(text, TopologyFormat::Csv);
    let links = &topology.links[..3];
    let expected = [
        "a--b: 5ms 100mbit, back 7ms 20mbit",
        "b--c: 1ms 10mbit, back 3ms 30mbit",
        // The third row between them has no fourth.
        "b--c: 2ms 10mbit, back 2ms 10mbit",
    ];
    assert_eq!(seen(links), expected);
    assert_eq!(items(&topology.notes.assumed, "Two rows that name"), ["a--b", "b--c"]);
    assert_eq!(items(&topology.notes.lost, "Links that go one way only"), ["b--c"]);
}

#[test]
fn the_same_jitter_is_the_same_delay_in_every_format() {
    let shadow = "graph [ node [ id 0 host_bandwidth_up \"1 Gbit\" ] node [ id 1 ] \
                  edge [ source 0 target 1 latency \"50 ms\" jitter \"10 ms\" ] ]";
    let lab = "topology:\n  nodes: {a: {kind: linux}, b: {kind: linux}}\n  links:\n    \
               - {endpoints: [\"a:e\", \"b:e\"], delay: 50ms, jitter: 10ms, rate: 1000}\n";
    for (text, format) in [(shadow, TopologyFormat::Shadow), (lab, TopologyFormat::Containerlab)] {
        let way = &read(text, format).links[0].up;
        let delay = (way.latency, way.jitter.spread, way.reorders);
        assert_eq!(delay, (Span::from_millis(40), Span::from_millis(20), false), "{format:?}");
    }
    let small = lab.replace("50ms", "5ms");
    let notes = read(&small, TopologyFormat::Containerlab).notes;
    assert_eq!(items(&notes.assumed, "The jitter is so large"), ["a--b (5ms ± 10ms)"]);
}

#[test]
fn switches_of_containerlab_are_lans_and_a_second_cable_is_reported() {
    let text = "topology:\n  nodes: {a: {kind: linux}, b: {kind: linux}, s: {kind: bridge}, t: {kind: bridge}}\n  \
                links:\n    - {endpoints: [\"a:e1\", \"s:1\"], delay: 5ms}\n    - {endpoints: [\"a:e2\", \"s:2\"]}\n    \
                - {endpoints: [\"s:3\", \"t:1\"], loss: 1}\n    - {endpoints: [\"b:e1\", \"t:2\"]}\n";
    let topology = read(text, TopologyFormat::Containerlab);
    assert_eq!((topology.lans, topology.routers.len()), (vec!["s".to_owned()], 0));
    let expected = ["a--s: 5ms, back 5ms", "b--s: 0ns, back 0ns"];
    assert_eq!(seen(&topology.links), expected);
    assert_eq!(items(&topology.notes.lost, "Further links of a node"), ["a--s"]);
    assert_eq!(items(&topology.notes.lost, "Properties of links between switches"), ["s--t"]);
}

#[test]
fn a_configuration_of_shadow_is_not_taken_for_its_graph() {
    let text = "general:\n  stop_time: 10s\nnetwork:\n  graph:\n    type: gml\n    inline: |\n      graph [\n        \
                node [ id 0 host_bandwidth_up \"1 Gbit\" ]\n        edge [ source 0 target 0 latency \"1 ms\" ]\n      ]\n\
                hosts: {a: {network_node_id: 0}}\n";
    assert!(refused(text).contains("a configuration of Shadow"), "{}", refused(text));
    let other = text.replace("general:", "settings:").replace("hosts:", "machines:");
    assert!(refused(&other).contains("this is not a known format"), "{}", refused(&other));
}

#[test]
fn what_a_graph_has_beside_its_attributes_is_listed() {
    let gml = "Creator \"x\"\nscale 2\ngraph [ node [ id 0 latency 5 ] node [ id 1 ] \
               edge [ source 0 target 1 delay 5 delay 6 ] ]\ngraph [ ]\n";
    let notes = read(gml, TopologyFormat::Gml).notes;
    let parts = items(&notes.lost, "Parts of the file that are not read");
    assert_eq!(parts, ["1 more graphs", "`scale`", "a second `delay`"]);
    assert_eq!(items(&notes.lost, "Attributes whose meaning is not known"), ["latency (1 node)"]);
    let graphml = "<graphml><graph><node id='a'/><node id='b'><port name='p'/></node>\
                   <edge source='a' target='b' sourceport='p'><data key='d'><y:Line xmlns:y='u'/></data></edge>\
                   </graph></graphml>";
    let notes = read(graphml, TopologyFormat::GraphMl).notes;
    let parts = items(&notes.lost, "Parts of the file that are not read");
    assert_eq!(
        parts,
        ["<port> of <node>", "`sourceport` of <edge>", "elements in <data> of <edge>"]
    );
}
