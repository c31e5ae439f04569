//! Finding and asking a live run.

mod list;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use windtunnel_control::{ControlClient, TypedRequest, registry};
use windtunnel_model::Plan;
use windtunnel_report::read_plan;
use windtunnel_sys::below::FolderHandle;

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

pub(crate) use list::{LiveRunSummary, folders, list};

/// The choice of a live run.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct LiveRunSelector {
    /// Folder of the live run [default: the one that is live in runs/]
    #[arg(long, value_name = "DIR", env = "WINDTUNNEL_RUN")]
    run: Option<PathBuf>,
    /// The folder of that run, once it has been found.
    #[arg(skip)]
    found: OnceLock<PathBuf>,
}

impl LiveRunSelector {
    /// The run in this folder, or the only one.
    pub(crate) fn of(run: Option<PathBuf>) -> Self {
        LiveRunSelector { run, ..LiveRunSelector::default() }
    }

    /// Connects to the run.
    pub(crate) fn connect(&self) -> Result<ControlClient, VerbFailure> {
        Ok(ControlClient::connect(self.folder()?)?)
    }

    /// The plan of the run.
    pub(crate) fn plan(&self) -> Result<Plan, VerbFailure> {
        let path = self.folder()?.join("plan.json");
        let read = FolderHandle::open(self.folder()?).and_then(|below| read_plan(&below));
        read.map_err(|error| {
            VerbFailure::new(
                ExitCategory::Usage,
                format!("cannot read {}: {error}", path.display()),
            )
        })
    }

    /// Sends a request with an empty reply.
    pub(crate) fn order(&self, request: &TypedRequest<()>) -> Result<ControlClient, VerbFailure> {
        let mut client = self.connect()?;
        client.ask(request)?;
        Ok(client)
    }

    /// The folder that was named, or that of the run that is live in `runs`.
    pub(crate) fn folder(&self) -> Result<&Path, VerbFailure> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let folder = match &self.run {
            Some(folder) => folder.clone(),
            None => only(&below(Path::new(RUNS)), &registry::live())?,
        };
        Ok(self.found.get_or_init(|| folder))
    }
}

/// The folders of live runs in `parent`, sorted. The link `latest` may be that of a run that is
/// over.
fn below(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut live: Vec<PathBuf> =
        folders.map(|entry| entry.path()).filter(|path| registry::is_live(path)).collect();
    live.sort();
    live
}

/// The one run that is live here; `anywhere` are those of all folders.
fn only(here: &[PathBuf], anywhere: &[PathBuf]) -> Result<PathBuf, VerbFailure> {
    let option = |path: &PathBuf| format!("--run {}", path.display());
    match (here, anywhere) {
        ([one], _) => Ok(one.clone()),
        // Connecting reports that no run lives there.
        ([], []) => Ok(Path::new(RUNS).join("latest")),
        ([], [first, ..]) => {
            Err(VerbFailure::new(ExitCategory::Usage, format!("no live run in {RUNS}")).hint(
                format!("elsewhere there is {}; `windtunnel ps --all` lists all", option(first)),
            ))
        }
        (many, _) => {
            let options: Vec<String> = many.iter().map(option).collect();
            let text = format!("{} runs are live in {RUNS}", many.len());
            Err(VerbFailure::new(ExitCategory::Usage, text)
                .hint(format!("name one: {}", options.join(", "))))
        }
    }
}

/// The parent of run folders that are not named on the command line.
const RUNS: &str = "runs";

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_later_run_that_is_over_does_not_hide_the_live_one() {
        let root = tempfile::tempdir().unwrap();
        let [live, over] = ["demo-1", "demo-2"].map(|name| root.path().join(name));
        for folder in [&live, &over] {
            fs::create_dir(folder).unwrap();
        }
        let _socket = UnixListener::bind(live.join("control.sock")).unwrap();
        // A killed run leaves its socket's file.
        drop(UnixListener::bind(over.join("control.sock")).unwrap());
        std::os::unix::fs::symlink("demo-2", root.path().join("latest")).unwrap();
        assert_eq!(below(root.path()), [live]);
    }

    #[test]
    fn of_several_live_runs_none_is_chosen() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let text = |here: &[&str], anywhere: &[&str]| match only(&paths(here), &paths(anywhere)) {
            Ok(folder) => folder.display().to_string(),
            Err(failure) => failure.text(),
        };
        assert_eq!(text(&["runs/a"], &["/x/runs/a", "/y/b"]), "runs/a");
        assert_eq!(
            text(&["runs/a", "runs/b"], &[]),
            "error: 2 runs are live in runs\nhint: name one: --run runs/a, --run runs/b"
        );
        assert_eq!(text(&[], &[]), "runs/latest");
        assert_eq!(
            text(&[], &["/y/b"]),
            "error: no live run in runs\nhint: elsewhere there is --run /y/b; `windtunnel ps --all` lists all"
        );
    }
}
