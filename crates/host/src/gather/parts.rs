//! What the machines of a run have left.

use std::path::PathBuf;

/// A run that is over, of which the parts' folders are here.
#[derive(Debug, Clone)]
pub struct Parts {
    /// By member: name of the machine, and a copy of its folder; or why there is none.
    pub members: Vec<(String, Result<PathBuf, String>)>,
    /// By node: the member.
    pub placement: Vec<u16>,
}
