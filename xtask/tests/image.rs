//! `deploy/Dockerfile` against the sources it builds, and the manifests that use the image against
//! its content. The image itself is not built: that needs a container engine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The stages of the Dockerfile: each is its instructions with their words, from `FROM` on.
fn stages() -> Vec<Vec<(String, String)>> {
    let text = fs::read_to_string(top().join("deploy/Dockerfile")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let mut stages: Vec<Vec<(String, String)>> = Vec::new();
    for line in joined.lines().filter(|line| !line.trim().is_empty()) {
        let (name, words) = line.split_once(' ').unwrap();
        if name == "FROM" {
            stages.push(Vec::new());
        }
        stages.last_mut().unwrap().push((name.to_owned(), words.trim().to_owned()));
    }
    stages
}

/// The words after an instruction's name: of all of them, in order.
fn all<'a>(stage: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    let of_name = stage.iter().filter(|(own, _)| own == name);
    of_name.map(|(_, words)| words.as_str()).collect()
}

/// The one of that name.
fn only<'a>(stage: &'a [(String, String)], name: &str) -> &'a str {
    let [one] = all(stage, name)[..] else { panic!("one {name}") };
    one
}

/// The words of a line in JSON form: `["windtunnel"]`.
fn words(list: &str) -> Vec<String> {
    serde_json::from_str(list).unwrap()
}

fn packages() -> BTreeSet<String> {
    let stages = stages();
    let installed = all(&stages[1], "RUN").into_iter().find(|run| run.contains("apt-get install"));
    let (_, list) = installed.unwrap().split_once("install -y --no-install-recommends").unwrap();
    list.split("&&").next().unwrap().split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_program_that_is_built_is_the_one_that_is_copied_and_started() {
    let stages = stages();
    let [build, image] = &stages[..] else { panic!("two stages") };
    assert_eq!((all(build, "COPY"), only(build, "WORKDIR")), (vec![". ."], "/source"));
    // As in `./ci`, from the reviewed versions: the file is in the source and reaches the builder.
    assert_eq!(only(build, "RUN"), "cargo build --release --locked -p windtunnel-cli");
    assert!(top().join("Cargo.lock").exists());
    let kept_out = fs::read_to_string(top().join(".dockerignore")).unwrap();
    let needed = ["Cargo.toml", "Cargo.lock", "crates", "xtask", "docs", "examples"];
    assert!(!kept_out.lines().any(|line| needed.contains(&line)), "{kept_out}");

    let manifest = fs::read_to_string(top().join("crates/cli/Cargo.toml")).unwrap();
    let command = windtunnel_cli::command();
    let name = command.get_name();
    assert!(manifest.contains("[package]\nname = \"windtunnel-cli\"\n"));
    assert!(manifest.contains(&format!("[[bin]]\nname = \"{name}\"\n")));
    let copied = format!("--from=build /source/target/release/{name} /usr/local/bin/{name}");
    assert_eq!(only(image, "COPY"), copied);

    let started = [words(only(image, "ENTRYPOINT")), words(only(image, "CMD"))].concat();
    assert_eq!(started[0], name);
    let parsed = windtunnel_cli::command().try_get_matches_from(&started);
    assert!(parsed.is_ok(), "{started:?}: {parsed:?}");
}

#[test]
fn it_is_built_for_the_c_library_that_it_runs_with() {
    let stages = stages();
    let release = "bookworm";
    assert_eq!(only(&stages[0], "FROM"), format!("rust:1-{release} AS build"));
    assert_eq!(only(&stages[1], "FROM"), format!("debian:{release}-slim"));
}

#[test]
fn its_port_and_its_user_are_those_of_the_agent_and_the_manifests() {
    let stages = stages();
    let command = windtunnel_cli::command();
    let agent = command.find_subcommand("agent").unwrap();
    let listen = agent.get_arguments().find(|option| option.get_id() == "listen").unwrap();
    let usual = listen.get_default_values()[0].to_str().unwrap();
    let (_, port) = usual.rsplit_once(':').unwrap();
    // The agent's own, and the hundred behind it for the parts of runs (docs/cluster.md).
    let last = port.parse::<u16>().unwrap() + 100;
    assert_eq!(only(&stages[1], "EXPOSE"), format!("{port}-{last}/udp"));

    let (user, group) = only(&stages[1], "USER").split_once(':').unwrap();
    assert_eq!(user, group);
    let made = all(&stages[1], "RUN").join(" ");
    assert!(made.contains(&format!("useradd --create-home --uid {user} windtunnel")), "{made}");
    let pods = [objects("windtunnel.yaml").remove(1), objects("run.yaml").remove(1)];
    for pod in pods.map(|object| object["spec"]["template"]["spec"].clone()) {
        let security = &pod["securityContext"];
        assert_eq!(security["runAsUser"].to_string(), user);
        assert_eq!(security["fsGroup"].to_string(), group);
        for container in pod["containers"].as_array().unwrap() {
            let mut ports = container["ports"].as_array().into_iter().flatten();
            assert!(ports.all(|one| one["containerPort"].as_u64() == port.parse().ok()));
        }
    }
}

#[test]
fn the_scenario_of_the_job_is_valid_and_the_image_has_its_programs() {
    let text = objects("run.yaml").remove(0)["data"]["net.yaml"].as_str().unwrap().to_owned();
    let text = text.as_bytes();
    let source = windtunnel_scenario::ScenarioSource {
        name: "net.yaml",
        text,
        default_name: "net",
        base_dir: "/",
    };
    let plan = windtunnel_scenario::load(&source).unwrap().plan;
    let programs = plan.nodes.iter().flat_map(|node| &node.programs);
    let programs: BTreeSet<&str> = programs.map(|program| program.argv[0].as_str()).collect();
    let of_packages =
        BTreeMap::from([("curl", "curl"), ("ping", "iputils-ping"), ("python3", "python3")]);
    let packages = packages();
    for program in programs {
        let package = of_packages.get(program);
        assert!(package.is_some_and(|package| packages.contains(*package)), "{program}");
    }
}

fn objects(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(top().join("deploy/kubernetes").join(name)).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}
