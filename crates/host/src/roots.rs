//! File systems of nodes' own, before the nodes are there: images are unpacked, and each node gets
//! folders for what it writes.
//!
//! This comes after the process has left the machine's network, because only in the run's user
//! namespace can files have the owners that nodes give them.

mod account;
pub mod emulator;
mod error;
mod fetching;
mod volumes;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use windtunnel_folder::{RunOutputFolder, VOLUMES};
use windtunnel_image::{Cache, Image, ImageOwnerMapping, LeftOut, MergedLayerTree};
use windtunnel_model::plan::{
    ImageLocation, Node, NodeFilesystem, Platform, ProgramUser, RootSource, VolumeSource,
};
use windtunnel_model::{NodeId, Plan};
use windtunnel_node::{Namespaces, OwnRoot};

use crate::observer::{Observer, ObserverNotice};
pub use error::RootError;
pub(crate) use fetching::fetch;
pub use fetching::{fetch_for, place_of};
use volumes::Volumes;

/// Prepares the file systems of the nodes that are `here`. What is not as it should be goes to `notes`.
pub(crate) fn prepare(
    plan: &Plan,
    here: Option<&[bool]>,
    folder: &RunOutputFolder,
    namespaces: &Namespaces,
    observer: &dyn Observer,
    notes: &mut Vec<String>,
) -> Result<BTreeMap<NodeId, OwnRoot>, RootError> {
    let nodes: Vec<(NodeId, &Node, &NodeFilesystem)> = plan
        .nodes
        .iter()
        .enumerate()
        .filter_map(|(id, node)| Some((NodeId::from_index(id), node, node.root.as_ref()?)))
        .filter(|(id, ..)| is_one_of(here, id.index()))
        .collect();
    if nodes.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids = namespaces.owners();
    let trees = trees(&nodes, ids, observer, notes)?;
    note_identities(&nodes, ids, notes);
    let mut volumes = Volumes::new(plan, here, folder);
    let mut prepared = BTreeMap::new();
    for (id, node, root) in nodes {
        let Some(tree) = trees.get(&NodeFilesystemKey::of(root)) else { continue };
        let programs = account::of(node, root, tree, namespaces, notes)?;
        let place = folder.node(&node.name).join("files");
        let lower = make_place(&place, tree)
            .map_err(|source| RootError::Place { path: place.clone(), source })?;
        let volumes = volumes.of(node, root, tree)?;
        let account::ProgramUserAccount { user: account, groups, home } = programs;
        let (base, folders) = (place.join(LAYERS), starts(node, root));
        let own = OwnRoot { base, lower, folders, place, volumes, account, groups, home };
        prepared.insert(id, own);
    }
    Ok(prepared)
}

/// Removes what nodes have written into file systems of their own, where it is not to be kept; what could
/// not be removed. All nodes must be gone.
pub(crate) fn remove(plan: &Plan, folder: &RunOutputFolder) -> Vec<String> {
    let mut failures = Vec::new();
    let mut remove = |path: &Path| match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            failures.push(format!("{} could not be removed: {error}", path.display()));
        }
        _ => {}
    };
    let own = plan.nodes.iter().filter_map(|node| Some((node, node.root.as_ref()?)));
    for (node, root) in own {
        let place = folder.node(&node.name).join("files");
        if root.keep {
            ["root", "work", "empty", LAYERS].iter().for_each(|part| remove(&place.join(part)));
        } else {
            remove(&place);
        }
    }
    let volumes = folder.file(VOLUMES);
    let kept = volumes::names(plan, |root| root.keep);
    let all = volumes::names(plan, |_| true);
    all.difference(&kept).for_each(|name| remove(&volumes.join(name)));
    // It is left if one of them is.
    let _ = fs::remove_dir(&volumes);
    failures
}

/// Whether a node is among those of this machine; `None`: all are.
fn is_one_of(here: Option<&[bool]>, node: usize) -> bool {
    here.is_none_or(|here| here.get(node).copied().unwrap_or(false))
}

/// What distinguishes file systems: the same for nodes of one image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum NodeFilesystemKey {
    Folder(String),
    Image { location: ImageLocation, name: Option<String>, platform: Option<Platform> },
}

impl NodeFilesystemKey {
    fn of(root: &NodeFilesystem) -> NodeFilesystemKey {
        match &root.source {
            RootSource::Folder(path) => NodeFilesystemKey::Folder(path.clone()),
            RootSource::Image { location, name, platform, .. } => NodeFilesystemKey::Image {
                location: location.clone(),
                name: name.clone(),
                platform: platform.clone(),
            },
        }
    }
}

/// Makes the trees of all nodes, each once.
fn trees(
    nodes: &[(NodeId, &Node, &NodeFilesystem)],
    ids: ImageOwnerMapping,
    observer: &dyn Observer,
    notes: &mut Vec<String>,
) -> Result<BTreeMap<NodeFilesystemKey, MergedLayerTree>, RootError> {
    let mut trees = BTreeMap::new();
    let mut images = BTreeMap::new();
    for (_, node, root) in nodes {
        match &root.source {
            RootSource::Folder(path) => {
                let folder = PathBuf::from(path);
                if !folder.is_dir() {
                    return Err(RootError::NoFolder { node: node.name.clone(), path: folder });
                }
                trees.insert(NodeFilesystemKey::of(root), MergedLayerTree::new(vec![folder]));
            }
            RootSource::Image { location, name, platform, digest, .. } => {
                if images.contains_key(&NodeFilesystemKey::of(root)) {
                    continue;
                }
                let place = place_of(&root.source)?;
                let image = Image::open(&place, name.as_deref(), platform.as_ref())
                    .map_err(|source| RootError::Image { node: node.name.clone(), source })?;
                if let Some(expected) = digest.as_deref().filter(|it| *it != image.id().to_string())
                {
                    let (node, expected) = (node.name.clone(), expected.to_owned());
                    let (path, found) = (location.to_string().into(), image.id().to_string());
                    return Err(RootError::Other { node, path, expected, found });
                }
                images.insert(NodeFilesystemKey::of(root), image);
            }
        }
    }
    if images.is_empty() {
        return Ok(trees);
    }
    let place = cache_folder().ok_or(RootError::NoCache)?;
    let cache = Cache::open(&place, ids)?;
    let missing = images.values().flat_map(|image| {
        let layers = image.layers().iter().filter(|layer| !cache.has(layer));
        layers.map(|layer| image.stored_bytes(layer))
    });
    let (total, mut done) = (missing.sum::<u64>(), 0);
    for (key, image) in images {
        let mut progress = |bytes: u64| {
            done = (done + bytes).min(total);
            observer.notice(&ObserverNotice::Unpacking { done, total });
        };
        trees.insert(key, unpack(&cache, &image, &mut progress, ids, notes)?);
    }
    Ok(trees)
}

fn unpack(
    cache: &Cache,
    image: &Image,
    progress: &mut dyn FnMut(u64),
    ids: ImageOwnerMapping,
    notes: &mut Vec<String>,
) -> Result<MergedLayerTree, RootError> {
    let failed = |source| RootError::Layer { path: image.path().to_owned(), source };
    // The topmost first.
    let mut lower = Vec::new();
    let mut left_out = LeftOut::default();
    for layer in image.layers() {
        let cached = cache.layer(image, layer, &lower, progress).map_err(failed)?;
        lower.insert(0, cached.folder.clone());
        left_out.owners += cached.left_out.owners;
        left_out.attributes += cached.left_out.attributes;
        left_out.devices += cached.left_out.devices;
        // Its lock is to be held as long as this process and the nodes are there.
        std::mem::forget(cached);
    }
    note_left_out(image, left_out, ids, notes);
    Ok(MergedLayerTree::new(lower))
}

fn note_left_out(
    image: &Image,
    left_out: LeftOut,
    ids: ImageOwnerMapping,
    notes: &mut Vec<String>,
) {
    let LeftOut { owners, attributes, devices } = left_out;
    let image = image.path().display();
    let files = |number: u64| if number == 1 { "file".to_owned() } else { "files".to_owned() };
    if owners > 0 {
        let why = match ids {
            ImageOwnerMapping::One => "there are no subordinate identities",
            _ => "their numbers are none of this user namespace",
        };
        notes.push(format!(
            "{owners} {} of {image} belong to root instead of the user that the image names: {why}",
            files(owners)
        ));
    }
    if attributes > 0 {
        notes.push(format!(
            "{attributes} extended attributes of {image} could not be set: programs with file \
             capabilities, such as ping, may lack them"
        ));
    }
    if devices > 0 {
        notes.push(format!(
            "{devices} device {} below /dev of {image} are left out",
            files(devices)
        ));
    }
}

/// With one identity, programs cannot become other users, and cannot give files to them.
fn note_identities(
    nodes: &[(NodeId, &Node, &NodeFilesystem)],
    ids: ImageOwnerMapping,
    notes: &mut Vec<String>,
) {
    if ids != ImageOwnerMapping::One {
        return;
    }
    if nodes.iter().any(|(_, node, _)| node.user != ProgramUser::Invoker) {
        notes.push(
            "nodes with a file system of their own have one user, because this user has no subordinate \
             identities (/etc/subuid, newuidmap): chown and setuid to any other fail with \"Invalid \
             argument\", so that programs which give up root's rights may refuse to start"
                .to_owned(),
        );
    }
}

/// A folder that only its owner can enter: a node's files may have programs that give rights. In its
/// folder `layers` are short names for those of the tree, the topmost first.
fn make_place(place: &Path, tree: &MergedLayerTree) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(place)?;
    fs::set_permissions(place, Permissions::from_mode(0o700))?;
    ["upper", "work", "root", "empty", LAYERS].iter().try_for_each(|part| {
        let part = place.join(part);
        fs::create_dir(&part)?;
        fs::set_permissions(part, Permissions::from_mode(0o755))
    })?;
    // It is what programs see of the root folder.
    tree.like_root(&place.join("upper"))?;
    let empty = [place.join("empty")];
    // An image without layers.
    let layers = if tree.layers().is_empty() { &empty } else { tree.layers() };
    let name = |(number, layer): (usize, &PathBuf)| {
        let name = PathBuf::from(number.to_string());
        symlink(layer, place.join(LAYERS).join(&name)).map(|()| name)
    };
    layers.iter().enumerate().map(name).collect()
}

/// Where the programs of a node with an image start, which need the folder whether the image has it or
/// not (as in other container engines).
fn starts(node: &Node, root: &NodeFilesystem) -> Vec<String> {
    if matches!(root.source, RootSource::Folder(_)) {
        return Vec::new();
    }
    let programs = node.programs.iter().filter_map(|program| program.cwd.clone());
    root.cwd.iter().cloned().chain(programs).collect()
}

/// Below the place of a node's files: links with short names to its layers, because the names of all
/// have to fit into a page together (mount(2)), of which an image may have 500.
const LAYERS: &str = "layers";

/// Where images are unpacked: `WINDTUNNEL_IMAGE_CACHE`, or `windtunnel/images` in `XDG_CACHE_HOME` or
/// `~/.cache`; `None`: no home is known.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    let set =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = || set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    set("WINDTUNNEL_IMAGE_CACHE").or_else(|| Some(caches()?.join("windtunnel/images")))
}

/// The name of a volume that is a folder of the run.
pub(crate) fn is_named(source: &VolumeSource) -> Option<&str> {
    match source {
        VolumeSource::Named(name) => Some(name),
        VolumeSource::Path(_) => None,
    }
}
