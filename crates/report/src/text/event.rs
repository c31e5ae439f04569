//! Events as text.

use windtunnel_model::word::ExpulsionCause;
use windtunnel_trace::event::{EventLogEntry, EventLogEntryKind, ServiceSetting, WhyRerouted};
use windtunnel_trace::moment;

use crate::text::quantity;

/// One line about an event: its time, its text, and for a planned event the intended time and the
/// lateness.
#[must_use]
pub fn text(event: &EventLogEntry) -> String {
    let line = format!("{}{}", at(event.at_ns), what(&event.what));
    match event.intended_ns {
        Some(intended) => {
            let late = quantity::nanos(event.at_ns.saturating_sub(intended));
            format!("{line} (due at {}s, {late} late)", moment::seconds(intended))
        }
        None => line,
    }
}

/// `[   5.000s] `.
#[must_use]
pub fn at(at_ns: u64) -> String {
    format!("[{:>8}s] ", moment::seconds(at_ns))
}

/// `a b c`, or some of them and how many more.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 8;
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => names.join(" "),
        Some(more) => format!("{} and {more} more", names[..SHOWN].join(" ")),
    }
}

/// A limit of a node that changed, or was met; or an event of another version, as it is written.
fn limit(what: &EventLogEntryKind) -> String {
    match what {
        EventLogEntryKind::CpuSet { node, cpus } => format!("{node}: cpu {:.1}%", cpus * 100.0),
        EventLogEntryKind::ShareSet { node, cpus, weight } => {
            let min = cpus.map(|cpus| format!(" min {:.1}%", cpus * 100.0)).unwrap_or_default();
            let weight = weight.map(|weight| format!(" weight {weight}")).unwrap_or_default();
            format!("{node}: cpu{min}{weight}")
        }
        EventLogEntryKind::LimitSet { node, limit, value } => format!("{node}: {limit} {value}"),
        EventLogEntryKind::LimitReached { .. } => reached(what),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

/// What has become of a replica of a service.
fn service(what: &EventLogEntryKind) -> String {
    match what {
        EventLogEntryKind::ServiceRegistered { service, replica, port, .. } => {
            format!("service {service}: {replica} listens on {port}")
        }
        EventLogEntryKind::ServiceWithdrawn { service, replica, port, .. } => {
            format!("service {service}: {replica} no longer listens on {port}")
        }
        EventLogEntryKind::ServiceLost { service, replica, .. } => {
            format!("service {service}: {replica} is lost")
        }
        EventLogEntryKind::ServiceHealth { service, replica, why, .. } => match why {
            Some(why) => format!("service {service}: {replica} is unhealthy: {why}"),
            None => format!("service {service}: {replica} is healthy again"),
        },
        EventLogEntryKind::ServiceSet { service, replica, set } => {
            let set = match set {
                ServiceSetting::Add => "is added".to_owned(),
                ServiceSetting::Remove => "is removed".to_owned(),
                ServiceSetting::Drain => "gets nothing new".to_owned(),
                ServiceSetting::Undrain => "gets new connections again".to_owned(),
                ServiceSetting::Weight(weight) => format!("has the weight {weight}"),
            };
            format!("service {service}: {replica} {set}")
        }
        EventLogEntryKind::Redirected { service, address, port, router, replica } => {
            format!("service {service}: {router} redirects {address} {port} to {replica}")
        }
        _ => transparent(what),
    }
}

/// What happened to connections that outlive their server.
fn transparent(what: &EventLogEntryKind) -> String {
    match what {
        EventLogEntryKind::ReplicaExpelled {
            service,
            client,
            replica,
            cause,
            offset,
            after_ns,
            left,
            ..
        } => {
            let after = quantity::nanos(*after_ns);
            let why = match (cause.known(), offset) {
                (Some(ExpulsionCause::Gone), _) => "its node is gone".to_owned(),
                (Some(ExpulsionCause::Silent), _) => format!("silent for {after}"),
                (Some(ExpulsionCause::Stalled), _) => format!("without progress for {after}"),
                (Some(ExpulsionCause::Differed), Some(offset)) => {
                    format!("it sent another byte {offset}")
                }
                (Some(ExpulsionCause::FinishedAlone), _) => {
                    "it finished where others go on".to_owned()
                }
                (Some(ExpulsionCause::Reset), _) => "it reset the connection".to_owned(),
                (Some(ExpulsionCause::Refused), _) => "it refused the connection".to_owned(),
                (Some(ExpulsionCause::NoAnswer), _) => "it did not answer in time".to_owned(),
                (Some(ExpulsionCause::Differed) | None, _) => cause.to_string(),
            };
            format!("service {service}: {client} goes on without {replica}, {left} left: {why}")
        }
        EventLogEntryKind::ReplicaPromoted { service, client, replica, .. } => {
            format!("service {service}: {client} is served by {replica}")
        }
        EventLogEntryKind::ConnectionResumed { service, client, silence_ns, .. } => {
            let silence = quantity::nanos(*silence_ns);
            format!("service {service}: {client} is answered again, after {silence}")
        }
        EventLogEntryKind::ConnectionLost { service, client, .. } => {
            format!("service {service}: {client} has no server any more")
        }
        EventLogEntryKind::ConnectionUnkept { service, client, .. } => {
            format!("service {service}: the table is full: {client} ends with its replica")
        }
        _ => String::new(),
    }
}

/// What programs met at a limit.
fn reached(what: &EventLogEntryKind) -> String {
    let EventLogEntryKind::LimitReached { node, program, limit, asked, ended, names } = what else {
        return String::new();
    };
    let of = match program {
        Some(program) => format!("{node}: program {program}"),
        None => node.clone(),
    };
    let names = if names.is_empty() { String::new() } else { format!(": {}", some(names)) };
    match ended {
        0 => format!("{of}: {limit} {asked} are used: no more can be made"),
        1 => format!("{of}: a process was ended, as {limit} {asked} is used{names}"),
        ended => format!("{of}: {ended} processes were ended, as {limit} {asked} is used{names}"),
    }
}

/// What happened, without its time.
#[must_use]
pub fn what(what: &EventLogEntryKind) -> String {
    match what {
        EventLogEntryKind::RunBegan => "the run begins".to_owned(),
        EventLogEntryKind::RunEnded { reason } => format!("the run ends: {reason}"),
        EventLogEntryKind::ProgramStarted { node, argv, .. } => {
            format!("{node}: started {}", words(argv))
        }
        EventLogEntryKind::ProgramFailed { node, message, .. } => format!("{node}: {message}"),
        EventLogEntryKind::ProgramAwaited { node, condition, .. } => {
            format!("waiting for {node}: {condition}")
        }
        EventLogEntryKind::ProgramReady { node, .. } => format!("{node}: ready"),
        EventLogEntryKind::ProgramExited { node, code, signal, .. } => match signal {
            Some(signal) => format!("{node}: ended by signal {signal}"),
            None => format!("{node}: exited with {code}"),
        },
        EventLogEntryKind::Node { node, verb } => format!("{node}: {verb}"),
        EventLogEntryKind::LinkSet { link, direction, set } => {
            format!("link {link} {direction}: {}", settings(set))
        }
        EventLogEntryKind::LinkState { link, direction, up } => {
            format!("link {link} {direction}: {}", if *up { "up" } else { "down" })
        }
        EventLogEntryKind::LinkFlap { link, direction, up } => {
            format!("link {link} {direction}: flap, {}", if *up { "up" } else { "down" })
        }
        EventLogEntryKind::Absent { nodes } => {
            format!("not there until they join: {}", some(nodes))
        }
        EventLogEntryKind::Partitioned { groups, pairs: true, .. } => {
            let pairs = groups.chunks(2);
            let pairs = pairs.map(|pair| pair.iter().map(|names| names.join(" ")));
            let pairs: Vec<String> =
                pairs.map(|pair| pair.collect::<Vec<_>>().join(" | ")).collect();
            format!("partition: {}", pairs.join(", "))
        }
        EventLogEntryKind::Partitioned { groups, one_way, .. } => {
            let groups: Vec<String> = groups.iter().map(|names| names.join(" ")).collect();
            // A cut of one way names its sources and its destinations.
            format!("partition: {}", groups.join(if *one_way { " -x-> " } else { " | " }))
        }
        EventLogEntryKind::Healed => "partition healed".to_owned(),
        EventLogEntryKind::RouteFixed { path } => format!("route: {}", path.join(" ")),
        EventLogEntryKind::RouteFreed { from, to } => {
            format!("route: {from} to {to} by the shortest way")
        }
        EventLogEntryKind::Rerouted { why } => match why {
            WhyRerouted::Event => "shortest routes computed again".to_owned(),
            WhyRerouted::Lanes => "shortest routes follow the links".to_owned(),
        },
        EventLogEntryKind::RoutesChanged { places, nodes } => changed_routes(*places, nodes),
        EventLogEntryKind::Executed { node, argv } => format!("{node}: executing {}", words(argv)),
        EventLogEntryKind::Late { link, direction, lateness_max_ns } => {
            let most = quantity::nanos(*lateness_max_ns);
            format!("link {link} {direction}: packets left up to {most} late")
        }
        EventLogEntryKind::Overloaded { behind_ns, frozen } => format!(
            "overloaded: the emulation is {} behind{}",
            quantity::nanos(*behind_ns),
            if *frozen { "; all programs are paused" } else { "" }
        ),
        EventLogEntryKind::CaughtUp { lasted_ns } => {
            format!("caught up, after {}", quantity::nanos(*lasted_ns))
        }
        EventLogEntryKind::Warning { message } => format!("warning: {message}"),
        _ => machines(what),
    }
}

/// What happens to machines of a run, services and limits.
fn machines(what: &EventLogEntryKind) -> String {
    match what {
        EventLogEntryKind::HostLost { host, nodes, why } => {
            format!("host {host} is lost, {why}; with it: {}", some(nodes))
        }
        EventLogEntryKind::HostSilent { host, since_ns } => {
            format!("host {host} has not answered since {}", quantity::nanos(*since_ns))
        }
        EventLogEntryKind::HostAnswers { host, lasted_ns } => {
            format!("host {host} answers again, after {}", quantity::nanos(*lasted_ns))
        }
        EventLogEntryKind::BeganLate { host, late_ns } => {
            format!("the run has begun {} late on host {host}", quantity::nanos(*late_ns))
        }
        EventLogEntryKind::PeerSilent { host, peer, since_ns } => format!(
            "host {host} has got no answer of host {peer} since {}: packets between the two may be lost",
            quantity::nanos(*since_ns)
        ),
        EventLogEntryKind::PeerAnswers { host, peer, lasted_ns } => {
            let lasted = quantity::nanos(*lasted_ns);
            format!("host {host} gets answers of host {peer} again, after {lasted}")
        }
        EventLogEntryKind::ServiceRegistered { .. }
        | EventLogEntryKind::ServiceWithdrawn { .. }
        | EventLogEntryKind::ServiceLost { .. }
        | EventLogEntryKind::ServiceHealth { .. }
        | EventLogEntryKind::ServiceSet { .. }
        | EventLogEntryKind::Redirected { .. }
        | EventLogEntryKind::ReplicaExpelled { .. }
        | EventLogEntryKind::ReplicaPromoted { .. }
        | EventLogEntryKind::ConnectionResumed { .. }
        | EventLogEntryKind::ConnectionLost { .. }
        | EventLogEntryKind::ConnectionUnkept { .. } => service(what),
        _ => limit(what),
    }
}

/// The effect of a change of routes on packets under way.
fn changed_routes(places: usize, nodes: &[String]) -> String {
    if places == 0 && nodes.is_empty() {
        return "no route is another than before".to_owned();
    }
    let routes = if places == 1 { "1 route".to_owned() } else { format!("{places} routes") };
    let nodes = match nodes {
        [] => String::new(),
        few if few.len() <= 4 => format!(", and at {}", few.join(", ")),
        many => format!(", and at {} nodes", many.len()),
    };
    format!(
        "{routes} changed at routers{nodes}: packets under way may arrive out of order, loop or expire"
    )
}

/// The words of a command as a shell would need them, roughly: only for reading.
fn words(argv: &[String]) -> String {
    let quoted = argv.iter().map(|word| {
        if word.is_empty() || word.contains(|c: char| c.is_whitespace() || c.is_control()) {
            format!("{word:?}")
        } else {
            word.clone()
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// `loss=5% latency=10ms` from a patch as JSON.
#[must_use]
pub fn settings(set: &serde_json::Value) -> String {
    let Some(map) = set.as_object() else { return set.to_string() };
    let pairs = map.iter().map(|(key, value)| match (key.as_str(), setting(value)) {
        // Back to the default is, for a rate, to have none.
        ("rate", value) if value == "default" => "rate=none".to_owned(),
        (key, value) => format!("{key}={value}"),
    });
    pairs.collect::<Vec<_>>().join(" ")
}

/// A property's value without the wrapping by which JSON distinguishes its kinds.
fn setting(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Object(map) if map.len() == 1 => {
            map.values().next().map(setting).unwrap_or_default()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at_ns: u64, what: EventLogEntryKind) -> String {
        text(&EventLogEntry { at_ns, intended_ns: None, what })
    }

    #[test]
    fn a_change_of_a_link_is_shown_in_the_syntax_of_the_file() {
        let set = serde_json::json!({"loss": {"independent": "5%"}, "rate": {"to": "10mbit"}});
        let what = EventLogEntryKind::LinkSet {
            link: "ocean".into(),
            direction: "paris-tokyo".into(),
            set,
        };
        assert_eq!(
            line(5_000_120_000, what),
            "[   5.000s] link ocean paris-tokyo: loss=5% rate=10mbit"
        );
    }

    #[test]
    fn a_change_of_routes_says_what_it_does_to_packets_under_way() {
        let changed = |places, nodes: &[&str]| {
            let nodes: Vec<String> = nodes.iter().map(|&name| name.to_owned()).collect();
            changed_routes(places, &nodes)
        };
        let end = ": packets under way may arrive out of order, loop or expire";
        assert_eq!(changed(0, &[]), "no route is another than before");
        assert_eq!(changed(1, &[]), format!("1 route changed at routers{end}"));
        assert_eq!(
            changed(7, &["a", "b"]),
            format!("7 routes changed at routers, and at a, b{end}")
        );
        let many = changed(7, &["a", "b", "c", "d", "e"]);
        assert_eq!(many, format!("7 routes changed at routers, and at 5 nodes{end}"));
    }

    #[test]
    fn a_planned_event_is_shown_with_its_intended_and_its_actual_time() {
        let what = EventLogEntryKind::Node { node: "web".into(), verb: "kill".into() };
        let event = EventLogEntry { at_ns: 5_000_120_000, intended_ns: Some(5_000_000_000), what };
        assert_eq!(text(&event), "[   5.000s] web: kill (due at 5.000s, 120us late)");
    }

    #[test]
    fn an_event_and_its_due_time_are_cut_alike_so_that_it_is_never_shown_as_early() {
        let what = EventLogEntryKind::Node { node: "web".into(), verb: "kill".into() };
        let event =
            EventLogEntry { at_ns: 62_999_970_000, intended_ns: Some(62_999_960_000), what };
        assert_eq!(text(&event), "[  62.999s] web: kill (due at 62.999s, 10us late)");
    }

    #[test]
    fn a_partition_of_one_way_shows_the_way() {
        let groups = vec![vec!["a".into(), "b".into()], vec!["c".into()]];
        let pairs = groups.clone();
        let what = EventLogEntryKind::Partitioned { groups, one_way: true, pairs: false };
        assert_eq!(line(0, what), "[   0.000s] partition: a b -x-> c");
        let groups = [pairs.clone(), pairs].concat();
        let what = EventLogEntryKind::Partitioned { groups, one_way: false, pairs: true };
        assert_eq!(line(0, what), "[   0.000s] partition: a b | c, a b | c");
    }

    #[test]
    fn a_lost_machine_is_shown_with_its_nodes() {
        let nodes = ["a", "b"].map(str::to_owned).to_vec();
        let (host, why) = ("three".to_owned(), "its agent does not answer".to_owned());
        assert_eq!(
            line(0, EventLogEntryKind::HostLost { host, nodes, why }),
            "[   0.000s] host three is lost, its agent does not answer; with it: a b"
        );
    }

    #[test]
    fn an_awaited_condition_is_shown_in_the_syntax_of_the_file() {
        let condition = "tcp:80".to_owned();
        let what = EventLogEntryKind::ProgramAwaited { node: "web".into(), program: 0, condition };
        assert_eq!(line(1_000_000_000, what), "[   1.000s] waiting for web: tcp:80");
    }

    #[test]
    fn a_rate_that_is_taken_away_reads_as_none() {
        assert_eq!(settings(&serde_json::json!({"rate": "default"})), "rate=none");
    }

    #[test]
    fn a_program_that_a_signal_ended_is_not_reported_as_exited() {
        let exited = |code, signal| EventLogEntryKind::ProgramExited {
            node: "web".into(),
            program: 0,
            code,
            signal,
        };
        assert_eq!(line(0, exited(137, Some(9))), "[   0.000s] web: ended by signal 9");
        assert_eq!(line(12_345_678_901, exited(3, None)), "[  12.345s] web: exited with 3");
    }
}
