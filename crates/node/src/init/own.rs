//! What programs have of a file system of the node's own: variables and a folder, instead of those of
//! windtunnel, which would name folders of the machine.

use std::collections::BTreeMap;
use std::ffi::OsString;

use windtunnel_model::plan;

use crate::node_set::own_root::OwnRoot;

/// What a program starts with that says nothing else.
#[derive(Debug)]
pub(super) struct DefaultProgramEnvironment {
    pub(super) variables: BTreeMap<OsString, OsString>,
    pub(super) folder: String,
}

impl DefaultProgramEnvironment {
    pub(super) fn new(
        own: &OwnRoot,
        root: &plan::NodeFilesystem,
        node: &plan::Node,
    ) -> DefaultProgramEnvironment {
        let usual = [("PATH", PATH), ("HOME", own.home.as_str()), ("HOSTNAME", node.name.as_str())];
        let image = root.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let variables = usual.into_iter().chain(image);
        DefaultProgramEnvironment {
            variables: variables.map(|(name, value)| (name.into(), value.into())).collect(),
            folder: root.cwd.clone().unwrap_or_else(|| "/".into()),
        }
    }
}

/// What container engines give to images without a `PATH`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
