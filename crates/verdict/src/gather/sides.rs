//! The sides of a network that was cut during a run: what one of them did is the run.

use std::path::PathBuf;

use super::parts::RunPartFolders;
use crate::results::PartResults;

/// Leaves out the parts that were cut off from the run, unless there are no others. Both sides have
/// gone on and taken the other for lost, so what they saw does not add up.
pub(super) fn only_the_run(
    parts: &RunPartFolders,
    all: &mut Vec<(PartResults, PathBuf)>,
) -> RunPartFolders {
    let mut parts = parts.clone();
    if all.iter().all(|(results, _)| results.apart) {
        return parts;
    }
    for (results, _) in all.iter().filter(|(results, _)| results.apart) {
        if let Some((_, path)) = parts.members.get_mut(usize::from(results.member)) {
            *path = Err("it was cut off, and the others went on without it".to_owned());
        }
    }
    all.retain(|(results, _)| !results.apart);
    parts
}
