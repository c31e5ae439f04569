//! Files that nodes have from outside of their own file systems.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use windtunnel_folder::{RunOutputFolder, VOLUMES};
use windtunnel_image::MergedLayerTree;
use windtunnel_model::Plan;
use windtunnel_model::plan::{Node, NodeFilesystem, VolumeSource};
use windtunnel_node::OwnVolume;

use super::{RootError, is_named};

/// The volumes of a run.
pub(super) struct Volumes<'a> {
    plan: &'a Plan,
    here: Option<&'a [bool]>,
    folder: PathBuf,
    /// Those that have been made.
    named: BTreeMap<String, PathBuf>,
}

impl<'a> Volumes<'a> {
    pub(super) fn new(plan: &'a Plan, here: Option<&'a [bool]>, folder: &RunOutputFolder) -> Self {
        Volumes { plan, here, folder: folder.file(VOLUMES), named: BTreeMap::new() }
    }

    /// The volumes of a node. A named one begins with what the first node that has it has at that place.
    pub(super) fn of(
        &mut self,
        node: &Node,
        root: &NodeFilesystem,
        files: &MergedLayerTree,
    ) -> Result<Vec<OwnVolume>, RootError> {
        let volumes = root.volumes.iter().map(|volume| {
            let source = match &volume.source {
                VolumeSource::Path(path) if Path::new(path).exists() => PathBuf::from(path),
                VolumeSource::Path(path) => {
                    return Err(RootError::NoVolume { node: node.name.clone(), path: path.into() });
                }
                VolumeSource::Named(name) => self.named(name, &volume.target, files)?,
            };
            let target = volume.target.clone();
            Ok(OwnVolume { source, target, read_only: volume.read_only })
        });
        volumes.collect()
    }

    fn named(
        &mut self,
        name: &str,
        target: &str,
        files: &MergedLayerTree,
    ) -> Result<PathBuf, RootError> {
        if let Some(path) = self.named.get(name) {
            return Ok(path.clone());
        }
        if self.is_elsewhere(name) {
            return Err(RootError::Spread { name: name.to_owned() });
        }
        let path = self.folder.join(name);
        let failed =
            |path: PathBuf, source| RootError::Volume { name: name.to_owned(), path, source };
        fs::create_dir_all(&path).map_err(|error| failed(path.clone(), error))?;
        let below = target.trim_start_matches('/');
        files.copy(Path::new(below), &path).map_err(|(path, error)| failed(path, error))?;
        self.named.insert(name.to_owned(), path.clone());
        Ok(path)
    }

    /// Whether a node on another machine has it as well.
    fn is_elsewhere(&self, name: &str) -> bool {
        let Some(here) = self.here else { return false };
        let others = self.plan.nodes.iter().zip(here).filter(|(_, here)| !**here);
        let volumes =
            others.filter_map(|(node, _)| node.root.as_ref()).flat_map(|root| &root.volumes);
        volumes.into_iter().any(|volume| is_named(&volume.source) == Some(name))
    }
}

/// The named volumes of the nodes whose files are like this.
pub(super) fn names(plan: &Plan, wanted: impl Fn(&NodeFilesystem) -> bool) -> BTreeSet<&str> {
    let roots = plan.nodes.iter().filter_map(|node| node.root.as_ref());
    let volumes = roots.filter(|root| wanted(root)).flat_map(|root| &root.volumes);
    volumes.filter_map(|volume| is_named(&volume.source)).collect()
}
