//! Kollaps' keys.

use super::{Case, case};

pub(super) fn cases() -> Vec<Case> {
    [links(), services(), changes(), events()].into_iter().flatten().collect()
}

fn row(key: &'static str, carried: &'static str, file: String, figure: &'static str) -> Case {
    case("Kollaps", key, carried, file, figure)
}

/// Two services, a bridge, and what else is said.
fn experiment(head: &str, services: &str, links: &str, schedule: &str) -> String {
    format!(
        "<experiment {head}><services><service name='a' image='one'/><service name='b' image='two'/>\
         {services}</services><bridges><bridge name='s'/></bridges><links>{links}</links>\
         <dynamic>{schedule}</dynamic></experiment>"
    )
}

/// Both rates of a link.
const BOTH: &str = "upload='10Mbps' download='60Mbps'";

/// A link of a service and the bridge.
fn two() -> String {
    format!("<link origin='a' dest='s' latency='5' {BOTH}/>")
}

fn link(rest: &str) -> String {
    experiment("", "", &format!("<link origin='a' dest='b' latency='50' {rest}/>"), "")
}

fn scheduled(schedule: &str) -> String {
    experiment("", "", &two(), schedule)
}

fn links() -> Vec<Case> {
    vec![
        row("`latency`", "exact", link(BOTH), "latency: 50ms"),
        // 50 ms less 2.9864 deviations of 10 ms; the median is the latency.
        row(
            "`jitter`",
            "approximated",
            link(&format!("jitter='10' {BOTH}")),
            "latency: 20.136ms, jitter: {table: [0ns, 6.601ms,  … , 29.864ms,  … , reorder: jitter",
        ),
        row("`drop`", "exact", link(&format!("drop='0.02' {BOTH}")), "loss: 2%"),
        row(
            "`upload`, `download`",
            "exact",
            link(BOTH),
            "up: {rate: 10mbit}, down: {rate: 60mbit}",
        ),
        row(
            "`upload` without `download`",
            "exact",
            experiment(
                "",
                "",
                "<link origin='a' dest='b' latency='5' upload='1Mbps'/>\
                 <link origin='b' dest='a' latency='7' upload='2Mbps'/>",
                "",
            ),
            "- {between: [a, b], name: a-b, overhead: 14B, up: {latency: 5ms, rate: 1mbit}, down: {latency: 7ms, rate: 2mbit}}",
        ),
        row(
            "a link without one back",
            "not carried",
            link("upload='1Mbps'"),
            "one way only … a--b",
        ),
    ]
}

fn services() -> Vec<Case> {
    vec![
        row(
            "`replicas`, `reuse`",
            "exact",
            experiment(
                "",
                "<service name='c' image='i' reuse='false'/>",
                &two(),
                "<schedule name='c' time='0' action='join' amount='2'/>\
                 <schedule name='c' time='1' action='leave' amount='1'/>\
                 <schedule name='c' time='2' action='join' amount='1'/>",
            ),
            "c: {count: 3",
        ),
        row(
            "`share`",
            "exact",
            experiment(
                "",
                "<service name='c' image='i' replicas='2' share='true'/>",
                &format!("<link origin='c' dest='s' latency='7' {BOTH}/>"),
                "",
            ),
            "between: [c, c-shared], overhead: 14B, up: {rate: 10mbit}, down: {rate: 60mbit} … between: [c-shared, s]",
        ),
        row("`shortest_path`", "exact", scheduled(""), "routing: hops"),
        row(
            "`image`, `command`",
            "not carried",
            scheduled(""),
            "Images and commands are not run: a (one)",
        ),
        row(
            "`supervisor`",
            "not carried",
            experiment("", "<service name='d' image='i' supervisor='true'/>", &two(), ""),
            "Supervisors, such as the dashboard: d",
        ),
        row(
            "`boot`, `network`, `port`, `activepaths`, `pool_period`, `max_age`",
            "description",
            experiment(
                "boot='x'",
                "<service name='c' image='i' port='1' activepaths=\"['a']\"/>",
                &two().replace("/>", " network='n'/>"),
                "",
            )
            .replace(
                "<services>",
                "<config><p pool_period='0.05' max_age='2'/></config><services>",
            ),
            "boot, pool_period, max_age, port, activepaths, network",
        ),
    ]
}

fn changes() -> Vec<Case> {
    vec![
        row(
            "schedule: `latency`, `jitter`, `drop`, `upload`",
            "exact",
            scheduled(
                "<schedule origin='a' dest='s' time='9' latency='10' drop='0.1' upload='5Mbps'/>",
            ),
            "- {at: 9s, link: a-s, direction: up, set: {latency: 10ms, loss: 10%, rate: 5mbit}} … reroute",
        ),
        // The way back from 60 to 5 Mbit/s, as the way there.
        row(
            "schedule: `download`",
            "exact",
            scheduled("<schedule origin='a' dest='s' time='35' upload='5Mbps' download='5Mbps'/>"),
            "- {at: 35s, link: a-s, set: {rate: 5mbit}}",
        ),
        row(
            "schedule: `join`, `leave` of a link or a bridge",
            "exact",
            scheduled(
                "<schedule origin='s' dest='a' time='1' action='leave'/>\
                 <schedule origin='s' dest='a' time='2' action='join'/>\
                 <schedule name='s' time='3' action='leave'/>",
            ),
            "{at: 1s, link: a-s, direction: down, down: true} … {at: 2s, link: a-s, direction: down, up: true} … \
             {at: 3s, link: a-s, down: true}",
        ),
    ]
}

fn events() -> Vec<Case> {
    vec![
        row(
            "schedule: `disconnect`, `reconnect`",
            "exact",
            scheduled(
                "<schedule name='a' time='1' action='disconnect'/><schedule name='a' time='2' action='reconnect'/>",
            ),
            "{at: 1s, link: a-s, down: true} … {at: 2s, link: a-s, up: true}",
        ),
        row(
            "schedule: `join`, `leave`, `crash` of a service",
            "approximated",
            scheduled(
                "<schedule name='a' time='3' action='join'/><schedule name='a' time='4' action='crash'/>\
                 <schedule name='a' time='5' action='join'/><schedule name='a' time='6' action='leave'/>",
            ),
            "start: 3s … {at: 4s, node: a, do: kill} … {at: 5s, node: a, do: restart} … {at: 6s, node: a, do: stop}",
        ),
        row(
            "schedule: `amount` of fewer than all replicas",
            "not carried",
            experiment(
                "",
                "<service name='c' image='i' replicas='3'/>",
                &two(),
                "<schedule name='c' time='4' action='crash' amount='2'/>",
            ),
            "only some replicas are meant: crash of c at 4s",
        ),
        row(
            "schedule: a link that joins later",
            "not carried",
            scheduled(
                "<schedule origin='b' dest='s' time='4' action='join' latency='1' upload='1Mbps'/>",
            ),
            "Links that join later: b--s at 4s",
        ),
    ]
}
