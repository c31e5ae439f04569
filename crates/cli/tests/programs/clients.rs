//! Well-known servers and clients, and programs without any library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::{Lab, any_user, find_program, is_missing, is_root, missing};

#[test]
fn curl_fetches_from_nginx_on_port_80() {
    if is_missing(&["nginx", "curl"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.start_scenario("nginx").finish();
        outcome.assert_code(0);
        assert_eq!(outcome.file("nodes/client/stdout.0"), "from 10.0.0.1\n");
        assert_eq!(outcome.file("nodes/client/stdout.1"), "from fd00::1\n");
        lab.assert_nothing_left();
    }
}

#[test]
fn redis_keeps_what_a_client_gives_it() {
    if is_missing(&["redis-server", "redis-cli"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.start_scenario("redis").finish();
        outcome.assert_code(0);
        assert_eq!(outcome.file("nodes/reader/stdout"), "tunnel\n");
        lab.assert_nothing_left();
    }
}

#[test]
fn python_serves_files() {
    if is_missing(&["python3", "curl"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("page", "a page");
        let outcome = lab.pass(
            "nodes:
  web: {run: python3 -m http.server 80, daemon: true, ready: tcp:80}
  client: {run: curl -sS http://web/page, after: web}
links: [{between: [web, client], latency: 5ms, loss: 1%}]
",
        );
        assert_eq!(outcome.output("client"), "a page");
    }
}

#[test]
fn ssh_logs_in_to_another_node() {
    if is_missing(&["ssh", "sshd", "ssh-keygen"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        // Nothing is missing: sshd refuses users without a shell in the password file.
        let Some(name) = name_of(lab.user().number()) else {
            eprintln!("passed over: user {} has no shell", lab.user().number());
            continue;
        };
        let outcome = lab.pass(&ssh_scenario(&lab));
        assert_eq!(outcome.output("client"), format!("{name} on server\n"));
        lab.assert_nothing_left();
    }
}

#[test]
fn a_static_binary_is_no_different() {
    if is_missing(&["busybox"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.folder("www");
        lab.write("www/page", "static\n");
        // A file, because busybox's nc ends when the other side has nothing to say, even if its own
        // input is late.
        lab.write("hello", "hello\n");
        let outcome = lab.pass(
            "nodes:
  server: {run: busybox httpd -f -p 80 -h www, daemon: true, ready: tcp:80}
  client:
    after: server
    user: root  # its ping knows raw sockets only
    run:
      - {run: busybox wget -q -O - http://server/page}
      - {run: busybox ping -4 -c 2 server}
  ear: {run: busybox nc -l -p 7000, ready: tcp:7000}
  mouth: {run: [sh, -c, 'exec busybox nc ear 7000 < hello'], after: ear}
routers: [r]
links:
  - {between: [server, r], latency: 2ms}
  - {between: [client, r], latency: 2ms}
  - {between: [ear, r]}
  - {between: [mouth, r]}
",
        );
        assert_eq!(outcome.file("nodes/client/stdout.0"), "static\n");
        assert!(outcome.file("nodes/client/stdout.1").contains("2 packets received"));
        assert_eq!(outcome.output("ear"), "hello\n");
    }
}

#[test]
fn a_static_go_program_finds_nodes_by_name() {
    if is_missing(&["curl"]) {
        return;
    }
    let Some(go) = go() else { return };
    for user in any_user() {
        let lab = Lab::new(user);
        build_fetch(&lab, &go);
        let outcome = lab.pass(
            "nodes:
  server: {run: ./fetch serve, daemon: true, ready: tcp:80}
  client: {run: [{run: ./fetch http://server/}, {run: curl -sS http://server/}], after: server}
routers: [r]
links:
  - {between: [server, r], latency: 2ms}
  - {between: [client, r], latency: 2ms}
",
        );
        for program in 0..2 {
            let text = outcome.file(&format!("nodes/client/stdout.{program}"));
            assert_eq!(text, "hello from server\n");
        }
    }
}

/// Go's compiler; `None`: it is missing, which is said.
pub(crate) fn go() -> Option<PathBuf> {
    let places = [find_program("go"), Some("/usr/local/go/bin/go".into())];
    let found = places.into_iter().flatten().find(|path| path.is_file());
    if found.is_none() {
        missing("the program go");
    }
    found
}

/// Compiles the static program `fetch` into the test's folder.
pub(crate) fn build_fetch(lab: &Lab, go: &Path) {
    build_go(lab, go, "fetch");
}

/// Compiles a program beside these tests into the test's folder, without any library.
pub(crate) fn build_go(lab: &Lab, go: &Path, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let source = folder.join(format!("{name}.go"));
    let binary = lab.path().join(name);
    let mut build = Command::new(go);
    build.arg("build").arg("-o").arg(&binary).arg(source).current_dir(lab.path());
    build.env("CGO_ENABLED", "0").env("GOFLAGS", "-mod=mod").env("GOPROXY", "off");
    // Kept between runs where the build's folder is ours: the standard library takes a while.
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-cache");
    let kept = fs::create_dir_all(&kept).map(|()| kept);
    let cache = kept.unwrap_or_else(|_| lab.folder("go-cache"));
    let seen = build.env("GOCACHE", cache).env("GOTOOLCHAIN", "local").output().unwrap();
    assert!(seen.status.success(), "{seen:?}");
}

/// A client that logs in to a server; their keys are written to the test's folder.
pub(crate) fn ssh_scenario(lab: &Lab) -> String {
    if is_root() && !Path::new("/run/sshd").exists() {
        fs::create_dir_all("/run/sshd").unwrap();
    }
    for key in ["host_key", "user_key"] {
        let path = lab.path().join(key);
        let mut make = Command::new("ssh-keygen");
        make.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&path);
        assert!(make.status().unwrap().success());
        lab.own(&path);
    }
    fs::copy(lab.path().join("user_key.pub"), lab.path().join("authorized_keys")).unwrap();
    lab.own(&lab.path().join("authorized_keys"));
    let at = lab.path().display();
    let sshd = find_program("sshd").unwrap();
    let sshd = sshd.display();
    let server = format!(
        "[{sshd}, -D, -e, -f, /dev/null, -p, 22, -h, {at}/host_key, -o, 'AuthorizedKeysFile={at}/authorized_keys', \
         -o, StrictModes=no, -o, PidFile=none, -o, UsePAM=no, -o, PasswordAuthentication=no]"
    );
    let client = format!(
        "[ssh, -F, /dev/null, -i, {at}/user_key, -o, StrictHostKeyChecking=no, -o, UserKnownHostsFile=/dev/null, \
         -o, BatchMode=yes, server, 'echo $(id -un) on $(hostname)']"
    );
    format!(
        "nodes:
  server: {{run: {server}, daemon: true, ready: tcp:22}}
  client: {{run: {client}, after: server}}
links: [{{between: [server, client], latency: 3ms}}]
"
    )
}

/// A user's name in the password file.
pub(crate) fn name_of(number: u32) -> Option<String> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    let number = number.to_string();
    let entry = text.lines().find(|line| line.split(':').nth(2) == Some(&number))?;
    // A user without a shell is refused.
    let shell = entry.rsplit(':').next()?;
    (!shell.ends_with("nologin") && !shell.ends_with("false"))
        .then(|| entry.split(':').next().map(str::to_owned))?
}
