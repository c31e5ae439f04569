//! Whether this machine has what a plan's programs need: their executables and working folders.
//! Looked at before anything starts.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use windtunnel_model::plan::{Node, Program, ProgramUser, ReadinessCondition};
use windtunnel_model::{NodeId, Plan};

/// Something that a program needs and this machine does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPrerequisite {
    pub node: NodeId,
    /// Its position among the node's programs.
    pub program: usize,
    pub what: ProgramPrerequisite,
    /// Whether something that runs before may still make it: the program waits for others, or for
    /// a time.
    pub may_come: bool,
}

/// What a program needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramPrerequisite {
    /// Its executable, and why it cannot be run.
    Program(NotRunnable),
    /// Its working folder, and whether something else is there.
    Folder(PathBuf, bool),
    /// The executable of what says whether it is ready, and why it cannot be run.
    Check(NotRunnable),
}

/// Why a program cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotRunnable {
    /// No folder of `PATH` has it.
    #[error("there is no program `{0}` in PATH")]
    NotInPath(String),
    /// It is not where its path leads.
    #[error("there is no program {0}")]
    NotThere(PathBuf),
    /// It is there, but the user may not execute it.
    #[error("{0} is not executable")]
    NotExecutable(PathBuf),
    /// It is a folder, a device or the like.
    #[error("{0} is not a program")]
    NoFile(PathBuf),
}

impl NotRunnable {
    /// The exit code that shells give for it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            NotRunnable::NotInPath(_) | NotRunnable::NotThere(_) => 127,
            NotRunnable::NotExecutable(_) | NotRunnable::NoFile(_) => 126,
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            NotRunnable::NotExecutable(path) => Some(format!("chmod +x {}", path.display())),
            _ => None,
        }
    }
}

impl MissingPrerequisite {
    /// What is missing, in words.
    #[must_use]
    pub fn message(&self) -> String {
        match &self.what {
            ProgramPrerequisite::Program(why) => format!("run: {why}"),
            ProgramPrerequisite::Check(why) => format!("ready: {why}"),
            ProgramPrerequisite::Folder(path, true) => {
                format!("cwd: {} is not a folder", path.display())
            }
            ProgramPrerequisite::Folder(path, false) => {
                format!("cwd: there is no folder {}", path.display())
            }
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match &self.what {
            ProgramPrerequisite::Program(NotRunnable::NotInPath(name))
                if name.contains(char::is_whitespace) =>
            {
                Some(LIST_HINT.to_owned())
            }
            ProgramPrerequisite::Program(why) | ProgramPrerequisite::Check(why) => why.hint(),
            ProgramPrerequisite::Folder(..) => None,
        }
    }
}

/// What programs of the plan's nodes, of those that are `here`, need and this machine does not
/// have. Programs that name no folder of their own start in `base_dir`.
#[must_use]
pub fn missing(plan: &Plan, base_dir: &Path, here: Option<&[bool]>) -> Vec<MissingPrerequisite> {
    let is_here = |node: usize| here.is_none_or(|here| here.get(node).copied().unwrap_or(false));
    let nodes = plan.nodes.iter().enumerate().filter(|(node, _)| is_here(*node));
    // What is in a file system of a node's own is not looked at: links there lead elsewhere here.
    let nodes = nodes.filter(|(_, node)| node.root.is_none());
    let programs = nodes.flat_map(|(id, node)| {
        let programs = node.programs.iter().enumerate();
        programs.map(move |(program, spec)| (NodeId::from_index(id), node, program, spec))
    });
    programs
        .flat_map(|(id, node, program, spec)| {
            let of = |what: ProgramPrerequisite| {
                let may_come = may_come(spec, &what);
                MissingPrerequisite { node: id, program, what, may_come }
            };
            needed(node, spec, base_dir).into_iter().map(of).collect::<Vec<_>>()
        })
        .collect()
}

/// Whether something that runs before may make it.
fn may_come(spec: &Program, what: &ProgramPrerequisite) -> bool {
    let waits = !spec.after.is_empty() || !spec.start.is_zero();
    let is_fixed = |why: &NotRunnable| {
        matches!(why, NotRunnable::NotInPath(_)) && !spec.env.contains_key("PATH")
    };
    match what {
        ProgramPrerequisite::Program(why) => waits && !is_fixed(why),
        // The program itself may, too.
        ProgramPrerequisite::Check(why) => !is_fixed(why),
        ProgramPrerequisite::Folder(..) => waits,
    }
}

/// Whether the program `name` can be run with this `PATH` (the environment's without one) in
/// `folder`.
///
/// # Errors
/// Why not.
pub fn find_program(name: &str, path: Option<&str>, folder: &Path) -> Result<(), NotRunnable> {
    if name.contains('/') {
        return judge(&folder.join(name))
            .unwrap_or_else(|| Err(NotRunnable::NotThere(folder.join(name))));
    }
    let mut worse = NotRunnable::NotInPath(name.to_owned());
    for candidate in folders_of(path).iter().map(|place| folder.join(place).join(name)) {
        match judge(&candidate) {
            Some(Ok(())) => return Ok(()),
            // As execvp(3): the search goes on, and this is reported if nothing better is found.
            Some(Err(error @ NotRunnable::NotExecutable(_))) => worse = error,
            Some(Err(_)) | None => {}
        }
    }
    Err(worse)
}

/// The folders in which programs without a path are looked for, in order.
#[must_use]
pub fn folders_of(path: Option<&str>) -> Vec<PathBuf> {
    let own = std::env::var("PATH");
    let path = path.unwrap_or_else(|| own.as_deref().unwrap_or(PATH_DEFAULT));
    path.split(':')
        .map(|folder| PathBuf::from(if folder.is_empty() { "." } else { folder }))
        .collect()
}

fn needed(node: &Node, spec: &Program, base_dir: &Path) -> Vec<ProgramPrerequisite> {
    let folder = spec.cwd.as_ref().map_or_else(|| base_dir.to_owned(), |cwd| base_dir.join(cwd));
    if spec.cwd.is_some() && !folder.is_dir() {
        let exists = folder.exists();
        return vec![ProgramPrerequisite::Folder(folder, exists)];
    }
    let fault = |argv: &[String]| {
        let name = argv.first()?;
        let path = spec.env.get("PATH").map(String::as_str);
        let error = find_program(name, path, &folder).err()?;
        // Root's programs may have a longer PATH than the user.
        let sbin =
            node.user == ProgramUser::Root && find_program(name, Some(SBIN), &folder).is_ok();
        (!sbin).then_some(error)
    };
    let check = match &spec.ready {
        Some(ReadinessCondition::Command(check)) => {
            fault(&check.argv).map(ProgramPrerequisite::Check)
        }
        _ => None,
    };
    fault(&spec.argv).map(ProgramPrerequisite::Program).into_iter().chain(check).collect()
}

/// Whether a path is a program; `None` if nothing is there.
fn judge(path: &Path) -> Option<Result<(), NotRunnable>> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() {
        return Some(Err(NotRunnable::NoFile(path.to_owned())));
    }
    let executable = accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok();
    Some(if executable { Ok(()) } else { Err(NotRunnable::NotExecutable(path.to_owned())) })
}

const LIST_HINT: &str = "a list is the words of one command; several programs are [{run: one}, {run: two}], and a \
                         command with its arguments may be one text: run: one -x";
/// As the C library searches without a `PATH`.
const PATH_DEFAULT: &str = "/bin:/usr/bin";
const SBIN: &str = "/usr/local/sbin:/usr/sbin:/sbin";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn load(text: &str, base: &Path) -> Plan {
        let source = windtunnel_scenario::ScenarioSource {
            name: "net.yaml",
            text: text.as_bytes(),
            default_name: "net",
            base_dir: base.to_str().unwrap(),
        };
        windtunnel_scenario::load(&source).unwrap().plan
    }

    /// Message and whether it may come, by node.
    fn found(text: &str, base: &Path) -> Vec<(u32, String, bool)> {
        let plan = load(text, base);
        let missing = missing(&plan, base, None);
        missing.iter().map(|one| (one.node.0, one.message(), one.may_come)).collect()
    }

    #[test]
    fn a_program_that_is_nowhere_or_may_not_be_run_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        std::fs::write(base.join("data"), "no program").unwrap();
        std::fs::write(base.join("tool"), "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(base.join("tool"), PermissionsExt::from_mode(0o755)).unwrap();
        let text = "nodes:
  a: {run: [no-such-tool-anywhere, -x]}
  b: {run: ./absent}
  c: {run: ./data}
  d: {run: ./tool}
  e: {run: sh -c true}
  f: {run: tool, env: {PATH: .}}
  g: {run: /}
links: [{between: [a, b]}]
allow-unreachable: true
";
        let here = base.display();
        assert_eq!(
            found(text, base),
            [
                (0, "run: there is no program `no-such-tool-anywhere` in PATH".into(), false),
                (1, format!("run: there is no program {here}/./absent"), false),
                (2, format!("run: {here}/./data is not executable"), false),
                (6, "run: / is not a program".into(), false),
            ]
        );
    }

    #[test]
    fn a_working_folder_that_is_not_there_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        std::fs::write(base.join("file"), "").unwrap();
        let text = "nodes:\n  a: {run: 'true', cwd: gone}\n  b: {run: 'true', cwd: file}\n  \
                    c: {run: 'true', cwd: .}\nlinks: [{between: [a, b]}]\nallow-unreachable: true\n";
        let here = base.display();
        assert_eq!(
            found(text, base),
            [
                (0, format!("cwd: there is no folder {here}/gone"), false),
                (1, format!("cwd: {here}/file is not a folder"), false),
            ]
        );
    }

    #[test]
    fn a_file_that_another_program_may_make_may_appear_but_nothing_appears_in_path() {
        let folder = tempfile::tempdir().unwrap();
        let text = "nodes:\n  a: {run: 'true', ready: exit}\n  b: {run: ./made, after: a}\n  \
                    c: {run: no-such-tool-anywhere, after: a}\n  d: {run: ./made, start: 2s}\n\
                    links: [{between: [a, b]}]\nallow-unreachable: true\n";
        let found = found(text, folder.path());
        let found: Vec<(u32, bool)> =
            found.into_iter().map(|(node, _, comes)| (node, comes)).collect();
        assert_eq!(found, [(1, true), (2, false), (3, true)]);
    }

    #[test]
    fn what_says_whether_a_program_is_ready_is_looked_for_too() {
        let folder = tempfile::tempdir().unwrap();
        let text = "nodes:\n  a: {run: 'true', ready: 'command:no-such-tool-anywhere -x'}\n  \
                    b: {run: 'true', ready: {command: [./made]}}\n  c: {run: 'true', ready: {command: sh -c x}}\n\
                    links: [{between: [a, b]}]\nallow-unreachable: true\n";
        let nowhere = "ready: there is no program `no-such-tool-anywhere` in PATH".to_owned();
        let made = format!("ready: there is no program {}/./made", folder.path().display());
        let expected = [(0, nowhere, false), (1, made, true)];
        assert_eq!(found(text, folder.path()), expected, "the program may make the second");
    }

    #[test]
    fn a_list_of_command_lines_gets_the_hint_how_to_give_several_programs() {
        let folder = tempfile::tempdir().unwrap();
        let text = "nodes: {a: {run: ['no-such-tool -s', 'no-such-tool -c']}}\n";
        let plan = load(text, folder.path());
        let missing = missing(&plan, folder.path(), None);
        let hint = missing[0].hint().unwrap();
        assert!(hint.contains("[{run: one}, {run: two}]"), "{hint}");
    }

    #[test]
    fn only_nodes_that_are_here_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let text = "nodes: {a: {run: ./x}, b: {run: ./y}}\nlinks: [{between: [a, b]}]\n";
        let plan = load(text, folder.path());
        let missing = missing(&plan, folder.path(), Some(&[false, true]));
        assert_eq!(missing.iter().map(|one| one.node.0).collect::<Vec<_>>(), [1]);
    }
}
