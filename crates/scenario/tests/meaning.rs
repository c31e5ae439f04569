//! What single keys come to in the plan, and what is noticed about files that are right.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/load.rs"]
mod common;
#[path = "meaning/events.rs"]
mod events;
#[path = "meaning/links.rs"]
mod links;
#[path = "meaning/services.rs"]
mod services;
#[path = "meaning/shares.rs"]
mod shares;

use common::load_text;
use windtunnel_model::expect::{ExitWanted, ExpectationClaim, ProgramFact};
use windtunnel_model::plan::{
    BandwidthSharing, EventAction, NetworkModel, Plan, ProgramUser, ReadinessCheck,
    ReadinessCheckSettings, ReadinessCondition, Restart,
};
use windtunnel_model::{LinkProfile, NodeId, Probability, Span};

fn plan(text: &str) -> Plan {
    load_text("net", text.as_bytes()).unwrap_or_else(|errors| panic!("{errors}")).plan
}

fn notices(text: &str) -> Vec<String> {
    let loaded = load_text("net", text.as_bytes()).unwrap_or_else(|errors| panic!("{errors}"));
    loaded.notices.iter().map(ToString::to_string).collect()
}

/// The two directions of a link with these properties.
fn link(keys: &str) -> [LinkProfile; 2] {
    let text = format!("nodes: {{a: {{}}, b: {{}}}}\nlinks:\n  - {{between: [a, b], {keys}}}\n");
    plan(&text).links.remove(0).profiles
}

fn percent(percent: u32) -> Probability {
    Probability::from_parts_per_billion(percent * 10_000_000).unwrap()
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.links.iter().map(|link| link.name.as_str()).collect()
}

#[test]
fn the_smallest_file_is_one_node() {
    let plan = plan("nodes: {a: }\n");
    assert_eq!((plan.name.as_str(), plan.seed, plan.duration), ("net", 1, None));
    assert_eq!((plan.nodes.len(), plan.nodes[0].programs.len()), (1, 0));
}

#[test]
fn lists_whose_items_are_commented_out_are_empty() {
    let plan = plan("nodes: {a: }\nrouters:\nlinks:\nevents:\n#  - {at: 1s}\nexpect:\n");
    assert!(plan.links.is_empty() && plan.events.is_empty());
}

#[test]
fn links_are_named_by_their_ends_unless_they_have_a_name() {
    let text = "nodes: {a: {count: 2}, b: {}, c: {count: 1}}\nrouters: [r]\nlinks:\n  \
                - {between: [a, r]}\n  - {between: [b, r]}\n  - {between: [b, r]}\n  \
                - {between: [a, r], name: x}\n  - {between: [b, r], name: b--r}\n  \
                - {between: [c, r], name: y}\n";
    let expected = ["a-1--r", "a-2--r", "b--r-2", "b--r-3", "x-1", "x-2", "b--r", "y-1"];
    assert_eq!(names(&plan(text)), expected);
}

#[test]
fn addresses_go_to_first_interfaces_first_and_skip_fixed_ones() {
    let text = "address: [10.9.0.0/24, \"fd09::/64\"]\n\
                nodes:\n  a: {}\n  b: {address: [10.9.0.2, \"2001:db8::7\"]}\n  c: {}\n\
                routers: [r]\nlinks: [{between: [a, r]}, {between: [a, b]}, {between: [b, r]}, {between: [c, r]}]\n";
    let plan = plan(text);
    let v4 = |node: usize, interface: usize| {
        plan.nodes[node].interfaces[interface].v4.unwrap().to_string()
    };
    assert_eq!([v4(0, 0), v4(1, 0), v4(2, 0)], ["10.9.0.1", "10.9.0.2", "10.9.0.3"]);
    assert_eq!([v4(0, 1), v4(1, 1)], ["10.9.0.4", "10.9.0.5"]);
    let v6 = |node: usize| plan.nodes[node].interfaces[0].v6.unwrap().to_string();
    assert_eq!([v6(0), v6(1), v6(2)], ["fd09::1", "2001:db8::7", "fd09::2"]);
    let ports: Vec<u32> = plan.ports().map(|(_, interface)| interface.port.0).collect();
    assert_eq!(ports, [0, 1, 2, 3, 4]);
    assert_eq!(plan.routers[0].interfaces[2].v4.unwrap().to_string(), "10.9.0.8");
}

#[test]
fn a_family_can_be_off() {
    let plan = plan("ipv6: false\nnodes: {a: {}, b: {}}\nlinks: [{between: [a, b], mtu: 576}]\n");
    let interface = &plan.nodes[0].interfaces[0];
    assert_eq!((interface.v4.is_some(), interface.v6, interface.mtu), (true, None, 576));
}

#[test]
fn a_program_takes_from_its_node_what_it_does_not_say() {
    let text = "defaults: {node: {env: {A: \"1\", B: \"1\"}, restart: always}}\n\
                nodes:\n  db: {run: x}\n  \
                a: {env: {B: \"2\", C: 3}, cwd: sub, after: db, user: root, run: [{run: \"one 'two three'\"}, \
                {run: [y, 5, true], env: {C: \"4\"}, cwd: /abs, restart: on-failure, ready: \"log:up$\"}]}\n\
                links: [{between: [a, db]}]\n";
    let plan = plan(text);
    let node = &plan.nodes[1];
    assert_eq!(node.user, ProgramUser::Root);
    let [first, second] = node.programs.as_slice() else { panic!("two programs") };
    assert_eq!(first.argv, ["one", "two three"]);
    assert_eq!(first.cwd.as_deref(), Some("/home/me/sub"));
    assert_eq!((first.restart, &first.after), (Restart::Always, &vec![NodeId(0)]));
    let env = |program: &windtunnel_model::plan::Program| {
        program.env.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!((env(first), env(second)), ("A=1 B=2 C=3".into(), "A=1 B=2 C=4".into()));
    assert_eq!(second.argv, ["y", "5", "true"]);
    assert_eq!(second.cwd.as_deref(), Some("/abs"));
    assert_eq!(
        (second.restart, &second.ready),
        (Restart::OnFailure, &Some(ReadinessCondition::Log("up$".into())))
    );
}

#[test]
fn a_node_has_further_names_which_others_may_have_too() {
    let plan = plan(
        "allow-unreachable: true\nnodes: {a: {run: x, aliases: db}, w: {count: 2, aliases: [w, Web_1.example]}}\n\
         links: [{between: [a, w]}]\n",
    );
    let aliases: Vec<_> = plan.nodes.iter().map(|node| node.aliases.join(" ")).collect();
    assert_eq!(aliases, ["db", "w Web_1.example", "w Web_1.example"]);
}

#[test]
fn a_user_of_a_nodes_own_files_goes_before_the_images() {
    let plan = plan(
        "allow-unreachable: true\ndefaults: {node: {user: root}}\nnodes: {a: {image: x.tar, user: '1000:data'}, b: {image: x.tar}, \
         c: {root: /srv, run: y, user: www-data}}\nlinks: [{between: [a, b]}, {between: [b, c]}]\n",
    );
    let user = |node: usize| {
        let node = &plan.nodes[node];
        (node.user, node.root.as_ref().unwrap().user.as_deref())
    };
    assert_eq!(user(0), (ProgramUser::Image, Some("1000:data")));
    assert_eq!(user(1), (ProgramUser::Image, None));
    assert_eq!(user(2), (ProgramUser::Image, Some("www-data")));
}

#[test]
fn a_platform_of_an_image_is_what_docker_calls_it() {
    let plan = plan(
        "allow-unreachable: true\nnodes: {a: {image: x.tar, platform: linux/aarch64}, b: {image: 'oci://x', platform: linux/arm}, \
         c: {image: x.tar}, d: {root: /srv, run: y}}\n",
    );
    let platform = |node: usize| {
        plan.nodes[node].root.as_ref().unwrap().source.platform().map(ToString::to_string)
    };
    assert_eq!(platform(0).as_deref(), Some("linux/arm64"));
    assert_eq!(platform(1).as_deref(), Some("linux/arm/v7"));
    assert_eq!([platform(2), platform(3)], [None, None]);
}

#[test]
fn nodes_leave_results_where_the_file_asks() {
    let plan = plan(
        "allow-unreachable: true\ndefaults: {node: {results: true}}\nnodes: {a: {run: x}, b: {run: x, results: false}, \
         c: {image: x.tar}}\nlinks: [{between: [a, b]}, {between: [b, c]}]\n",
    );
    let results: Vec<bool> = plan.nodes.iter().map(|node| node.results).collect();
    assert_eq!(results, [true, false, false]);
}

#[test]
fn a_condition_may_have_a_time_of_its_own() {
    let ready = |text: &str| {
        let plan = plan(&format!("nodes: {{a: {{run: x, ready: {text}}}}}\n"));
        let program = &plan.nodes[0].programs[0];
        (program.ready.clone(), program.ready_within)
    };
    let five = Some(Span::from_secs(5));
    assert_eq!(ready("{tcp: 80, timeout: 5s}"), (Some(ReadinessCondition::Tcp(80)), five));
    assert_eq!(ready("{listen: true, timeout: 5s}"), (Some(ReadinessCondition::Listen), five));
    assert_eq!(
        ready("{timeout: 5s, unix: /run/x}"),
        (Some(ReadinessCondition::Unix("/run/x".into())), five)
    );
    assert_eq!(
        ready("{log: 'up: .*', timeout: 5s}"),
        (Some(ReadinessCondition::Log("up: .*".into())), five)
    );
    assert_eq!(ready("{exit: true}"), (Some(ReadinessCondition::Exit), None));
    assert_eq!(ready("tcp:80"), (Some(ReadinessCondition::Tcp(80)), None));
}

#[test]
fn a_command_that_says_whether_a_program_is_ready_has_times() {
    let ready = |text: &str| {
        let plan = plan(&format!("nodes: {{a: {{run: x, ready: {text}}}}}\n"));
        plan.nodes[0].programs[0].ready.clone().unwrap()
    };
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (ms, seconds) = (Span::from_millis, Span::from_secs);
    let plain = ReadinessCheck {
        argv: words("pg_isready -U x"),
        every: seconds(1),
        timeout: seconds(10),
        fall: None,
        start_period: Span::ZERO,
        start_every: seconds(1),
    };
    assert_eq!(ready("'command:pg_isready -U x'"), ReadinessCondition::Command(plain.clone()));
    assert_eq!(ready("{command: [pg_isready, -U, x]}"), ReadinessCondition::Command(plain.clone()));
    let all = "{command: pg_isready -U x, every: 200ms, check-timeout: 2s, fall: 4, start-period: 1min, \
               start-every: 50ms, timeout: 9s}";
    let check = ReadinessCheck {
        every: ms(200),
        timeout: seconds(2),
        fall: Some(4),
        start_period: seconds(60),
        start_every: ms(50),
        ..plain
    };
    assert_eq!(ready(all), ReadinessCondition::Command(check));
}

#[test]
fn the_check_of_an_image_is_what_the_file_says_and_the_image_for_the_rest() {
    let ready = |text: &str| {
        let text = format!("nodes: {{a: {{image: x.tar, ready: {text}}}}}\n");
        plan(&text).nodes[0].programs[0].ready.clone().unwrap()
    };
    let nothing = ReadinessCheckSettings::default();
    assert_eq!(ready("healthcheck"), ReadinessCondition::OfImage(nothing.clone()));
    assert_eq!(ready("{healthcheck: true}"), ReadinessCondition::OfImage(nothing.clone()));
    let fall = ReadinessCheckSettings { fall: Some(9), ..nothing };
    assert_eq!(ready("{healthcheck: true, fall: 9}"), ReadinessCondition::OfImage(fall.clone()));
    let argv = ["sh", "-c", "a; b"].map(str::to_owned).to_vec();
    let other = ReadinessCheckSettings { argv, ..fall };
    assert_eq!(ready("{healthcheck: [sh, -c, a; b], fall: 9}"), ReadinessCondition::OfImage(other));
}

#[test]
fn an_expectation_of_a_group_is_one_of_each_member() {
    let text = "nodes: {a: {count: 2, run: x}, b: {}}\nrouters: [r]\n\
                links: [{between: [a, r]}, {between: [b, r]}]\n\
                expect: [{node: a, exit: any}, {link: a--r, direction: down, rate: {max: 5mbit}}]\n";
    let plan = plan(text);
    let exit = |node| ExpectationClaim::Program {
        nodes: vec![NodeId(node)],
        fact: ProgramFact::Exit(ExitWanted::Any),
    };
    assert_eq!(plan.expectations[0].claim, exit(0));
    assert_eq!(plan.expectations[1].claim, exit(1));
    assert_eq!(plan.expectations.len(), 4);
}

#[test]
fn a_fixed_route_leads_both_ways_unless_it_is_one_way() {
    let routes = |one_way: &str| {
        let text = format!(
            "nodes: {{a: {{}}, b: {{}}}}\nrouters: [r]\nlinks: [{{between: [a, r]}}, \
             {{between: [r, b]}}]\nroutes: [{{path: [a, r, b]{one_way}}}]\n"
        );
        plan(&text).routes.len()
    };
    assert_eq!((routes(""), routes(", one-way: true")), (2, 1));
}

#[test]
fn nodes_that_forward_join_others() {
    let text = "nodes: {a: {}, m: {forward: true}, b: {}}\n\
                links: [{between: [a, m]}, {between: [m, b]}]\n";
    assert_eq!(plan(text).links.len(), 2);
}

#[test]
fn unreachable_nodes_are_accepted_where_the_file_says_so() {
    let text = "allow-unreachable: true\nnodes: {a: {}, b: {}, c: {}, d: {}}\n\
                links: [{between: [a, b]}, {between: [c, d]}]\n";
    assert_eq!(plan(text).links.len(), 2);
}

#[test]
fn choices_and_doubts_are_noticed() {
    let text = "duration: 10s\n\
                nodes: {a: {run: \"ls | wc\", start: 11s}, b: {daemon: true}, c: {}}\n\
                links:\n  - {between: [a, b], queue: 5p}\n  - {between: [a, b], up: {rate: 1gbit}}\n\
                events: [{at: 11s, heal: true}]\n";
    let expected = [
        "line 2: `|` is passed to the program as it is, for no shell reads this: write \
         [sh, -c, \"…\"] where one should",
        "line 2: `daemon` has no effect on a node that has no `run`",
        "line 2: this program starts at 11s, when the run has ended",
        "line 4: `queue` has no effect until this link has a `rate`",
        "line 5: from `b` to `a` this link has no rate, only the other way",
        "queue of 4064 packets by default: a--b-2 up",
        "line 2: `c` has no link: it can talk to itself only",
        "line 6: this event at 11s is later than the end at 10s",
    ];
    assert_eq!(notices(text), expected);
}

#[test]
fn a_run_that_cannot_end_is_noticed() {
    let text = |head: &str| format!("{head}nodes: {{a: {{run: x, restart: true}}}}\n");
    let never =
        "line 1: `a` is always restarted and is not a daemon: without `duration` this never ends";
    assert_eq!(notices(&text(""))[0], never);
    assert_eq!(notices(&text("duration: 5s\n")).len(), 1);
}

#[test]
fn a_second_link_of_a_group_has_a_common_name_of_its_own() {
    let text = "nodes: {a: {count: 2}}\nrouters: [r]\nlinks: [{between: [a, r]}, {between: [a, r]}]\n\
                events: [{at: 1s, link: a--r-2, direction: up, down: true}]\n";
    let plan = plan(text);
    let EventAction::Link(change) = &plan.events[0].action else { panic!("a link event") };
    let links: Vec<&str> =
        change.state.iter().map(|(lane, _)| plan.links[lane.link.index()].name.as_str()).collect();
    assert_eq!(links, ["a-1--r-2", "a-2--r-2"]);
}

#[test]
fn the_name_of_a_file_becomes_a_name_that_a_folder_can_have() {
    let loaded = load_text("my net/../x", b"nodes: {a: }\n").unwrap();
    assert_eq!(loaded.plan.name, "my-net-..-x");
}

#[test]
fn a_lan_has_a_subnet_from_the_end_of_the_pools_and_routers_its_lowest_addresses() {
    let plan = plan(
        "nodes: {a: {}, b: {count: 2}, far: {}}\nrouters: [r]\nlans: [office, lab]\nlinks:\n\
         - {between: [a, office], latency: 1ms}\n- {between: [b, office]}\n\
         - {between: [r, office]}\n- {between: [r, lab]}\n- {between: [r, far]}\n",
    );
    let subnets: Vec<String> = plan
        .lans
        .iter()
        .flat_map(|lan| [lan.v4.unwrap().to_string(), lan.v6.unwrap().to_string()])
        .collect();
    assert_eq!(subnets[..2], ["10.0.255.0/24", "fd00::ffff:0:0:0/80"]);
    assert_eq!(subnets[2..], ["10.0.254.0/24", "fd00::fffe:0:0:0/80"]);
    let v4 = |interface: &windtunnel_model::plan::NodeInterface| interface.v4.unwrap().to_string();
    let nodes: Vec<String> = plan.nodes.iter().map(|node| v4(&node.interfaces[0])).collect();
    assert_eq!(nodes, ["10.0.255.2", "10.0.255.3", "10.0.255.4", "10.0.0.1"]);
    assert_eq!(plan.routers[0].interfaces[0].v4.unwrap().to_string(), "10.0.255.1");
    assert_eq!(plan.lans[0].attachments.len(), 4);
    assert_eq!(names(&plan)[..3], ["a--office", "b-1--office", "b-2--office"]);
}

#[test]
fn a_fixed_address_of_a_lan_is_that_of_the_interface_there() {
    let plan = plan(
        "nodes: {a: {address: 192.168.7.9}, b: {}}\nrouters: [r]\n\
         lans: {office: {address: 192.168.7.0/24}}\nlinks:\n- {between: [a, r]}\n\
         - {between: [a, office]}\n- {between: [b, office]}\n",
    );
    let addresses: Vec<String> =
        plan.nodes[0].interfaces.iter().map(|i| i.v4.unwrap().to_string()).collect();
    assert_eq!(addresses, ["10.0.0.1", "192.168.7.9"]);
}

#[test]
fn a_partition_inside_a_lan_is_none_that_does_nothing() {
    let text = "nodes: {a: {}, b: {}}\nlans: [office]\nlinks:\n- {between: [a, office]}\n\
                - {between: [b, office]}\nevents: [{at: 1s, partition: [[a], [b]]}]\n";
    assert_eq!(notices(text), [] as [&str; 0]);
}

#[test]
fn a_file_names_its_network_model_and_how_paths_share() {
    let model = |head: &str| {
        plan(&format!("{head}nodes: {{a: {{}}, b: {{}}}}\nlinks: [{{between: [a, b]}}]\n")).model
    };
    assert_eq!(model(""), NetworkModel::Hops);
    assert_eq!(model("model: hops\n"), NetworkModel::Hops);
    assert_eq!(model("model: paths\n"), NetworkModel::Paths(BandwidthSharing::RttAware));
    assert_eq!(
        model("model: paths\nsharing: equal\n"),
        NetworkModel::Paths(BandwidthSharing::Equal)
    );
}
