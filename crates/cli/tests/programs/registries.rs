//! Images of registries: Debian's `docker-registry` on this machine's loopback, filled by `skopeo`.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::image::{Files, ImageBuilder};
use crate::support::registry::{Registry, configuration};
use crate::support::{Lab, User, is_missing, is_root, missing, users};

/// An archive of an image whose program says `text`.
fn saying(lab: &Lab, text: &str) -> std::path::PathBuf {
    let files = Files::new().programs(&["/bin/sh", "cat", "sleep"]).file("/text", text);
    let config = json!({"Entrypoint": ["cat", "/text"]});
    ImageBuilder::new(lab.path()).layer(&files, 0).write("image.tar", &config)
}

fn scenario(reference: &str) -> String {
    format!(
        "nodes:\n  a: {{image: \"oci://{reference}\"}}\n  b: {{image: \"oci://{reference}\"}}\n\
         links: [{{between: [a, b]}}]\n"
    )
}

fn reference_in(plan: &str) -> String {
    let plan: Value = serde_json::from_str(plan).unwrap();
    let text = find(&plan, "path").expect("a plan with an image");
    text.strip_prefix("oci://").expect("a reference").to_owned()
}

/// The first text with this key that is a reference, wherever it is.
fn find<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    match value {
        Value::Object(map) => map
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| text.starts_with("oci://"))
            .or_else(|| map.values().find_map(|value| find(value, key))),
        Value::Array(items) => items.iter().find_map(|value| find(value, key)),
        _ => None,
    }
}

#[test]
fn a_tag_is_asked_for_at_each_run_and_a_digest_that_is_there_needs_no_registry() {
    for user in users() {
        let lab = Lab::new(user);
        let Some(registry) = Registry::start(lab.path()) else { return };
        registry.push(&saying(&lab, "first\n"), "team/app:1");
        let tag = format!("{}/team/app:1", registry.address());
        let first = lab.pass(&scenario(&tag));
        assert_eq!(first.output("a"), "first\n", "{}", first.describe());
        let pinned = reference_in(&first.file("plan.json"));
        assert!(pinned.starts_with(&format!("{tag}@sha256:")), "{pinned}");
        registry.push(&saying(&lab, "second\n"), "team/app:1");
        assert_eq!(lab.pass(&scenario(&tag)).output("b"), "second\n", "the tag has moved");
        drop(registry);
        assert_eq!(lab.pass(&scenario(&pinned)).output("a"), "first\n", "as the digest says");
        let outcome = lab.run(&scenario(&tag));
        outcome.assert_code(4);
        let talk = outcome.describe();
        assert!(talk.contains("cannot fetch") && talk.contains(&tag), "{talk}");
        assert!(talk.contains("hint: an image that was fetched once"), "{talk}");
        lab.assert_nothing_left();
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn images_of_registries_are_listed_and_cleared_unless_a_run_uses_them() {
    for user in users() {
        let lab = Lab::new(user);
        let Some(registry) = Registry::start(lab.path()) else { return };
        registry.push(&saying(&lab, "x"), "app:1");
        let reference = format!("{}/app:1", registry.address());
        let waits = scenario(&reference).replace(": {image", ": {run: sleep 100, image");
        let mut run = lab.start(&waits);
        run.wait_for(&[("event", "program-started")]);
        let list = || text(&lab.windtunnel(&["images"]).output().unwrap());
        let clear = || text(&lab.windtunnel(&["images", "--clear"]).output().unwrap());
        assert!(list().contains(&reference), "{}", list());
        assert!(clear().contains("; 1 image in use") && list().contains(&reference), "{}", list());
        run.signal("INT");
        run.finish();
        let cleared = clear();
        assert!(
            cleared.contains("1 image from registries") && !cleared.contains("in use"),
            "{cleared}"
        );
        assert!(!list().contains(&reference), "{}", list());
    }
}

#[test]
fn what_names_no_image_is_refused_before_anything_runs() {
    let lab = Lab::new(users()[0]);
    let Some(registry) = Registry::start(lab.path()) else { return };
    registry.push(&saying(&lab, "x"), "app:1");
    let cases = [
        (format!("{}/app:2", registry.address()), "is there such a tag?"),
        (format!("{}/nothing:1", registry.address()), "is there such a tag?"),
        (format!("{}/App:1", registry.address()), "is not a reference"),
        (format!("{}/app@sha256:{}", registry.address(), "0".repeat(64)), "cannot fetch"),
    ];
    for (reference, expected) in cases {
        lab.write("x.yaml", scenario(&reference));
        let output = lab.windtunnel(&["check", "x.yaml"]).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{}", text(&output));
        assert!(text(&output).contains(expected), "{reference}: {}", text(&output));
    }
}

/// `secret`, by bcrypt.
const PASSWORDS: &str = "me:$2b$04$DyvepBhkewft1QExeLC3P.x74aIOKJZXsgHepZJMOFUCCBfi4Ow7S\n";

/// Runs a command in a network of its own, in which 192.0.2.1 is a registry with TLS and passwords.
const WITH_REGISTRY: &str = "set -e
ip link set lo up; ip address add 192.0.2.1/32 dev lo
: >registry.log
docker-registry serve tls.yml >>registry.log 2>&1 & registry=$!
trap 'kill $registry' EXIT
tail -f -n +1 --pid=$registry registry.log | grep -q -m 1 'listening on'
skopeo --insecure-policy copy --quiet --dest-tls-verify=false --dest-creds me:secret oci-archive:image.tar docker://192.0.2.1:5000/app:1
\"$@\"
";

#[test]
fn a_registry_with_tls_wants_a_known_certificate_and_a_stored_password() {
    if !is_root() {
        return missing("root, to have a network with a registry in it");
    }
    if is_missing(&["docker-registry", "skopeo", "openssl"]) {
        return;
    }
    let lab = Lab::new(User::Invoker);
    saying(&lab, "by TLS\n");
    make_certificate(lab.path(), "other.pem");
    make_certificate(lab.path(), "cert.pem");
    lab.write("passwords", PASSWORDS);
    let more = "  tls: {certificate: cert.pem, key: key.pem}\nauth: {htpasswd: {realm: x, path: passwords}}\n";
    fs::write(lab.path().join("tls.yml"), configuration(lab.path(), "192.0.2.1:5000", more))
        .unwrap();
    lab.write("x.yaml", scenario("192.0.2.1:5000/app:1"));
    let check_with = |certificates: &Path| {
        let wrapper = ["unshare", "-n", "sh", "-c", WITH_REGISTRY, "sh"];
        let mut command = lab.windtunnel_behind(&wrapper, &["check", "x.yaml"]);
        command.env("SSL_CERT_FILE", certificates).env("SSL_CERT_DIR", "/nonexistent");
        let output = command.output().unwrap();
        (output.status.code(), text(&output))
    };
    let (known, other) = (lab.path().join("cert.pem"), lab.path().join("other.pem"));
    let check = |is_known: bool| check_with(if is_known { &known } else { &other });
    let (code, talk) = check_with(Path::new("/nonexistent"));
    assert!(code == Some(4) && talk.contains("ca-certificates"), "no certificates: {talk}");
    let (code, talk) = check(true);
    assert!(code == Some(4) && talk.contains("podman login"), "without a password: {talk}");
    let stored = json!({"auths": {"192.0.2.1:5000": {"auth": "bWU6c2VjcmV0"}}});
    lab.folder(".docker");
    lab.write(".docker/config.json", stored.to_string());
    let (code, talk) = check(false);
    assert!(code == Some(4) && talk.contains("certificate"), "an unknown certificate: {talk}");
    let (code, talk) = check(true);
    assert_eq!(code, Some(0), "{talk}");
    let wrong = json!({"auths": {"192.0.2.1:5000": {"auth": "bWU6d3Jvbmc="}}});
    lab.write(".docker/config.json", wrong.to_string());
    let (code, talk) = check(true);
    assert!(code == Some(4) && talk.contains("podman login"), "a wrong password: {talk}");
}

fn make_certificate(folder: &Path, name: &str) {
    let mut openssl = std::process::Command::new("openssl");
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ]);
    openssl.args(["-days", "2", "-subj", "/CN=registry", "-addext", "subjectAltName=IP:192.0.2.1"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    openssl.args(["-keyout", "key.pem", "-out", name]).current_dir(folder);
    let output = openssl.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}
