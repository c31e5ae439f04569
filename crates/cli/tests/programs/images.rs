//! Nodes with a file system of their own: folders and images, as root, as an ordinary user, and as one
//! with subordinate identities.

use std::fs;

use serde_json::json;

use crate::support::evidence::statistics;
use crate::support::image::{Files, ImageBuilder};
use crate::support::registry::Registry;
use crate::support::{Lab, User, is_missing, is_root, missing, unprivileged, users};

const TOOLS: [&str; 9] = ["/bin/sh", "sh", "cat", "ls", "id", "env", "chown", "stat", "sleep"];
const PASSWD: &str =
    "root:x:0:0::/root:/bin/sh\nwww-data:x:33:33::/srv:/bin/sh\nredis:x:999:999::/data:/bin/sh\n";
const GROUP: &str = "root:x:0:\nwww-data:x:33:\nredis:x:999:\n";

fn tools() -> Files {
    Files::new()
        .programs(&TOOLS)
        .file("/etc/passwd", PASSWD)
        .file("/etc/group", GROUP)
        .file("/marker", "of the image\n")
        .folder("/tmp", 0o1777)
}

fn two(node: &str) -> String {
    format!("nodes:\n  a: {node}\n  b: {{}}\nlinks: [{{between: [a, b]}}]\n")
}

#[test]
fn a_node_has_the_files_of_its_image_and_the_names_of_the_run() {
    for user in users() {
        let lab = Lab::new(user);
        let config = json!({
            "Entrypoint": ["/bin/sh", "-c"],
            "Cmd": ["cat /marker; pwd; echo $GREETING; ls / /dev; cat /etc/hosts /etc/hostname; echo x > /written; cat /written"],
            "Env": ["GREETING=hello", "PATH=/usr/bin:/bin"],
            "WorkingDir": "/etc",
        });
        ImageBuilder::new(lab.path()).layer(&tools(), 0).write("a.tar", &config);
        let outcome = lab.pass(&two("{image: a.tar}"));
        let output = outcome.output("a");
        assert!(output.starts_with("of the image\n/etc\nhello\n"), "{output}");
        for expected in ["urandom", "\tb\n", "\na\n", "x\n"] {
            assert!(output.contains(expected), "{expected} in {output}");
        }
        assert!(!output.lines().any(|line| line == "home"), "not the machine's: {output}");
        assert!(!outcome.path("nodes/a/files").exists(), "gone at the end");
        let plan = outcome.file("plan.json");
        assert!(plan.contains("\"digest\": \"sha256:"), "{plan}");
        lab.assert_nothing_left();
    }
}

#[test]
fn the_file_wins_over_the_image_and_what_is_written_can_be_kept() {
    let Some(user) = unprivileged() else { return missing("namespaces") };
    let lab = Lab::new(user);
    let config = json!({"Entrypoint": ["/bin/sh", "-c"], "Cmd": ["exit 9"], "Env": ["A=1", "B=1"]});
    ImageBuilder::new(lab.path()).layer(&tools(), 0).write("a.tar", &config);
    let run = "sh -c 'echo $A$B; pwd; echo kept > /new'";
    let node =
        format!("{{image: a.tar, run: \"{run}\", env: {{B: \"2\"}}, cwd: /tmp, keep-files: true}}");
    let outcome = lab.pass(&two(&node));
    assert_eq!(outcome.output("a"), "12\n/tmp\n");
    assert_eq!(outcome.file("nodes/a/files/upper/new"), "kept\n");
    // The same entry point with other words.
    lab.pass(&two("{image: a.tar, args: [exit 0]}"));
}

#[test]
fn two_nodes_of_one_image_do_not_see_what_the_other_writes_and_the_cache_has_it_once() {
    let Some(user) = unprivileged() else { return missing("namespaces") };
    let lab = Lab::new(user);
    ImageBuilder::new(lab.path()).layer(&tools(), 0).write("a.tar", &json!({}));
    let scenario = "nodes:\n  a: {image: a.tar, run: \"sh -c 'echo a > /marker; cat /marker'\"}\n  \
                    b: {image: a.tar, run: cat /marker, after: a}\nlinks: [{between: [a, b]}]\n";
    let scenario = scenario.replace("cat /marker'\"}", "cat /marker'\", ready: exit}");
    let outcome = lab.pass(&scenario);
    assert_eq!((outcome.output("a"), outcome.output("b")), ("a\n".into(), "of the image\n".into()));
    let listed = lab.windtunnel(&["images"]).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("\n1 layer in "), "{listed}");
    let cleared = lab.windtunnel(&["images", "--clear"]).output().unwrap();
    assert!(String::from_utf8_lossy(&cleared.stdout).starts_with("1 layer removed"));
}

#[test]
fn volumes_come_from_the_machine_or_are_folders_of_the_run() {
    for user in users() {
        let lab = Lab::new(user);
        let files = tools().file("/data/seed", "from the image\n");
        ImageBuilder::new(lab.path()).layer(&files, 0).write("a.tar", &json!({}));
        lab.write("config", "of the machine\n");
        let scenario = "nodes:\n  \
            a: {image: a.tar, volumes: ['./config:/etc/app/config:ro', 'shared:/data'], ready: exit,\n      \
                run: \"sh -c 'cat /etc/app/config /data/seed; echo more > /data/new; echo x > /etc/app/config || echo denied'\"}\n  \
            b: {image: a.tar, volumes: ['shared:/else:ro'], after: a, run: \"sh -c 'cat /else/new; echo x > /else/y || echo denied'\"}\n\
            links: [{between: [a, b]}]\n";
        let outcome = lab.pass(scenario);
        assert_eq!(outcome.output("a"), "of the machine\nfrom the image\ndenied\n");
        assert_eq!(outcome.output("b"), "more\ndenied\n");
        assert_eq!(fs::read_to_string(lab.path().join("config")).unwrap(), "of the machine\n");
        assert!(!outcome.path("volumes").exists());
    }
}

#[test]
fn a_folder_can_be_a_root_and_stays_as_it_is() {
    for user in users() {
        let lab = Lab::new(user);
        let folder = tools().into_folder(&lab, "tree");
        let outcome =
            lab.pass(&two("{root: tree, run: \"sh -c 'echo x > /marker; cat /marker; id -u'\"}"));
        let expected = format!("x\n{}\n", user.number());
        assert_eq!(outcome.output("a"), expected);
        assert_eq!(fs::read_to_string(folder.join("marker")).unwrap(), "of the image\n");
    }
}

#[test]
fn a_root_folder_of_a_group_that_cannot_be_mapped_is_named() {
    if !is_root() || users().len() < 2 {
        return missing("root, which has an ordinary user");
    }
    let lab = Lab::new(User::Ordinary);
    let folder = tools().folder("/etc", 0o755).into_folder(&lab, "tree");
    std::os::unix::fs::chown(folder.join("etc"), None, Some(4321)).unwrap();
    let outcome = lab.run(&two("{root: tree, run: id}"));
    outcome.assert_code(4);
    let said = "tree/etc belongs to a user or group that is not in the run's user namespace";
    assert!(outcome.stderr.contains(said), "{}", outcome.describe());
    assert!(outcome.stderr.contains("chgrp"), "{}", outcome.describe());
    assert!(!outcome.stderr.contains("Value too large"), "{}", outcome.describe());
}

#[test]
fn programs_are_the_user_of_the_image_or_of_the_file() {
    for user in users() {
        let lab = Lab::new(user);
        let config = json!({"User": "redis", "Cmd": ["sh", "-c", "id -u; id -g; echo $HOME"]});
        ImageBuilder::new(lab.path()).layer(&tools(), 0).write("a.tar", &config);
        let outcome = lab.pass(&two("{image: a.tar}"));
        assert_eq!(outcome.output("a"), "999\n999\n/data\n", "{}", outcome.describe());
        let outcome = lab.pass(&two("{image: a.tar, user: root}"));
        assert_eq!(outcome.output("a"), "0\n0\n/root\n");
        // Users of its files, before its own: by name or number, with a group or without.
        let scenario = "allow-unreachable: true\nnodes:\n  \
            name: {image: a.tar, user: www-data}\n  both: {image: a.tar, user: '1234:33'}\n  \
            root: {image: a.tar, user: '0:redis'}\n  other: {}\n\
            links: [{between: [name, other]}, {between: [both, other]}, {between: [root, other]}]\n";
        let outcome = lab.pass(scenario);
        assert_eq!(outcome.output("name"), "33\n33\n/srv\n", "{}", outcome.describe());
        assert_eq!(outcome.output("both"), "1234\n33\n/\n");
        assert_eq!(outcome.output("root"), "0\n999\n/root\n");
    }
}

#[test]
fn a_user_that_the_files_do_not_have_is_named() {
    let Some(user) = unprivileged() else { return missing("namespaces") };
    let lab = Lab::new(user);
    ImageBuilder::new(lab.path()).layer(&tools(), 0).write("a.tar", &json!({"Cmd": ["true"]}));
    lab.write("net.yaml", two("{image: a.tar, user: eve}"));
    let output = lab.windtunnel(&["run", "net.yaml", "--out", "out"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("no user `eve` in its /etc/passwd"), "{errors}");
}

#[test]
fn one_identity_cannot_give_files_away_and_the_run_says_so() {
    if !is_root() || users().len() < 2 {
        return missing("root, which has an ordinary user");
    }
    let run = "{image: a.tar, run: \"sh -c 'stat -c %u /data; chown 33 /data; stat -c %u /data'\"}";
    let image = |lab: &Lab| {
        let files = Files::new().folder("/data", 0o755);
        ImageBuilder::new(lab.path())
            .layer(&tools(), 0)
            .layer(&files, 999)
            .write("a.tar", &json!({}));
    };
    let root = Lab::new(User::Invoker);
    image(&root);
    assert_eq!(root.pass(&two(run)).output("a"), "999\n33\n");
    let lab = Lab::new(User::Ordinary);
    image(&lab);
    let outcome = lab.pass(&two(run));
    assert_eq!(outcome.output("a"), "0\n0\n");
    assert!(outcome.stdout.contains("no subordinate identities"), "{}", outcome.describe());
    assert!(outcome.stdout.contains("belong to root instead"), "{}", outcome.describe());
}

#[test]
fn subordinate_identities_are_the_users_of_the_image() {
    if !is_root() || is_missing(&["newuidmap", "newgidmap", "unshare", "setpriv"]) {
        return;
    }
    let lab = Lab::new(User::Ordinary);
    let files = Files::new().folder("/data", 0o755);
    let builder = ImageBuilder::new(lab.path()).layer(&tools(), 0).layer(&files, 999);
    builder.write("a.tar", &json!({"User": "redis"}));
    lab.write("ids", "65534:200000:65536\n");
    let run = "sh -c 'id -u; stat -c %u /data /marker; echo x > /data/x && cat /data/x'";
    lab.write("s.yaml", two(&format!("{{image: a.tar, run: \"{run}\"}}")));
    // The tables of identities are those of this test alone.
    let wrapped = "mount --bind ids /etc/subuid && mount --bind ids /etc/subgid && \
                   exec setpriv --reuid 65534 --regid 65534 --clear-groups -- \"$@\"";
    let becoming = ["unshare", "-m", "sh", "-c", wrapped, "sh"];
    let words = ["run", "s.yaml", "--out", "out", "--max-lateness", "5s"];
    let output = lab.windtunnel_as(&becoming, &words).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let written = fs::read_to_string(lab.path().join("out/nodes/a/stdout")).unwrap();
    assert_eq!(written, "999\n999\n0\nx\n", "{errors}");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!shown.contains("no subordinate identities"), "{shown}");
    let cleared = lab.windtunnel_as(&becoming, &["images", "--clear"]).output().unwrap();
    let text = String::from_utf8_lossy(&cleared.stdout).into_owned();
    assert!(text.starts_with("2 layers removed"), "{text}");
}

#[test]
fn commands_and_shells_run_in_the_nodes_own_files() {
    let Some(user) = unprivileged() else { return missing("namespaces") };
    let lab = Lab::new(user);
    let config = json!({"Env": ["A=image"], "WorkingDir": "/etc", "Cmd": ["sleep", "100"]});
    ImageBuilder::new(lab.path()).layer(&tools(), 0).write("a.tar", &config);
    let mut live = lab.start(&two("{image: a.tar}"));
    live.wait_for(&[("event", "program-started"), ("node", "a")]);
    let output = live.exec("a", &["sh", "-c", "cat /marker; pwd; echo $A"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "of the image\n/etc\nimage\n");
    live.signal("INT");
    live.finish();
    lab.assert_nothing_left();
}

#[test]
fn nginx_of_an_image_serves_as_root_and_as_an_ordinary_user() {
    if is_missing(&["nginx", "curl", "ldd"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let config = "user root;\ndaemon off;\nerror_log stderr;\npid /run/nginx.pid;\nevents {}\n\
                      http { access_log off; server { listen 80; root /srv; } }\n";
        let files = tools()
            .programs(&["nginx"])
            .file("/etc/nginx/nginx.conf", config)
            .file("/srv/index.html", "hello from an image\n")
            .folder("/run", 0o755)
            .folder("/var/lib/nginx", 0o755)
            .folder("/var/log/nginx", 0o755);
        let command = json!({"Cmd": ["nginx"]});
        ImageBuilder::new(lab.path()).layer(&files, 0).write("nginx.tar", &command);
        let outcome = lab.pass(
            "nodes:\n  web: {image: nginx.tar, daemon: true, ready: tcp:80}\n  \
             c: {run: curl -sS http://web/, after: web}\nlinks: [{between: [web, c]}]\n",
        );
        assert_eq!(outcome.output("c"), "hello from an image\n", "{}", outcome.describe());
        outcome.assert_conserved();
    }
}

#[test]
fn a_compose_file_with_a_database_and_two_services_runs_to_its_end() {
    if is_missing(&["redis-server", "redis-cli", "ldd"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let files = tools().programs(&["redis-server", "redis-cli"]);
        let builder = ImageBuilder::new(lab.path()).layer(&files, 0);
        let data = Files::new().folder("/data", 0o755);
        let builder = builder.layer(&data, 999);
        let server =
            json!({"Entrypoint": ["redis-server"], "User": "redis", "WorkingDir": "/data"});
        let Some(registry) = Registry::start(lab.path()) else { return };
        registry.push(&builder.write("server.tar", &server), "redis:7");
        builder.write("app.tar", &json!({}));
        let image = format!("services:\n  db:\n    image: {}/redis:7\n", registry.address());
        let compose = "    \
                       command: [--bind, 0.0.0.0, --protected-mode, 'no', --save, '']\n    \
                       healthcheck: {test: redis-cli -p 6379 ping, interval: 50ms}\n    volumes: ['data:/data']\n  \
                       writer:\n    image: app\n    build: .\n    command: redis-cli -h db set key 42\n    \
                       depends_on: {db: {condition: service_healthy}}\n  \
                       reader:\n    image: app\n    build: .\n    entrypoint: [redis-cli, -h, db]\n    \
                       command: get key\n    cap_add: [NET_ADMIN, SYS_TIME]\n    \
                       depends_on: {writer: {condition: service_completed_successfully}}\n\
                       volumes: {data: {}}\n";
        lab.write("compose.yaml", image + compose);
        let imported = lab.windtunnel(&["import", "compose.yaml"]).output().unwrap();
        let talk = String::from_utf8_lossy(&imported.stderr).into_owned();
        assert!(imported.status.success(), "{talk}");
        assert!(talk.contains("SYS_TIME of reader"), "{talk}");
        let scenario = String::from_utf8(imported.stdout).unwrap();
        let outcome = lab.pass(&scenario);
        assert_eq!(outcome.output("reader"), "42\n", "{scenario}\n{}", outcome.describe());
    }
}

#[test]
fn an_images_health_check_runs_in_it_with_its_times_or_those_of_the_file() {
    for user in users() {
        let lab = Lab::new(user);
        let check = "test \"$STATE\" = of-the-image && cat /marker /up";
        let config = json!({
            "Cmd": ["sh", "-c", "sleep 0.2; echo up > /up; sleep 1000"],
            "Env": ["PATH=/usr/bin:/bin", "STATE=of-the-image"],
            "Healthcheck": {"Test": ["CMD-SHELL", check], "Interval": 20_000_000, "Retries": 500},
        });
        ImageBuilder::new(lab.path()).layer(&tools(), 0).write("a.tar", &config);
        let nodes = |ready: &str| {
            format!(
                "nodes:\n  a: {{image: a.tar, daemon: true, ready: {ready}}}\n  \
                 b: {{run: echo started, after: a}}\nlinks: [{{between: [a, b]}}]\n"
            )
        };
        let outcome = lab.pass(&nodes("healthcheck"));
        assert_eq!(outcome.output("b"), "started\n");
        let outcome = lab.run(&nodes("{healthcheck: [cat, /none], fall: 1}"));
        outcome.assert_code(1);
        let why =
            "is not ready: a check failed: `cat /none` exited with 1: cat: /none: No such file";
        assert!(outcome.stdout.contains(why), "{}", outcome.describe());
    }
    let lab = Lab::new(users()[0]);
    ImageBuilder::new(lab.path()).layer(&tools(), 0).write("a.tar", &json!({"Cmd": ["ls"]}));
    lab.write("s.yaml", two("{image: a.tar, ready: healthcheck}"));
    let output = lab.windtunnel(&["check", "s.yaml"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{errors}");
    let none = "s.yaml:2:7: ready: `healthcheck`: the image has none (HEALTHCHECK)";
    assert!(errors.contains(none), "{errors}");
}

#[test]
fn a_health_check_of_an_image_that_cannot_be_read_is_an_error_where_it_is_used() {
    let Some(user) = unprivileged() else { return missing("namespaces") };
    let lab = Lab::new(user);
    let config = json!({"Cmd": ["cat", "/marker"], "Env": ["PATH=/usr/bin:/bin"],
                        "Healthcheck": {"Test": "curl -f x", "Interval": "30s"}});
    ImageBuilder::new(lab.path()).layer(&tools(), 0).write("a.tar", &config);
    assert_eq!(lab.pass(&two("{image: a.tar}")).output("a"), "of the image\n");
    lab.write("s.yaml", two("{image: a.tar, ready: healthcheck}"));
    let output = lab.windtunnel(&["check", "s.yaml"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{errors}");
    let why = "s.yaml:2:7: ready: `healthcheck`: the image's cannot be read: invalid type: string";
    assert!(errors.contains(why), "{errors}");
}

#[test]
fn an_image_that_is_not_there_or_is_damaged_is_refused_at_its_place() {
    let lab = Lab::new(User::Invoker);
    lab.write("s.yaml", two("{image: none.tar}"));
    let output = lab.windtunnel(&["check", "s.yaml"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(errors.contains("s.yaml:2:7: image: cannot read the image"), "{errors}");
}

#[test]
fn an_image_without_a_command_is_noticed_and_a_folder_that_is_no_folder_is_named() {
    let Some(user) = unprivileged() else { return missing("namespaces") };
    let lab = Lab::new(user);
    ImageBuilder::new(lab.path()).layer(&tools(), 0).write("a.tar", &json!({}));
    lab.write("s.yaml", two("{image: a.tar}"));
    let output = lab.windtunnel(&["check", "s.yaml"]).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("node a: it runs nothing: its image has no command"), "{said}");
    let config = json!({"Cmd": ["pwd"], "WorkingDir": "/marker"});
    ImageBuilder::new(lab.path()).layer(&tools(), 0).write("b.tar", &config);
    let outcome = lab.run(&two("{image: b.tar}"));
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(said.contains("cannot make the working folder /marker"), "{said}");
}

#[test]
fn where_an_overlay_is_denied_the_node_has_a_copy_and_says_so() {
    if !is_root() || is_missing(&["unshare"]) {
        return;
    }
    let lab = Lab::new(User::Invoker);
    ImageBuilder::new(lab.path()).layer(&tools(), 0).write("a.tar", &json!({}));
    lab.write(
        "s.yaml",
        two("{image: a.tar, run: \"sh -c 'cat /marker; echo x > /new; cat /new'\"}"),
    );
    // An overlay cannot be the upper folder of another.
    let wrapped = "mkdir l u w o && mount -t overlay overlay -o lowerdir=l,upperdir=u,workdir=w o && exec \"$@\"";
    let becoming = ["unshare", "-m", "sh", "-c", wrapped, "sh"];
    let words = ["run", "s.yaml", "--out", "o/run", "--max-lateness", "5s"];
    let output = lab.windtunnel_as(&becoming, &words).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("its files are a copy"), "{shown}\n{errors}");
    let written = fs::read_to_string(lab.path().join("u/run/nodes/a/stdout")).unwrap();
    assert_eq!(written, "of the image\nx\n");
}

#[test]
fn calls_of_programs_of_an_image_are_recorded() {
    if is_missing(&["curl", "python3", "ldd"]) {
        return;
    }
    let Some(user) = unprivileged() else { return missing("namespaces") };
    let lab = Lab::new(user);
    let files = tools().programs(&["curl"]);
    ImageBuilder::new(lab.path()).layer(&files, 0).write("a.tar", &json!({}));
    let outcome = lab.pass(
        "record: [engine, calls, tcp]\nnodes:\n  \
         a: {image: a.tar, run: curl -sS -o /dev/null http://b:8000/, after: b}\n  \
         b: {run: python3 -m http.server 8000, daemon: true, ready: tcp:8000}\n\
         links: [{between: [a, b]}]\n",
    );
    let statistics = statistics(&lab, &outcome);
    let flows = statistics["flows"].as_array().unwrap();
    let flow = flows.iter().find(|flow| flow["protocol"] == "tcp").expect("a connection");
    // The client's calls, which only the library inside of the image's files has seen.
    let written = flow["forward"]["written_bytes"].as_u64().unwrap();
    assert!(written > 0, "{flow:#}");
    assert_eq!(written, flow["forward"]["payload_bytes"].as_u64().unwrap(), "{flow:#}");
}

#[test]
fn clearing_leaves_what_a_run_uses() {
    let Some(user) = unprivileged() else { return missing("namespaces") };
    let lab = Lab::new(user);
    ImageBuilder::new(lab.path())
        .layer(&tools(), 0)
        .write("a.tar", &json!({"Cmd": ["sleep", "100"]}));
    let mut live = lab.start(&two("{image: a.tar}"));
    live.wait_for(&[("event", "program-started"), ("node", "a")]);
    let cleared = lab.windtunnel(&["images", "--clear"]).output().unwrap();
    let text = String::from_utf8_lossy(&cleared.stdout).into_owned();
    assert!(text.contains("1 layer in use"), "{text}");
    live.signal("INT");
    live.finish();
}
