//! What the machines of a run have left.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A run that is over, of which the parts' folders are here.
#[derive(Debug, Clone, Default)]
pub struct RunPartFolders {
    /// By member: name of the machine, and a copy of its folder; or why there is none.
    pub members: Vec<(String, Result<PathBuf, String>)>,
    /// By node: the member.
    pub placement: Vec<u16>,
    /// Members that are lost because they did not answer, and for no other reason that is known.
    pub silent: BTreeSet<u16>,
    /// Copies of the folders of such members that have answered again: what they did is not the
    /// run, but says why they were silent.
    pub aside: BTreeMap<u16, PathBuf>,
}
