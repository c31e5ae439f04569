//! Nodes with the files of images on several machines. All machines of a test see one tree of files, so
//! that a path leads to the same file on each, unless one has mounted another there.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::support::image::{Files, ImageBuilder};
use super::support::registry::Registry;
use super::support::{Machines, Outcome, is_missing, is_root, missing};

/// An archive of an image with a web server and a client, of which a page is not the machine's.
fn image(machines: &Machines, name: &str, page: &str) -> PathBuf {
    let files = Files::new()
        .programs(&["busybox", "/bin/sh", "cat"])
        .file("/srv/page", page)
        .file("/data/seed", "seed\n");
    let config = json!({"Env": ["PATH=/usr/bin:/bin"], "Cmd": ["cat", "/srv/page"]});
    ImageBuilder::new(machines.path()).layer(&files, 0).write(name, &config)
}

/// A server on the second machine and a client on the first one, both of one image.
fn web(image: &str) -> String {
    format!(
        "nodes:\n  \
           web: {{image: '{image}', run: busybox httpd -f -p 80 -h /srv, daemon: true, ready: tcp:80, pin: two}}\n  \
           client: {{image: '{image}', run: sh -c 'busybox wget -q -O /got http://web/page && cat /got', after: web, pin: one, \
                     keep-files: true}}\n\
         links: [{{between: [web, client], latency: 10ms}}]\n\
         expect:\n  - {{node: client, exit: 0}}\n  - {{node: client, log: from an image}}\n  \
           - {{path: [client, web], rtt: {{min: 19500us}}}}\n"
    )
}

/// The digest of the only image of a run's plan, and how it is named.
fn named_in(outcome: &Outcome) -> (String, String) {
    let plan: Value = serde_json::from_str(&outcome.file("plan.json")).unwrap();
    let nodes = plan["nodes"].as_array().unwrap().iter();
    let images: Vec<_> = nodes.map(|node| &node["root"]["source"]["image"]).collect();
    let text = |key: &str| {
        assert!(images.iter().all(|image| image[key] == images[0][key]), "{images:?}");
        images[0][key].as_str().unwrap_or_else(|| panic!("{key} of {images:?}")).to_owned()
    };
    (text("digest"), text("path"))
}

#[test]
fn nodes_of_one_image_on_two_machines_run_and_are_judged() {
    if is_missing(&["busybox", "ldd"]) {
        return;
    }
    let Some(mut machines) = Machines::new(2) else { return };
    let archive = image(&machines, "app.tar", "from an image\n");
    let outcome = machines.pass(&web(archive.to_str().unwrap()));
    assert_eq!(outcome.output("client"), "from an image\n");
    let last = outcome.stdout.lines().last().unwrap();
    assert!(last.starts_with("FAITHFUL, PASSED: 3 of 3 expectations met"), "{last}");
    assert!(named_in(&outcome).0.starts_with("sha256:"));
    assert_eq!(outcome.file("nodes/client/files/upper/got"), "from an image\n", "it is kept");
    assert!(!outcome.folder.join("nodes/web/files").exists(), "it is not");
    for at in 0..2 {
        machines.assert_nothing_left(at);
    }
}

/// Has another file where the first one is, and becomes the rest.
const MOUNTED: &str = "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"";

#[test]
fn another_image_at_the_same_place_is_refused_by_the_machine_that_has_it() {
    if is_missing(&["busybox", "ldd", "mount"]) {
        return;
    }
    let Some(mut machines) = Machines::with_first(1, 2) else { return };
    let archive = image(&machines, "app.tar", "from an image\n");
    let other = image(&machines, "other.tar", "from another image\n");
    let (archive, other) = (archive.to_str().unwrap(), other.to_str().unwrap());
    let wrapper = ["unshare", "--mount", "--", "sh", "-c", MOUNTED, "sh", other, archive];
    machines.agent_behind(1, &wrapper);
    let outcome = machines.start(&web(archive), &[]).finish();
    outcome.assert_code(3);
    let error = format!("error: host two: node web: {archive} is the image sha256:");
    assert!(outcome.stderr.contains(&error), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(" here, and the run is of sha256:"), "{}", outcome.stderr);
    let hint = "hint: copy the image to the same place on every machine";
    assert!(outcome.stderr.contains(hint), "{}", outcome.stderr);
    for at in 0..2 {
        machines.assert_nothing_left(at);
    }
}

#[test]
fn a_named_volume_belongs_to_nodes_of_one_machine() {
    if is_missing(&["busybox", "ldd"]) {
        return;
    }
    let Some(mut machines) = Machines::new(2) else { return };
    let archive = image(&machines, "app.tar", "from an image\n");
    let file = |second: &str, more: &str| {
        let image = archive.display();
        format!(
            "nodes:\n  \
               a: {{image: {image}, volumes: ['shared:/data'], run: sh -c 'echo more > /data/more', \
                   ready: exit, pin: two{more}}}\n  \
               b: {{image: {image}, volumes: ['shared:/else'], run: sh -c 'cat /else/*', after: a, \
                   pin: {second}}}\n  \
               c: {{run: 'true', pin: one}}\n\
             routers: [r]\nlinks: [{{between: [a, r]}}, {{between: [b, r]}}, {{between: [c, r]}}]\n"
        )
    };
    let outcome = machines.start(&file("one", ""), &[]).finish();
    outcome.assert_code(3);
    let error =
        "nodes on several machines have the volume shared, which cannot be shared between machines";
    assert!(outcome.stderr.contains(error), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: `pin` puts its nodes on one machine"));
    let outcome = machines.pass(&file("two", ""));
    assert_eq!(outcome.output("b"), "more\nseed\n");
    assert!(!outcome.folder.join("volumes").exists());
    let outcome = machines.pass(&file("two", ", keep-files: true"));
    assert_eq!(outcome.file("volumes/shared/more"), "more\n");
    for at in 0..2 {
        machines.assert_nothing_left(at);
    }
}

#[test]
fn an_image_by_its_digest_that_each_machine_has_fetched_needs_no_registry() {
    if is_missing(&["busybox", "ldd"]) {
        return;
    }
    let Some(mut machines) = Machines::new(2) else { return };
    let archive = image(&machines, "app.tar", "from an image\n");
    let Some(registry) = Registry::start(machines.path()) else { return };
    registry.push(&archive, "team/app:1");
    // Machines have no way to the registry; their users have been where it is.
    let tag = format!("oci://{}/team/app:1", registry.address());
    let one = format!("nodes: {{a: {{image: '{tag}'}}}}\n");
    machines.write("one.yaml", &one);
    for at in 0..2 {
        let check = ["check", "../one/one.yaml"];
        let output = machines.windtunnel_outside(at, &check).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    drop(registry);
    let listed = machines.ask(0, &["images", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let pinned = format!("{tag}@{}", listed["images"][0]["digest"].as_str().unwrap());
    let outcome = machines.pass(&web(&pinned));
    assert_eq!(outcome.output("client"), "from an image\n");
    assert_eq!(named_in(&outcome).1, pinned);
    // The registry is asked for a tag, and does not answer.
    let outcome = machines.start(&web(&tag), &[]).finish();
    outcome.assert_code(4);
    assert!(outcome.stderr.contains("cannot fetch"), "{}", outcome.stderr);
    for at in 0..2 {
        machines.assert_nothing_left(at);
    }
}

/// Has subordinate identities of this test alone, and becomes the rest.
const IDENTITIES: &str =
    "mount --bind \"$1\" /etc/subuid && mount --bind \"$1\" /etc/subgid && shift && exec \"$@\"";

#[test]
fn files_that_the_user_may_not_read_come_home_from_other_machines_as_the_users() {
    if !is_root() {
        return missing("root, to give the user subordinate identities");
    }
    if is_missing(&["busybox", "ldd", "mount", "newuidmap", "newgidmap"]) {
        return;
    }
    let Some(mut machines) = Machines::with_first(1, 2) else { return };
    let files = Files::new().programs(&["busybox", "/bin/sh"]).file("/data/seed", "seed\n");
    let builder = ImageBuilder::new(machines.path()).layer(&files, 999);
    let archive = builder.write("app.tar", &json!({"User": "999:999"}));
    machines.write("ids", "65534:200000:65536\n");
    let ids = machines.home(0).join("ids");
    let wrapper = ["unshare", "--mount", "--", "sh", "-c", IDENTITIES, "sh", ids.to_str().unwrap()];
    machines.agent_behind(1, &wrapper);
    let close = "sh -c 'umask 077; cd /data; echo of 999 >new; busybox mkdir in; echo x >in/x; busybox chmod 0 new in'";
    let outcome = machines.pass(&format!(
        "nodes:\n  a: {{image: '{}', keep-files: true, run: {close}, pin: two}}\n  \
           b: {{results: true, run: 'sh -c \"cd $WINDTUNNEL_RUN/nodes/b && echo of b >own && chmod 0 own\"', pin: two}}\n  \
           c: {{run: 'true', pin: one}}\n\
         routers: [r]\nlinks: [{{between: [a, r]}}, {{between: [b, r]}}, {{between: [c, r]}}]\n",
        archive.display()
    ));
    assert!(!outcome.stdout.contains("no subordinate identities"), "{}", outcome.stdout);
    assert_eq!(outcome.file("nodes/a/files/upper/data/new"), "of 999\n");
    assert_eq!(outcome.file("nodes/a/files/upper/data/in/x"), "x\n");
    assert_eq!(outcome.file("nodes/b/own"), "of b\n");
    for at in 0..2 {
        machines.assert_nothing_left(at);
    }
}
