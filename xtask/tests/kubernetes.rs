//! The manifests in `deploy/kubernetes` against Kubernetes' published schema in the types of
//! `k8s-openapi`: they drop unknown fields, so a misspelt field is lost in a round trip.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PodSpec, Service};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/kubernetes")
}

/// The objects of a file.
fn objects(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder().join(name)).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

/// The object as Kubernetes parses it, or its unknown fields.
fn typed<T: Serialize + DeserializeOwned>(object: &Value) -> Result<T, String> {
    let typed: T = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
    let mut unknown = Vec::new();
    compare("", object, &serde_json::to_value(&typed).unwrap(), &mut unknown);
    if unknown.is_empty() { Ok(typed) } else { Err(unknown.join("\n")) }
}

/// Collects fields that are lost in the round trip.
fn compare(path: &str, wrote: &Value, back: &Value, unknown: &mut Vec<String>) {
    match (wrote, back) {
        (Value::Object(wrote), Value::Object(back)) => {
            for (key, value) in wrote {
                let path = format!("{path}/{key}");
                match back.get(key) {
                    Some(back) => compare(&path, value, back, unknown),
                    None => unknown.push(format!("{path} is not a field")),
                }
            }
        }
        (Value::Array(wrote), Value::Array(back)) if wrote.len() == back.len() => {
            for (at, (wrote, back)) in wrote.iter().zip(back).enumerate() {
                compare(&format!("{path}/{at}"), wrote, back, unknown);
            }
        }
        _ if wrote == back => {}
        _ => unknown.push(format!("{path} is {back}, not {wrote}")),
    }
}

fn agents() -> (Service, StatefulSet) {
    let [service, set] = objects("windtunnel.yaml").try_into().unwrap();
    (typed(&service).unwrap(), typed(&set).unwrap())
}

fn run() -> (ConfigMap, Job) {
    let [net, job] = objects("run.yaml").try_into().unwrap();
    (typed(&net).unwrap(), typed(&job).unwrap())
}

#[test]
fn every_manifest_follows_the_published_schema() {
    let names = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let names: BTreeSet<_> = names.collect();
    assert_eq!(names, ["run.yaml".into(), "windtunnel.yaml".into()].into());
    agents();
    run();
}

#[test]
fn a_misspelt_field_and_a_value_of_another_kind_are_noticed() {
    let mut set = objects("windtunnel.yaml").remove(1);
    set["spec"]["template"]["spec"]["hostusers"] = false.into();
    let unknown = typed::<StatefulSet>(&set).unwrap_err();
    assert_eq!(unknown, "/spec/template/spec/hostusers is not a field");
    let mut set = objects("windtunnel.yaml").remove(1);
    set["spec"]["replicas"] = "three".into();
    assert!(typed::<StatefulSet>(&set).is_err());
}

#[test]
fn the_agents_pods_have_no_privileges() {
    let (_, set) = agents();
    let pod = set.spec.unwrap().template.spec.unwrap();
    assert_eq!((pod.host_users, pod.host_network, pod.host_pid), (Some(false), None, None));
    let container = &pod.containers[0];
    let security = container.security_context.clone().unwrap();
    assert_eq!(
        (security.privileged, security.allow_privilege_escalation),
        (Some(false), Some(false))
    );
    let capabilities = security.capabilities.unwrap();
    assert_eq!((capabilities.add, capabilities.drop), (None, Some(vec!["ALL".to_owned()])));
    assert_eq!(security.proc_mount.as_deref(), Some("Unmasked"));
    assert_eq!(pod.security_context.unwrap().run_as_non_root, Some(true));
}

#[test]
fn the_parts_of_the_manifests_name_each_other_rightly() {
    let (service, set) = agents();
    let name = service.metadata.name.unwrap();
    let (service, spec) = (service.spec.unwrap(), set.spec.unwrap());
    assert_eq!(service.cluster_ip.as_deref(), Some("None"));
    assert_eq!(spec.service_name.as_ref(), Some(&name));
    let labels = spec.template.metadata.unwrap().labels;
    assert_eq!((service.selector, spec.selector.match_labels), (labels.clone(), labels));
    let pod = spec.template.spec.unwrap();
    let joined = value(&pod, "WINDTUNNEL_JOIN");
    assert_eq!(joined.as_deref(), Some(name.as_str()));
    let (net, job) = run();
    let runner = job.spec.unwrap().template.spec.unwrap();
    let command = runner.containers[0].args.clone().unwrap().concat();
    assert!(command.contains(&format!("--hosts {name},all ")), "{command}");
    assert!(volumes(&runner).contains(&format!("net={}", net.metadata.name.unwrap())));
    for pod in [&pod, &runner] {
        assert!(volumes(pod).contains("key=windtunnel-key"));
        let mounts = pod.containers[0].volume_mounts.iter().flatten();
        let volumes = pod.volumes.iter().flatten().map(|volume| &volume.name);
        assert_eq!(mounts.map(|mount| &mount.name).collect::<BTreeSet<_>>(), volumes.collect());
    }
}

#[test]
fn every_variable_is_one_of_an_option_of_the_agent_and_the_commands_exist() {
    let (_, set) = agents();
    let pod = set.spec.unwrap().template.spec.unwrap();
    let command = windtunnel_cli::command();
    let agent = command.find_subcommand("agent").unwrap();
    let known: BTreeSet<&str> =
        agent.get_arguments().filter_map(|option| option.get_env()?.to_str()).collect();
    let set = pod.containers[0].env.iter().flatten().map(|variable| variable.name.as_str());
    let set: Vec<&str> = set.filter(|name| name.starts_with("WINDTUNNEL_")).collect();
    assert!(!set.is_empty());
    assert_eq!(set.iter().filter(|name| !known.contains(**name)).count(), 0, "{set:?}");
    let (_, job) = run();
    let runner = job.spec.unwrap().template.spec.unwrap();
    let probe = pod.containers[0].readiness_probe.clone().unwrap().exec.unwrap().command.unwrap();
    let started = [&pod, &runner].map(|pod| pod.containers[0].args.clone().unwrap().concat());
    for line in started.into_iter().chain(probe.last().cloned()) {
        let words = line.trim_start_matches("exec ").split(" < ").next().unwrap();
        let parsed = windtunnel_cli::command().try_get_matches_from(words.split(' '));
        assert!(parsed.is_ok(), "{line}: {parsed:?}");
    }
}

fn value(pod: &PodSpec, name: &str) -> Option<String> {
    let mut all = pod.containers[0].env.iter().flatten();
    all.find(|variable| variable.name == name)?.value.clone()
}

/// Sources of volumes: `volume=source`.
fn volumes(pod: &PodSpec) -> BTreeSet<String> {
    let source = |volume: &k8s_openapi::api::core::v1::Volume| {
        let secret = volume.secret.as_ref().and_then(|secret| secret.secret_name.clone());
        let map = volume.config_map.as_ref().map(|map| map.name.clone());
        Some(format!("{}={}", volume.name, secret.or(map)?))
    };
    pod.volumes.iter().flatten().filter_map(source).collect()
}
