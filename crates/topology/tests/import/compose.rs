//! Compose files: services with images, what waits for what, and each key that is not carried over.

use windtunnel_model::Span;
use windtunnel_model::plan::{
    Node, ProgramUser, ReadinessCheckSettings, ReadinessCondition, Restart, RootSource,
    VolumeSource,
};
use windtunnel_topology::{
    ImportContext, ImportDocument, ImportOptions, Topology, TopologyFormat, import_with,
};

use super::{items, read_with, refused};
use crate::common::load;

const SHOP: &str = include_str!("../data/compose.yaml");

fn read(text: &str) -> Topology {
    let (format, topology) = read_with(text, &ImportOptions::default()).expect("it can be read");
    assert_eq!(format, TopologyFormat::Compose);
    topology
}

/// The first of these files with those beside it.
fn read_files(
    files: &[(&str, &str)],
    over: &[&str],
    options: &ImportOptions,
) -> Result<Topology, String> {
    let text = |name: &str| {
        let found = files.iter().find(|(known, _)| *known == name.trim_start_matches("./"));
        found.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| "no such file".to_owned())
    };
    let of = |name| ImportDocument {
        name,
        text: files
            .iter()
            .find(|(known, _)| *known == name)
            .expect("it is one of the files")
            .1
            .as_bytes(),
        default_name: "shop",
    };
    let over: Vec<ImportDocument<'_>> = over.iter().map(|name| of(name)).collect();
    let surroundings = ImportContext { over: &over, read: &text };
    let imported = import_with(&of(files[0].0), options, &surroundings);
    let topology = imported.map_err(|error| error.to_string())?.1;
    load(&topology);
    Ok(topology)
}

/// The line of the scenario for a node.
fn line(topology: &Topology, node: &str) -> String {
    let yaml = topology.to_yaml();
    let start = format!("  {node}: {{");
    yaml.lines().find(|line| line.starts_with(&start)).unwrap_or_default().trim().to_owned()
}

#[test]
fn services_become_nodes_with_images_commands_and_variables() {
    let plan = load(&read(SHOP));
    let node = |name: &str| &plan.nodes[plan.node_named(name).unwrap().index()];
    let db = node("db");
    let root = db.root.as_ref().unwrap();
    let RootSource::Image { location, args, .. } = &root.source else { panic!("{root:?}") };
    assert_eq!(location.to_string(), "oci://postgres:16");
    assert_eq!(args.as_deref(), Some(&["-c".to_owned(), "fsync=off".to_owned()][..]));
    assert_eq!(db.programs[0].env["POSTGRES_PASSWORD"], "se$cret");
    assert_eq!(root.volumes[0].source, VolumeSource::Named("data".into()));
    assert_eq!(root.volumes[1].source, VolumeSource::Path("/base/./init.sql".into()));
    assert!(root.volumes[1].read_only);
    let web = node("web-app");
    assert_eq!(web.programs[0].argv, ["/bin/serve", "--port", "80"]);
    assert_eq!((web.user, web.programs[0].cwd.as_deref()), (ProgramUser::Root, Some("/srv")));
    assert_eq!(web.programs[0].restart, Restart::Always);
}

#[test]
fn services_wait_for_what_they_depend_on() {
    let plan = load(&read(SHOP));
    let id = |name: &str| plan.node_named(name).unwrap();
    let program = |name: &str| &plan.nodes[id(name).index()].programs[0];
    let argv = ["/bin/sh", "-c", "pg_isready -p 5432"].map(str::to_owned).to_vec();
    let check = ReadinessCheckSettings { argv, ..ReadinessCheckSettings::default() };
    assert_eq!(program("db").ready, Some(ReadinessCondition::OfImage(check)));
    assert_eq!(program("migrate").ready, Some(ReadinessCondition::Exit));
    assert_eq!(program("web-app").after, [id("db"), id("migrate")]);
    let daemons = ["db", "web-app", "migrate", "test"].map(|name| program(name).daemon);
    assert_eq!(daemons, [true, true, false, false], "the run ends when the test has");
}

#[test]
fn networks_become_lans() {
    let topology = read(SHOP);
    assert_eq!(topology.lans, ["back", "front"]);
    let ends: Vec<[&str; 2]> = topology.links[..5]
        .iter()
        .map(|link| [link.between[0].as_str(), link.between[1].as_str()])
        .collect();
    let expected = [
        ["db", "back"],
        ["migrate", "back"],
        ["web-app", "back"],
        ["web-app", "front"],
        ["test", "front"],
    ];
    assert_eq!(ends, expected);
}

#[test]
fn each_key_that_is_not_carried_over_is_named() {
    let notes = read(SHOP).notes;
    assert_eq!(items(&notes.lost, "Capabilities that no node"), ["SYS_NICE of db"]);
    assert_eq!(items(&notes.assumed, "Variables that are set neither"), ["TOKEN"]);
    assert_eq!(items(&notes.lost, "Images are not built"), ["migrate.tar (migrate)"]);
    assert_eq!(
        items(&notes.assumed, "Images are fetched"),
        ["postgres:16", "registry.example:5000/shop/web", "shop-test"]
    );
    assert_eq!(items(&notes.left_out, "Keys of services"), ["labels of test"]);
    assert_eq!(items(&notes.assumed, "Health checks are first made at once"), ["db"]);
}

#[test]
fn mistakes_have_their_place() {
    let error = refused("services:\n  a: {image: x, depends_on: [b]}\n");
    assert_eq!(error, "in/net.txt:2:29: no service is called `b`");
    let error = refused("services:\n  a: {image: x, networks: [n]}\n");
    assert_eq!(error, "in/net.txt:2:27: no network is called `n`");
    let error = refused("services:\n  a: {image: x, command: \"a 'b\"}\n");
    assert_eq!(error, "in/net.txt:2:26: command: a quote is not closed");
}

#[test]
fn variables_are_those_of_the_shell_and_then_of_the_file_beside_it() {
    let compose = "services:\n  a:\n    image: a:${TAG:?no tag}\n    environment: {X: \"${X}-$Y\", PATH_OF_SHELL: }\n";
    let files = [("compose.yaml", compose), (".env", "TAG=7\nX=file\nY=${X}\n")];
    let variables = [("X", "shell"), ("PATH_OF_SHELL", "/bin")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let options = ImportOptions { variables, ..ImportOptions::default() };
    let a = line(&read_files(&files, &[], &options).unwrap(), "a");
    assert!(a.contains("image: \"oci://a:7\""), "{a}");
    assert!(a.contains("{\"PATH_OF_SHELL\": \"/bin\", \"X\": \"shell-shell\"}"), "{a}");
    let error = read_files(&files[..1], &[], &options).unwrap_err();
    assert!(
        error.starts_with("compose.yaml:3:12: the variable `TAG` is not set: no tag"),
        "{error}"
    );
}

#[test]
fn files_go_over_others_include_and_extend_them_and_mistakes_are_where_they_are() {
    let files = [
        (
            "compose.yaml",
            "include: [db/compose.yaml]\nservices:\n  web:\n    extends: {file: common.yaml, service: base}\n    \
             command: [\n      serve\n    ]\n    depends_on: [db]\n",
        ),
        ("override.yaml", "services:\n  web:\n    command: [debug]\n    environment: [LEVEL=9]\n"),
        (
            "common.yaml",
            "services:\n  base:\n    image: web:1\n    environment: {LEVEL: 1, NAME: x}\n",
        ),
        (
            "db/compose.yaml",
            "services:\n  db:\n    image: db:1\n    env_file: db.env\n    volumes: [\"./init:/init\"]\n",
        ),
        ("db/db.env", "USER='me'\n"),
    ];
    let topology = read_files(&files, &[], &ImportOptions::default()).unwrap();
    let web = line(&topology, "web");
    assert!(web.contains("args: [\"serve\"]") && web.contains("after: [\"db\"]"), "{web}");
    let db = line(&topology, "db");
    assert!(
        db.contains("volumes: [\"./db/./init:/init\"]") && db.contains("\"USER\": \"me\""),
        "{db}"
    );
    let web =
        line(&read_files(&files, &["override.yaml"], &ImportOptions::default()).unwrap(), "web");
    assert!(web.contains("args: [\"debug\"]"), "{web}");
    assert!(web.contains("{\"LEVEL\": \"9\", \"NAME\": \"x\"}"), "{web}");
    let mut wrong = files;
    wrong[2].1 = "services:\n  base:\n    image: web:1\n    cpus: many\n";
    let error = read_files(&wrong, &[], &ImportOptions::default()).unwrap_err();
    assert!(error.starts_with("common.yaml:4:11: cpus: `many` is not"), "{error}");
    wrong[2].1 = "services:\n  base:\n    extends: {file: common.yaml, service: base}\n";
    let error = read_files(&wrong, &[], &ImportOptions::default()).unwrap_err();
    assert!(error.contains("files include each other"), "{error}");
}

#[test]
fn services_of_profiles_and_without_replicas_are_there_when_they_are_asked_for() {
    let text = "services:\n  a: {image: a, depends_on: [tool, none]}\n  tool: {image: t, profiles: [debug]}\n  \
                none: {image: n, scale: 0}\n";
    let names = |profiles: &[&str]| {
        let profiles = profiles.iter().map(|profile| (*profile).to_owned()).collect();
        let options = ImportOptions { profiles, ..ImportOptions::default() };
        let topology = read_files(&[("c.yaml", text)], &[], &options).unwrap();
        topology.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["a"]);
    assert_eq!(names(&["debug"]), ["a", "tool"]);
}

#[test]
fn limits_are_those_of_the_container_and_reserve_nothing() {
    let text = "services:\n  a: {image: a, cpus: 0.5, mem_limit: 512m, pids_limit: 100, ulimits: {nofile: {soft: 1024, hard: 2048}}}\n  \
                b: {image: b, deploy: {resources: {limits: {cpus: \"1.25\", memory: 1g, pids: 7}, reservations: {cpus: \"1\"}}}}\n";
    let topology = read(text);
    let plan = load(&topology);
    let demand = |name: &str| plan.nodes[plan.node_named(name).unwrap().index()].demand;
    let (a, b) = (demand("a"), demand("b"));
    assert_eq!(
        (a.cpu_millis, a.memory.map(|bytes| bytes.0), a.pids),
        (Some(500), Some(536_870_912), Some(100))
    );
    assert_eq!((a.open_files, a.cpu_reserved_millis, a.memory_reserved), (Some(1024), None, None));
    assert_eq!(
        (b.cpu_millis, b.memory.map(|bytes| bytes.0), b.pids),
        (Some(1250), Some(1 << 30), Some(7))
    );
    assert_eq!(
        items(&topology.notes.lost, "Keys of services"),
        ["deploy.resources.reservations of b"]
    );
}

#[test]
fn ports_of_the_machine_lead_through_its_outside() {
    let text = "services:\n  a: {image: a, ports: [\"8080:80\", \"53:53/udp\", \"9000\"]}\n  \
                b: {image: b, scale: 2, ports: [\"81:80\"]}\n  c: {image: c, ports: [{target: 80, published: \"8080\"}]}\n";
    let topology = read(text);
    let plan = load(&topology);
    let a = &plan.nodes[plan.node_named("a").unwrap().index()];
    assert_eq!(a.publish.iter().map(ToString::to_string).collect::<Vec<_>>(), ["8080:80"]);
    assert!(plan.internet().is_some());
    assert_eq!(
        items(&topology.notes.lost, "Ports that are not carried"),
        ["53:53/udp of a", "9000 of a"]
    );
    assert_eq!(items(&topology.notes.lost, "Ports of services with replicas"), ["81:80 of b"]);
    assert_eq!(items(&topology.notes.lost, "Ports of the machine that another"), ["8080:80 of c"]);
}

#[test]
fn secrets_configs_and_temporary_folders_are_volumes() {
    let text = "services:\n  a:\n    image: a\n    tmpfs: /run\n    secrets: [token, {source: key, target: /etc/key}, other]\n    \
                configs: [conf]\nsecrets: {token: {file: token.txt}, key: {file: ./key}, other: {environment: X}}\n\
                configs: {conf: {file: ./conf}}\n";
    let topology = read(text);
    load(&topology);
    let a = line(&topology, "a");
    let volumes = "volumes: [\"./token.txt:/run/secrets/token:ro\", \"./key:/etc/key:ro\", \
                   \"./conf:/conf:ro\", \"tmpfs-a-1:/run\"]";
    assert!(a.contains(volumes), "{a}");
    assert_eq!(items(&topology.notes.lost, "Secrets and configs that"), ["other of a"]);
}

/// A service `db` with this health check, for which another waits.
fn checked(healthcheck: &str) -> String {
    format!(
        "services:\n  db:\n    image: db\n    healthcheck: {healthcheck}\n  \
         a: {{image: a, depends_on: {{db: {{condition: service_healthy, restart: true}}}}}}\n"
    )
}

#[test]
fn a_health_check_is_a_command_with_the_times_of_the_file_and_else_of_the_image() {
    let topology = read(&checked(
        "{test: [CMD, pg_isready, -q], interval: 5s, timeout: 1m30s, retries: 4, start_period: 1m, \
         start_interval: 500ms}",
    ));
    let plan = load(&topology);
    let program = &plan.nodes[plan.node_named("db").unwrap().index()].programs[0];
    let seconds = |seconds| Some(Span::from_secs(seconds));
    let check = ReadinessCheckSettings {
        argv: vec!["pg_isready".into(), "-q".into()],
        every: seconds(5),
        timeout: seconds(90),
        fall: Some(4),
        start_period: seconds(60),
        start_every: Some(Span::from_millis(500)),
    };
    assert_eq!(
        (&program.ready, program.ready_within),
        (&Some(ReadinessCondition::OfImage(check)), None)
    );
    assert!(program.daemon);
    assert_eq!(items(&topology.notes.lost, "Keys of dependencies"), ["depends_on.db.restart"]);
}

#[test]
fn health_checks_mean_what_compose_makes_of_them() {
    let shell = |line: &str| ReadinessCheckSettings {
        argv: vec!["/bin/sh".into(), "-c".into(), line.into()],
        ..ReadinessCheckSettings::default()
    };
    let nothing = ReadinessCheckSettings::default;
    let quoted = r#"test -z "$X" || echo 'a "b" c'"#;
    for (written, expected) in [
        ("{test: curl -f localhost}", ReadinessCondition::OfImage(shell("curl -f localhost"))),
        // A dollar sign is written twice.
        (
            r#"{test: [CMD-SHELL, "test -z \"$$X\" || echo 'a \"b\" c'"]}"#,
            ReadinessCondition::OfImage(shell(quoted)),
        ),
        ("{test: [], interval: 0s, retries: 0}", ReadinessCondition::OfImage(nothing())),
        ("", ReadinessCondition::OfImage(nothing())),
        ("{timeout: 0}", ReadinessCondition::OfImage(nothing())),
        (
            "{retries: 7}",
            ReadinessCondition::OfImage(ReadinessCheckSettings { fall: Some(7), ..nothing() }),
        ),
        ("{x-note: y}", ReadinessCondition::OfImage(nothing())),
        // Docker refuses to wait for what has none.
        ("{test: [NONE]}", ReadinessCondition::Listen),
        ("{test: NONE}", ReadinessCondition::OfImage(shell("NONE"))),
        ("{disable: true, test: [CMD, pg_isready]}", ReadinessCondition::Listen),
    ] {
        let plan = load(&read(&checked(written)));
        let ready = plan.nodes[plan.node_named("db").unwrap().index()].programs[0].ready.clone();
        assert_eq!(ready, Some(expected), "{written}");
    }
}

#[test]
fn what_compose_refuses_of_a_health_check_is_refused_at_its_place() {
    let text = |key: &str, value: &str| checked(&format!("{{test: [CMD, x], {key}: {value}}}"));
    for (key, value, why) in [
        ("interval", "5", "interval: `5` is no time such as `1m30s`"),
        ("timeout", "-5s", "timeout: `-5s` is no time such as `1m30s`"),
        ("start_period", "10us", "start_period: `10us` is less than 1ms"),
        ("start_interval", "soon", "start_interval: `soon` is no time such as `1m30s`"),
        ("retries", "-1", "retries: `-1` is no number of failures"),
        ("retries", "some", "retries: `some` is no number of failures"),
    ] {
        let column = 35 + key.len() + 2;
        let expected = format!("in/net.txt:4:{column}: healthcheck: {why}");
        assert_eq!(refused(&text(key, value)), expected);
    }
    let must = "in/net.txt:4:25: healthcheck: test must start with CMD, CMD-SHELL or NONE";
    assert_eq!(refused(&checked("{test: [curl, -f, x]}")), must);
    for empty in ["[CMD]", "[CMD-SHELL]", "[CMD, '']"] {
        let error = refused(&checked(&format!("{{test: {empty}}}")));
        assert_eq!(error, "in/net.txt:4:25: healthcheck: test has no command");
    }
}

#[test]
fn health_checks_that_nothing_waits_for_and_keys_of_none_are_named() {
    let text = "services:\n  a: {image: x, healthcheck: {test: curl x, intervall: 3s}}\n  \
                b: {image: x, healthcheck: {disable: true, test: curl x}}\n";
    let notes = read(text).notes;
    let nothing = "Health checks of services that no other waits for";
    assert_eq!(items(&notes.left_out, nothing), ["a"]);
    assert_eq!(items(&notes.lost, "Keys of health checks"), ["intervall of a"]);
    assert_eq!(items(&notes.assumed, "Health checks that are disabled"), ["b"]);
}

#[test]
fn services_on_one_network_are_one_part_and_keep_their_platforms() {
    let text = "services:\n  a_b: {image: a, container_name: box, networks: {default: {aliases: [www]}}}\n  \
                c: {image: c, links: [\"a_b:peer\"], platform: linux/s390x}\n";
    let topology = read(text);
    let notes = &topology.notes;
    assert!(!notes.assumed.iter().any(|note| note.text.starts_with("No link joins")), "{notes:?}");
    let plan = load(&topology);
    assert_eq!(plan.nodes[0].aliases, ["a_b", "box", "peer", "www"]);
    let platforms = |topology: &Topology| {
        let plan = load(topology);
        let of = |node: &Node| node.root.as_ref()?.source.platform().map(ToString::to_string);
        plan.nodes.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(platforms(&topology), [None, Some("linux/s390x".into())]);
    let other = read(
        "services:\n  a: {image: a, platform: amd64}\n  b: {build: ., platform: linux/arm64/v8}\n  \
         c: {image: c, platform: linux}\n  d: {image: d, platform: windows/amd64}\n",
    );
    let expected = [Some("linux/amd64".into()), Some("linux/arm64".into()), None, None];
    assert_eq!(platforms(&other), expected);
    assert_eq!(items(&other.notes.left_out, "Platforms"), ["linux of c"]);
    assert_eq!(items(&other.notes.lost, "Platforms"), ["windows/amd64 of d"]);
}

#[test]
fn services_are_found_by_all_names_that_docker_gives_them() {
    let text = "services:\n  my_db:\n    image: x\n    container_name: Shop.DB\n    hostname: pg\n    \
                networks: {back: {aliases: [sql, sql]}}\n  web:\n    image: x\n    links: [my_db:store, my_db]\n    \
                networks: [back]\n  vote: {image: x, scale: 2, networks: [back]}\nnetworks: {back: }\n";
    let topology = read(text);
    let plan = load(&topology);
    let aliases = |node: &str| plan.nodes[plan.node_named(node).unwrap().index()].aliases.clone();
    assert_eq!(aliases("my-db"), ["Shop.DB", "my_db", "pg", "sql", "store"]);
    assert_eq!((aliases("vote-1"), aliases("vote-2")), (vec!["vote".into()], vec!["vote".into()]));
    assert!(aliases("web").is_empty());
    assert!(topology.notes.lost.is_empty(), "{:?}", topology.notes.lost);
}

#[test]
fn a_name_that_leads_elsewhere_is_listed() {
    let text = "services:\n  a: {image: x, container_name: B, hostname: 10.0.0.1}\n  b: {image: x}\n  \
                c: {image: x, links: ['b:a']}\n";
    let topology = read(text);
    load(&topology);
    let lost = items(&topology.notes.lost, "Names that do not lead to their service");
    assert_eq!(lost, ["10.0.0.1 of a", "B of a", "a of b"]);
    // Resolvers take no notice of capital letters, so this one is found by its own name.
    let own = read("services:\n  webTests: {image: x}\n");
    assert!(own.notes.lost.is_empty() && load(&own).nodes[0].aliases.is_empty());
    let error = refused("services:\n  c: {image: x, links: ['d:e']}\n");
    assert!(error.ends_with("no service is called `d`"), "{error}");
}

#[test]
fn users_are_carried_by_name_and_by_number() {
    let text = "services:\n  a: {image: x, user: '1000:1000'}\n  b: {image: x, user: redis}\n  \
                c: {image: x, user: '0:0'}\n  d: {image: x, user: '0:7'}\n  e: {image: x, user: ''}\n";
    let plan = load(&read(text));
    let user = |node: &str| {
        let node = &plan.nodes[plan.node_named(node).unwrap().index()];
        (node.user, node.root.as_ref().unwrap().user.clone())
    };
    assert_eq!(user("a"), (ProgramUser::Image, Some("1000:1000".into())));
    assert_eq!(user("b"), (ProgramUser::Image, Some("redis".into())));
    assert_eq!(user("c"), (ProgramUser::Root, None));
    assert_eq!(user("d"), (ProgramUser::Image, Some("0:7".into())));
    assert_eq!(user("e"), (ProgramUser::Image, None));
    let error = refused("services:\n  a: {image: x, user: 'a b'}\n");
    assert_eq!(error, "in/net.txt:2:23: user: `a b` is no user");
}

#[test]
fn networks_keep_their_subnets_and_services_their_addresses() {
    let text = "services:\n  a:\n    image: x\n    networks: {n: {ipv4_address: 172.22.1.250}, m: }\n  \
                b: {image: x, networks: {n: {ipv4_address: 10.9.9.9}, m: }}\nnetworks:\n  m:\n  n:\n    \
                driver: bridge\n    enable_ipv6: true\n    ipam:\n      driver: default\n      config:\n        \
                - subnet: 172.22.1.0/24\n        - {subnet: 'fd4d::/64', gateway: 'fd4d::1'}\n";
    let topology = read(text);
    let plan = load(&topology);
    let a = &plan.nodes[plan.node_named("a").unwrap().index()];
    assert_eq!(a.interfaces[1].v4, Some("172.22.1.250".parse().unwrap()));
    let lan = plan.lans.iter().find(|lan| lan.name == "n").unwrap();
    assert_eq!(lan.v4.unwrap().network, "172.22.1.0".parse::<std::net::IpAddr>().unwrap());
    assert_eq!(lan.v6.unwrap().network, "fd4d::".parse::<std::net::IpAddr>().unwrap());
    let lost = &topology.notes.lost;
    assert_eq!(items(lost, "Addresses outside of the network's subnet"), ["10.9.9.9 of b"]);
    assert_eq!(items(lost, "Keys of networks"), ["ipam.config.gateway of n"]);
}

#[test]
fn a_number_of_restarts_is_lost_and_whether_there_are_any_is_not() {
    let text = "services:\n  a: {image: x, restart: 'on-failure:3'}\n  b: {image: x, restart: 'on-failure:0'}\n  \
                c: {image: x, restart: 'no'}\n  d: {image: x, restart: unless-stopped}\n  e: {image: x, restart: often}\n";
    let topology = read(text);
    let plan = load(&topology);
    let restarts: Vec<Restart> = plan.nodes.iter().map(|node| node.programs[0].restart).collect();
    let (failure, always, never) = (Restart::OnFailure, Restart::Always, Restart::Never);
    assert_eq!(restarts, [failure, failure, never, always, never]);
    let lost = items(&topology.notes.lost, "Keys of services");
    assert_eq!(lost, ["restart (on-failure:3) of a", "restart (often) of e"]);
}

#[test]
fn keys_that_change_nothing_are_descriptions_and_others_are_lost() {
    let text = "services:\n  a:\n    image: x\n    init: true\n    logging: {driver: none}\n    \
                network_mode: none\n    cap_add: [NET_ADMIN, cap_net_raw, SYS_TIME]\n    read_only: true\n    \
                security_opt: ['seccomp:unconfined', no-new-privileges]\n    \
                volumes: ['data:/x:ro,z', 'data:/y:rslave']\n    platform: ''\n    environment: {X: }\n    deploy:\n      \
                mode: global\n      placement: {constraints: []}\n      \
                restart_policy: {condition: on-failure, delay: 5s}\n  \
                b: {image: x, network_mode: host, depends_on: {a: {condition: service_started, restart: true}}}\n\
                volumes: {data: {driver: local}}\n";
    let topology = read(text);
    let plan = load(&topology);
    let a = &plan.nodes[plan.node_named("a").unwrap().index()];
    assert_eq!((a.interfaces.len(), a.programs[0].restart), (0, Restart::OnFailure));
    let lost = &topology.notes.lost;
    let expected = [
        "read_only of a",
        "security_opt no-new-privileges of a",
        "deploy.restart_policy.delay of a",
        "network_mode (host) of b",
    ];
    assert_eq!(items(lost, "Keys of services"), expected);
    assert_eq!(items(lost, "Capabilities that no node"), ["SYS_TIME of a"]);
    assert_eq!(items(lost, "Options of volumes"), ["rslave of a"]);
    assert_eq!(items(lost, "Keys of dependencies"), ["depends_on.a.restart"]);
    assert_eq!(lost.len(), 4, "{lost:?}");
    let left_out = items(&topology.notes.left_out, "Keys of services");
    assert_eq!(
        left_out,
        [
            "init of a",
            "logging of a",
            "security_opt seccomp:unconfined of a",
            "deploy.placement of a"
        ]
    );
}
