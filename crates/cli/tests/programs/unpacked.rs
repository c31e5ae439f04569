//! Images as another tool has them: `umoci` unpacks each of a table of images, and makes a runtime
//! configuration of it; a node of the image must see the same, as root and as an ordinary user.

#[path = "unpacked/layer.rs"]
mod layer;
#[path = "unpacked/table.rs"]
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use windtunnel_image::Sha256Digest;

use crate::support::image::ImageBuilder;
use crate::support::{Lab, User, find_program, is_missing, users};
use table::{Case, HOSTILE, SEEN};

/// What is at each path: kind and mode, owner, group, names, time, content.
type Tree = BTreeMap<String, String>;

#[test]
fn a_node_sees_of_its_image_what_umoci_unpacks() {
    if is_missing(&["umoci", "busybox", "setpriv"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        probe(&lab);
        let mut scenario = String::from("allow-unreachable: true\nnodes:\n");
        for case in SEEN {
            case.image(&lab);
            let look = "/probe/busybox sh /probe/look";
            let files = format!("image: {}, volumes: ['./probe:/probe:ro']", case.name);
            scenario += &format!("  {}: {{{files}, user: root, run: {look}}}\n", case.name);
            if !case.config.is_empty() {
                scenario += &format!("  {}-own: {{{files}}}\n", case.name);
            }
        }
        let names: Vec<String> = scenario.lines().filter_map(node_of).collect();
        let pairs = names.windows(2).map(|pair| format!("{{between: [{}]}}", pair.join(", ")));
        scenario += &format!("links: [{}]\n", pairs.collect::<Vec<_>>().join(", "));
        let outcome = lab.pass(&scenario);
        let mut wrong = Vec::new();
        for case in SEEN {
            let bundle =
                Bundle::unpack(&lab, case).unwrap_or_else(|why| panic!("{}: {why}", case.name));
            let theirs = bundle.tree(&lab);
            let ours = seen(&outcome.output(case.name), user.is_root());
            wrong.extend(differences(case.name, &ours, &theirs));
            if !case.config.is_empty() {
                let own = outcome.output(&format!("{}-own", case.name));
                wrong.extend(bundle.configuration(case, &own, user.is_root()));
            }
        }
        assert!(wrong.is_empty(), "as {user:?}:\n{}", wrong.join("\n"));
        lab.assert_nothing_left();
    }
}

#[test]
fn hostile_images_reach_nothing_and_are_refused_by_the_name_of_what_is_wrong() {
    if is_missing(&["umoci", "setpriv"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        lab.write("beside", "untouched");
        for (case, expected) in HOSTILE {
            case.image(&lab);
            lab.write(
                "s.yaml",
                format!(
                    "nodes: {{a: {{image: {}, run: /x}}, b: {{}}}}\nlinks: [{{between: [a, b]}}]\n",
                    case.name
                ),
            );
            let output = lab
                .windtunnel(&["run", "s.yaml", "--out", &format!("{}-run", case.name)])
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(matches!(output.status.code(), Some(2..=4)), "{}: {errors}", case.name);
            assert!(errors.contains(expected), "{} as {user:?}: {errors}", case.name);
            // What the other tool makes of it is its own affair, but for what is outside.
            let _ = Bundle::unpack(&lab, case);
            assert_eq!(fs::read_to_string(lab.path().join("beside")).unwrap(), "untouched");
        }
    }
}

/// The name of the node that a line of the file has.
fn node_of(line: &str) -> Option<String> {
    line.strip_prefix("  ")?.split_once(": {").map(|(name, _)| name.to_owned())
}

/// Programs that need nothing of an image, and what they say.
fn probe(lab: &Lab) {
    let folder = lab.path().join("probe");
    fs::create_dir(&folder).unwrap();
    fs::copy(find_program("busybox").unwrap(), folder.join("busybox")).unwrap();
    fs::write(folder.join("look"), LOOK).unwrap();
    fs::write(folder.join("say"), SAY).unwrap();
    for (path, mode) in [("", 0o755), ("busybox", 0o755), ("look", 0o644), ("say", 0o644)] {
        fs::set_permissions(folder.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// What a node has printed.
fn seen(output: &str, with_owners: bool) -> Tree {
    let mut tree = Tree::new();
    let mut contents = BTreeMap::new();
    for line in output.lines() {
        if let Some((sum, path)) = line.strip_prefix("sum ").and_then(|it| it.split_once("  ")) {
            contents.insert(path.to_owned(), sum.to_owned());
            continue;
        }
        let mut fields = line.splitn(7, ' ');
        let mut next = || fields.next().unwrap_or_default();
        let (mode, uid, gid, size, links, time) = (next(), next(), next(), next(), next(), next());
        let name = next().trim_matches('\'');
        let mode = u32::from_str_radix(mode, 16).unwrap_or_else(|_| panic!("{line}"));
        let (path, target) = name.split_once("' -> '").unwrap_or((name, ""));
        let number = |text: &str| text.parse::<u64>().unwrap();
        let about = About {
            mode,
            owner: with_owners.then(|| (number(uid), number(gid))),
            size: number(size),
            links: number(links),
            time: time.parse().unwrap(),
            target: target.to_owned(),
        };
        tree.insert(path.to_owned(), about.text(path));
    }
    for (path, sum) in contents {
        if let Some(text) = tree.get_mut(&path) {
            *text += &format!(" sha256:{sum}");
        }
    }
    tree
}

struct About {
    mode: u32,
    /// Where there are several.
    owner: Option<(u64, u64)>,
    size: u64,
    links: u64,
    time: i64,
    target: String,
}

impl About {
    fn text(&self, path: &str) -> String {
        let kind = self.mode & 0o170_000;
        let mut text = format!("{:o}", self.mode);
        // A link has whatever mode the kernel says.
        if kind == LINK {
            text = format!("{kind:o} -> {}", self.target);
        }
        if let Some((uid, gid)) = self.owner {
            text += &format!(" {uid}:{gid}");
        }
        if kind == FILE {
            text += &format!(" {} bytes, {} names", self.size, self.links);
        }
        // Into the root the node's own files are put.
        if kind != LINK && path != "/" {
            // What no layer names has the time of its making.
            let is_new = self.time > AFTER_ALL_LAYERS;
            text += &if is_new { " now".to_owned() } else { format!(" at {}", self.time) };
        }
        text
    }
}

/// What the other tool makes of an image.
struct Bundle {
    folder: PathBuf,
}

impl Bundle {
    fn unpack(lab: &Lab, case: &Case) -> Result<Bundle, String> {
        let folder = lab.path().join("bundles").join(case.name);
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        let owner = lab.user().number();
        std::os::unix::fs::chown(folder.parent().unwrap(), Some(owner), Some(owner)).unwrap();
        let image = format!("{}:latest", lab.path().join(case.name).display());
        let mut command = match lab.user().is_root() {
            true => Command::new("umoci"),
            false => {
                let mut command = Command::new("setpriv");
                let id = owner.to_string();
                command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "umoci"]);
                command
            }
        };
        command.args(["unpack", "--image", &image]);
        if !lab.user().is_root() {
            command.arg("--rootless");
        }
        let output = command.arg(&folder).env("HOME", lab.path()).output().unwrap();
        match output.status.success() {
            true => Ok(Bundle { folder }),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    fn tree(&self, lab: &Lab) -> Tree {
        let mut tree = Tree::new();
        let root = self.folder.join("rootfs");
        add(&root, Path::new("/"), lab.user().is_root(), &mut tree);
        tree
    }

    /// What the program of a node was started with, against the configuration for a runtime.
    fn configuration(&self, case: &Case, said: &str, is_root: bool) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join("config.json")).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        let process = &config["process"];
        let lines = |word: &str| -> Vec<String> {
            said.lines().filter_map(|line| line.strip_prefix(word)).map(str::to_owned).collect()
        };
        let strings = |value: &Value| -> Vec<String> {
            let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
            list.iter().map(|it| it.as_str().unwrap().to_owned()).collect()
        };
        let mut wrong = Vec::new();
        let mut compare = |what: &str, ours: Vec<String>, theirs: Vec<String>| {
            if ours != theirs {
                wrong.push(format!("{}: {what}: {ours:?}, and umoci {theirs:?}", case.name));
            }
        };
        // The program gets the words behind its own three.
        compare("words", lines("word "), strings(&process["args"])[3..].to_vec());
        compare("folder", lines("folder "), vec![process["cwd"].as_str().unwrap().to_owned()]);
        let number = |key: &str| process["user"][key].as_u64().unwrap().to_string();
        compare("user", lines("user "), vec![number("uid")]);
        compare("group", lines("group "), vec![number("gid")]);
        if is_root {
            let mut groups: Vec<u64> = lines("groups ")[0]
                .split_whitespace()
                .map(|it| it.parse().unwrap())
                .filter(|it: &u64| it.to_string() != number("gid"))
                .collect();
            groups.sort_unstable();
            let theirs = process["user"]["additionalGids"].as_array().cloned().unwrap_or_default();
            let mut theirs: Vec<u64> = theirs.iter().map(|it| it.as_u64().unwrap()).collect();
            theirs.sort_unstable();
            let text = |list: Vec<u64>| list.iter().map(u64::to_string).collect();
            compare("groups", text(groups), text(theirs));
        }
        // A runtime's tool adds the kind of its terminal; a node has its name and that of the host.
        let own = ["HOSTNAME=", "WINDTUNNEL_NODE=", "TERM="];
        let sorted = |mut list: Vec<String>| {
            list.retain(|entry| !own.iter().any(|name| entry.starts_with(name)));
            list.sort();
            list
        };
        let mut theirs = strings(&process["env"]);
        if !theirs.iter().any(|entry| entry.starts_with("HOME=")) {
            // Left to the runtime: runc sets it so.
            theirs.push("HOME=/".to_owned());
        }
        compare("variables", sorted(lines("variable ")), sorted(theirs));
        wrong
    }
}

fn add(root: &Path, path: &Path, with_owners: bool, tree: &mut Tree) {
    let place = root.join(path.strip_prefix("/").unwrap());
    let about = fs::symlink_metadata(&place).unwrap();
    let name = path.to_str().unwrap();
    let target = fs::read_link(&place).map(|it| it.to_str().unwrap().to_owned());
    let mut text = About {
        mode: about.mode(),
        owner: with_owners.then(|| (about.uid().into(), about.gid().into())),
        size: about.len(),
        links: about.nlink(),
        time: about.mtime(),
        target: target.unwrap_or_default(),
    }
    .text(name);
    if about.is_file() {
        text += &format!(" {}", Sha256Digest::of(&fs::read(&place).unwrap()));
    }
    tree.insert(name.to_owned(), text);
    if about.is_dir() {
        for entry in fs::read_dir(&place).unwrap() {
            add(root, &path.join(entry.unwrap().file_name()), with_owners, tree);
        }
    }
}

fn differences(case: &str, ours: &Tree, theirs: &Tree) -> Vec<String> {
    let is_own = |path: &str| {
        let below = |folder: &&str| path == *folder || path.starts_with(&format!("{folder}/"));
        OWN.iter().any(below)
    };
    let paths = ours.keys().chain(theirs.keys()).filter(|path| !is_own(path));
    let paths: std::collections::BTreeSet<&String> = paths.collect();
    let none = "nothing".to_owned();
    let text = |tree: &Tree, path: &String| tree.get(path).unwrap_or(&none).clone();
    let pairs = paths.into_iter().map(|path| (path, text(ours, path), text(theirs, path)));
    let different = pairs.filter(|(_, ours, theirs)| ours != theirs);
    different
        .map(|(path, ours, theirs)| format!("{case}: {path}: {ours}; umoci has {theirs}"))
        .collect()
}

/// What each node has of its own.
const OWN: [&str; 7] = [
    "/dev", "/proc", "/sys", "/probe", // With its names.
    "/etc", "/tmp", // The folder in which programs of a case start.
    "/not",
];

const LOOK: &str = "\
B=/probe/busybox\n\
not() { $B find / \\( -path /dev -o -path /proc -o -path /sys -o -path /probe \\) -prune -o \"$@\"; }\n\
not -exec $B stat -c '%f %u %g %s %h %Y %N' {} +\n\
not -type f -exec $B sha256sum {} + | $B sed 's/^/sum /'\n";

const SAY: &str = "\
B=/probe/busybox\n\
for word; do echo \"word $word\"; done\n\
echo \"folder $($B readlink /proc/self/cwd)\"\n\
echo \"user $($B id -u)\"\n\
echo \"group $($B id -g)\"\n\
echo \"groups $($B id -G)\"\n\
$B tr '\\0' '\\n' </proc/$$/environ | $B sed 's/^/variable /'\n";

/// No entry of the table is so young: 2020.
const AFTER_ALL_LAYERS: i64 = 1_577_836_800;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

impl Case {
    /// Writes the image as the folder of an OCI layout that is called as the case.
    fn image(&self, lab: &Lab) {
        let config = if self.config.is_empty() { "{}" } else { self.config };
        let config: Value = serde_json::from_str(config).unwrap();
        let mut builder = ImageBuilder::new(lab.path());
        for entries in (self.layers)() {
            builder = builder.raw(layer::tar(&entries));
        }
        builder.write_layout(self.name, &config, self.damage);
    }
}

impl User {
    fn is_root(self) -> bool {
        self == User::Invoker && crate::support::is_root()
    }
}
