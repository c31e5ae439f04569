//! Compose files: services with images, what waits for what, and each key that is not carried over.

use windtunnel_model::plan::{Ready, Restart, RootSource, User, VolumeSource};
use windtunnel_topology::{Format, Options, Topology};

use super::{items, read_with, refused};
use crate::common::load;

const SHOP: &str = include_str!("../data/compose.yaml");

fn read(text: &str) -> Topology {
    let (format, topology) = read_with(text, &Options::default()).expect("it can be read");
    assert_eq!(format, Format::Compose);
    topology
}

#[test]
fn services_become_nodes_with_images_commands_and_variables() {
    let plan = load(&read(SHOP));
    let node = |name: &str| &plan.nodes[plan.node_named(name).unwrap().index()];
    let db = node("db");
    let root = db.root.as_ref().unwrap();
    let RootSource::Image { path, args, .. } = &root.source else { panic!("{root:?}") };
    assert_eq!(path, "oci://postgres:16");
    assert_eq!(args.as_deref(), Some(&["-c".to_owned(), "fsync=off".to_owned()][..]));
    assert_eq!(db.programs[0].env["POSTGRES_PASSWORD"], "se$cret");
    assert_eq!(root.volumes[0].source, VolumeSource::Named("data".into()));
    assert_eq!(root.volumes[1].source, VolumeSource::Path("/base/./init.sql".into()));
    assert!(root.volumes[1].read_only);
    let web = node("web-app");
    assert_eq!(web.programs[0].argv, ["/bin/serve", "--port", "80"]);
    assert_eq!((web.user, web.programs[0].cwd.as_deref()), (User::Root, Some("/srv")));
    assert_eq!(web.programs[0].restart, Restart::Always);
}

#[test]
fn services_wait_for_what_they_depend_on() {
    let plan = load(&read(SHOP));
    let id = |name: &str| plan.node_named(name).unwrap();
    let program = |name: &str| &plan.nodes[id(name).index()].programs[0];
    assert_eq!(program("db").ready, Some(Ready::Tcp(5432)));
    assert_eq!(program("migrate").ready, Some(Ready::Exit));
    assert_eq!(program("web-app").after, [id("db"), id("migrate")]);
    let daemons = ["db", "web-app", "migrate", "test"].map(|name| program(name).daemon);
    assert_eq!(daemons, [true, true, false, false], "the run ends when the test has");
}

#[test]
fn networks_become_lans() {
    let topology = read(SHOP);
    assert_eq!(topology.lans, ["back", "front"]);
    let ends: Vec<[&str; 2]> = topology
        .links
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
    assert_eq!(
        items(&notes.lost, "Keys of services"),
        ["cap_add of db", "deploy.resources of web-app"]
    );
    assert_eq!(items(&notes.lost, "Ports of the machine"), ["ports of web-app"]);
    assert_eq!(items(&notes.lost, "Keys of the file"), ["secrets"]);
    assert_eq!(items(&notes.lost, "Variables of the shell"), ["TOKEN"]);
    assert_eq!(items(&notes.lost, "Images are not built"), ["migrate.tar (migrate)"]);
    assert_eq!(
        items(&notes.assumed, "Images are fetched"),
        ["postgres:16", "registry.example:5000/shop/web", "shop-test"]
    );
    assert_eq!(items(&notes.left_out, "Keys of services"), ["labels of test"]);
    assert_eq!(items(&notes.assumed, "Services are healthy"), ["db (tcp:5432)"]);
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
