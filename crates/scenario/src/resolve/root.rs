//! File systems of nodes' own: paths become absolute.

use std::collections::BTreeMap;

use windtunnel_model::plan::{ImageLocation, NodeFilesystem, RootSource, VolumeSource};

use crate::decode::{RootKeys, ScenarioDraft};
use crate::written::WrittenRoot;

/// The file system that a node's keys mean, with paths from `base`.
pub(super) fn resolve(keys: &RootKeys, base: &str) -> Option<NodeFilesystem> {
    let mut source = keys.source.as_ref()?.value.clone();
    if let RootSource::Folder(path)
    | RootSource::Image { location: ImageLocation::Path(path), .. } = &mut source
    {
        *path = absolute(base, path);
    }
    let mut volumes = keys.volumes.clone();
    for volume in &mut volumes {
        if let VolumeSource::Path(path) = &mut volume.source {
            *path = absolute(base, path);
        }
    }
    let (env, cwd, user) = (BTreeMap::new(), None, keys.account.clone());
    Some(NodeFilesystem { source, env, cwd, user, volumes, keep: keys.keep })
}

/// A path as it is written, from `base`.
pub(super) fn absolute(base: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    format!("{}/{path}", base.trim_end_matches('/'))
}

/// Where `root` or `image` of nodes is written, by the name of the node in the file.
pub(super) fn written(draft: &ScenarioDraft) -> BTreeMap<String, WrittenRoot> {
    let place = |keys: &RootKeys| {
        let source = keys.source.as_ref()?.place;
        Some(WrittenRoot { source, platform: keys.platform })
    };
    let nodes = draft.nodes.iter();
    nodes.filter_map(|node| Some((node.name.value.clone(), place(&node.root)?))).collect()
}
