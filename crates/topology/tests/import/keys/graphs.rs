//! Keys of graphs: Shadow's, ModelNet's, and those of places.

use super::{Case, case};

pub(super) fn cases() -> Vec<Case> {
    [shadow(), modelnet(), properties(), edges()].into_iter().flatten().collect()
}

fn shadow() -> Vec<Case> {
    let graph = |head: &str, node: &str, edges: &str| {
        let place = |id: u8, rest: &str| {
            format!(
                "node [ id {id} host_bandwidth_up \"5 Mbit\" host_bandwidth_down \"20 Mbit\" {rest} ]"
            )
        };
        format!("graph [ {head} {} {} {edges} ]", place(0, node), place(1, ""))
    };
    let edge =
        |rest: &str| graph("", "", &format!("edge [ source 0 target 1 latency \"50 ms\" {rest} ]"));
    let one = "graph [ node [ id 0 host_bandwidth_up \"5 Mbit\" host_bandwidth_down \"5 Mbit\" ] \
               edge [ source 0 target 0 latency \"10 ms\" packet_loss 0.0 ] ]";
    let tool = "Shadow";
    let case = |key, carried, file: String, figure| case(tool, key, carried, file, figure);
    vec![
        case("`latency`", "exact", edge(""), "{between: [net-0, net-1], latency: 50ms}"),
        case("`jitter`", "approximated", edge("jitter \"10 ms\""), "latency: 40ms, jitter: 20ms}"),
        case("`packet_loss`", "exact", edge("packet_loss 0.01"), "loss: 1%"),
        case(
            "`host_bandwidth_up`, `host_bandwidth_down`",
            "exact",
            edge(""),
            "{between: [net-0-host, net-0], overhead: none, up: {rate: 5mbit}, down: {rate: 20mbit}}",
        ),
        case(
            "`directed`",
            "exact",
            graph(
                "directed 1",
                "",
                "edge [ source 0 target 1 latency \"5 ms\" ] edge [ source 1 target 0 latency \"6 ms\" ]",
            ),
            "{between: [net-0, net-1], up: {latency: 5ms}, down: {latency: 6ms}}",
        ),
        case(
            "an edge without one back",
            "not carried",
            graph("directed 1", "", "edge [ source 0 target 1 latency \"5 ms\" ]"),
            "one way only … net-0--net-1",
        ),
        case(
            "an edge to itself",
            "exact",
            one.to_owned(),
            "rate: 5mbit, overhead: none, up: {latency: 10ms}",
        ),
        case(
            "an edge to itself, of several hosts",
            "not carried",
            graph(
                "",
                "",
                "edge [ source 0 target 1 latency \"5 ms\" ] edge [ source 0 target 0 latency \"1 ms\" ]",
            ),
            "net-0 (1ms)",
        ),
        case(
            "`ip_address`",
            "not carried",
            graph("", "ip_address \"11.0.0.1\"", "edge [ source 0 target 1 latency \"5 ms\" ]"),
            "Addresses",
        ),
        case(
            "`country_code`, `city_code`",
            "description",
            graph(
                "",
                "country_code \"BE\" city_code \"BRU\"",
                "edge [ source 0 target 1 latency \"5 ms\" ]",
            ),
            "city_code, country_code",
        ),
    ]
}

fn modelnet() -> Vec<Case> {
    let net = |edge: &str, more: &str| {
        format!(
            "<topology><vertices><vertex int_idx='1' role='virtnode' int_vn='0'/><vertex int_idx='2' role='gateway'/>\
             </vertices><edges><edge int_src='1' int_dst='2' {edge}/>{more}</edges>\
             <specs><fast dbl_kbps='1024' int_delayms='30'/></specs></topology>"
        )
    };
    let tool = "ModelNet";
    let case = |key, carried, file: String, figure| case(tool, key, carried, file, figure);
    vec![
        case(
            "`int_delayms`, `dbl_delayms`",
            "exact",
            net("int_delayms='100.5'", ""),
            "latency: 100.5ms",
        ),
        case("`dbl_kbps`", "exact", net("dbl_kbps='64'", ""), "rate: 64kbit"),
        case("`dbl_plr`", "exact", net("dbl_plr='0.001'", ""), "loss: 0.1%"),
        case("`int_qlen`", "exact", net("dbl_kbps='64' int_qlen='20'", ""), "queue: 20p"),
        case(
            "`specs`",
            "exact",
            net("specs='fast' int_delayms='5'", ""),
            "latency: 5ms, rate: 1.024mbit",
        ),
        case("`role`", "exact", net("", ""), "nodes:\n  n-1: {}\nrouters:\n  [g-2]"),
        case(
            "two edges",
            "exact",
            net("int_delayms='5'", "<edge int_src='2' int_dst='1' int_delayms='6'/>"),
            "{between: [n-1, g-2], up: {latency: 5ms}, down: {latency: 6ms}}",
        ),
        case(
            "an edge to itself",
            "not carried",
            net("", "<edge int_src='2' int_dst='2'/>"),
            "itself: g-2",
        ),
        case(
            "`int_len`, `int_vn`",
            "description",
            net("int_len='7'", ""),
            "Attributes: int_vn, int_len",
        ),
    ]
}

fn place(key: &'static str, carried: &'static str, file: String, figure: &'static str) -> Case {
    case("Topology Zoo, NetworkX and CSV", key, carried, file, figure)
}

fn graph(head: &str, node: &str, edges: &str) -> String {
    format!("graph [ {head} node [ id 0 label \"a\" {node} ] node [ id 1 label \"b\" ] {edges} ]")
}

fn edge(rest: &str) -> String {
    graph("", "", &format!("edge [ source 0 target 1 {rest} ]"))
}

fn properties() -> Vec<Case> {
    vec![
        place("`latency`, `delay`", "exact", edge("delay 7"), "{between: [a, b], latency: 7ms}"),
        // A quarter of the equator: 10 007.557 km at 199 861.639 km/s.
        place(
            "`Latitude`, `Longitude`",
            "approximated",
            "graph [ node [ id 0 label \"a\" Latitude 0.0 Longitude 0.0 ] \
             node [ id 1 label \"b\" Latitude 0.0 Longitude 90.0 ] edge [ source 0 target 1 ] ]"
                .to_owned(),
            "latency: 50.072ms",
        ),
        place("`LinkSpeedRaw`", "exact", edge("LinkSpeedRaw 155000000"), "rate: 155mbit"),
        place(
            "`LinkSpeed`, `LinkSpeedUnits`",
            "exact",
            edge("LinkSpeed \"2.5\" LinkSpeedUnits \"G\""),
            "rate: 2.5gbit",
        ),
        place("`LinkLabel`", "approximated", edge("LinkLabel \"34 Mbps\""), "rate: 34mbit"),
        place(
            "`bandwidth`, `weight` with a unit",
            "exact",
            edge("bandwidth \"100 Mbps\" weight \"5 ms\""),
            "latency: 5ms, rate: 100mbit",
        ),
        place(
            "`bandwidth`, `weight` without a unit",
            "not carried",
            edge("bandwidth 100 weight 3"),
            "bandwidth (1 edge), weight (1 edge)",
        ),
        place(
            "a second rate or latency",
            "not carried",
            edge("bandwidth_mbps 100 capacity_mbps 50"),
            "for which another attribute was read: capacity_mbps (1 edge)",
        ),
    ]
}

fn edges() -> Vec<Case> {
    vec![
        place(
            "`directed`",
            "exact",
            graph(
                "directed 1",
                "",
                "edge [ source 0 target 1 delay 5 ] edge [ source 1 target 0 delay 6 ]",
            ),
            "{between: [a, b], up: {latency: 5ms}, down: {latency: 6ms}}",
        ),
        place(
            "an edge without one back",
            "not carried",
            graph("directed 1", "", "edge [ source 0 target 1 delay 5 ]"),
            "one way only … a--b",
        ),
        place(
            "rows `a,b` and `b,a`",
            "exact",
            "from,to,delay_ms,rate_mbps\na,b,5,10\nb,a,6,20\nb,c,1,1\n".to_owned(),
            "{between: [a, b], up: {latency: 5ms, rate: 10mbit}, down: {latency: 6ms, rate: 20mbit}} … \
             {between: [b, c], latency: 1ms, rate: 1mbit}",
        ),
        place(
            "an edge to itself",
            "not carried",
            graph("", "", "edge [ source 0 target 1 ] edge [ source 0 target 0 ]"),
            "itself: a",
        ),
        place(
            "`hyperedge`",
            "exact",
            graph("", "hyperedge 1", "edge [ source 0 target 1 ]"),
            "nodes:\n  b-host: {}\n",
        ),
        place(
            "`Country`, `Internal`",
            "description",
            graph("", "Country \"BE\" Internal 1", "edge [ source 0 target 1 ]"),
            "Country (1 node), Internal (1 node)",
        ),
    ]
}
