//! A folder of one test, owned by the user that it runs as, with the program in it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::machine::{NOBODY, PATH, must};
use super::{Live, Outcome, User, processes_with, until};

/// Everything of one test is in here, and goes away with it.
pub(crate) struct Lab {
    folder: tempfile::TempDir,
    user: User,
}

impl Lab {
    pub(crate) fn new(user: User) -> Lab {
        let folder = tempfile::Builder::new().prefix("windtunnel-test-").tempdir().unwrap();
        let lab = Lab { folder, user };
        fs::set_permissions(lab.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // A copy, as the build's folder may be closed to others; a link where that is the same.
        let built = env!("CARGO_BIN_EXE_windtunnel");
        if fs::hard_link(built, lab.binary()).is_err() {
            // By a process of its own: another test that forks meanwhile must not inherit the open
            // file, which could not be executed then.
            must(Command::new("cp").arg(built).arg(lab.binary()));
        }
        lab.own(lab.path());
        lab
    }

    pub(crate) fn user(&self) -> User {
        self.user
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Unique to this test: where it appears in a process, the process is of this test.
    fn marker(&self) -> String {
        self.path().file_name().unwrap().to_str().unwrap().to_owned()
    }

    /// Writes a file of the test.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        self.own(&path);
        path
    }

    /// Makes a folder of the test.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(&path).unwrap();
        self.own(&path);
        path
    }

    /// windtunnel as the test's user, in the test's folder.
    pub(crate) fn windtunnel(&self, arguments: &[&str]) -> Command {
        self.windtunnel_behind(&[], arguments)
    }

    /// The same, run by another program such as `prlimit`, which the user runs.
    pub(crate) fn windtunnel_behind(&self, wrapper: &[&str], arguments: &[&str]) -> Command {
        let binary = self.binary();
        self.command(&[wrapper, &[binary.to_str().unwrap()], arguments].concat())
    }

    /// windtunnel in the test's folder as another user, by the command `becoming`.
    pub(crate) fn windtunnel_as(&self, becoming: &[&str], arguments: &[&str]) -> Command {
        let binary = self.binary();
        self.command_as(becoming, &[&[binary.to_str().unwrap()], arguments].concat())
    }

    /// A command as the test's user, in the test's folder.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        self.command_as(self.user.prefix(), words)
    }

    fn command_as(&self, becoming: &[&str], words: &[&str]) -> Command {
        let mut words = becoming.iter().chain(words).copied();
        let mut command = Command::new(words.next().unwrap());
        command.args(words).current_dir(self.path()).stdin(Stdio::null());
        for (key, _) in std::env::vars_os() {
            if key.to_string_lossy().starts_with("WINDTUNNEL_") {
                command.env_remove(key);
            }
        }
        command.env("PATH", PATH).env("HOME", self.path()).env("LC_ALL", "C");
        if let Some(layers) = std::env::var_os("WINDTUNNEL_TEST_RECORD") {
            command.env("WINDTUNNEL_RECORD_WHAT", layers);
        }
        command
    }

    /// Runs a scenario to its end. Lateness is forgiven: the machine may be loaded.
    pub(crate) fn run(&self, scenario: &str) -> Outcome {
        self.run_with(scenario, &[])
    }

    pub(crate) fn run_with(&self, scenario: &str, options: &[&str]) -> Outcome {
        self.start_with(scenario, options).finish()
    }

    /// Runs a scenario that must end well.
    #[track_caller]
    pub(crate) fn pass(&self, scenario: &str) -> Outcome {
        let outcome = self.run(scenario);
        outcome.assert_code(0);
        outcome
    }

    /// Runs a scenario that must end well and be faithful: its figures are then those of the
    /// network. A run that the machine was too busy for is repeated, with the reason printed.
    #[track_caller]
    pub(crate) fn pass_faithful(&self, scenario: &str) -> Outcome {
        let outcome = self.run_with(scenario, &["--max-lateness", "10ms", "--attempts", "5"]);
        outcome.assert_code(0);
        outcome
    }

    /// Starts a scenario.
    pub(crate) fn start(&self, scenario: &str) -> Live<'_> {
        self.start_with(scenario, &[])
    }

    pub(crate) fn start_with(&self, scenario: &str, options: &[&str]) -> Live<'_> {
        let name = format!("scenario-{}", self.runs());
        self.write(&format!("{name}.yaml"), scenario);
        self.start_file(&format!("{name}.yaml"), options)
    }

    /// Starts a scenario from a file in the test's folder.
    pub(crate) fn start_file(&self, file: &str, options: &[&str]) -> Live<'_> {
        let out = format!("out-{}", self.runs());
        fs::create_dir(self.path().join(&out)).unwrap();
        self.own(&self.path().join(&out));
        let mut words = vec!["run", file, "--out", &out];
        if !options.contains(&"--max-lateness") {
            words.extend(["--max-lateness", "5s"]);
        }
        words.extend(options);
        Live::start(self, self.windtunnel(&words), self.path().join(out))
    }

    /// A scenario of `tests/scenarios`, copied to the test's folder with all that is beside it.
    pub(crate) fn start_scenario(&self, name: &str) -> Live<'_> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
        for entry in fs::read_dir(source).unwrap().flatten() {
            let name = entry.file_name();
            self.write(name.to_str().unwrap(), fs::read(entry.path()).unwrap());
        }
        self.start_file(&format!("{name}.yaml"), &[])
    }

    /// Every process of this test: all have the test's folder as HOME.
    pub(crate) fn processes(&self) -> Vec<u32> {
        processes_with(&self.marker())
    }

    /// No process of the test is left, nor a mount that names it.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        // A killed process's children are gone a moment later.
        until("the end of every process", || self.processes().is_empty().then_some(()));
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(&self.marker()), "{mounts}");
    }

    /// Gives something to the test's user.
    pub(crate) fn own(&self, path: &Path) {
        if self.user == User::Ordinary {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    fn runs(&self) -> usize {
        let entries = fs::read_dir(self.path()).unwrap().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("out-")).count()
    }

    fn binary(&self) -> PathBuf {
        self.path().join("windtunnel")
    }
}
