//! All machines of a test.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::agent::Agent;
use super::machine::{Machine, PATH, is_missing, is_root, missing, must};
use super::run::LONGEST_RUN;
use super::{Outcome, Run, until};

/// Machines `one`, `two` … joined by a bridge, each with an agent that knows the others.
pub(crate) struct Machines {
    /// Ended first.
    agents: Vec<Agent>,
    machines: Vec<Machine>,
    switch: Machine,
    folder: tempfile::TempDir,
    runs: usize,
}

impl Machines {
    /// So many with an agent each; `None` if this machine cannot have them, which is said.
    pub(crate) fn new(count: usize) -> Option<Machines> {
        Machines::with(&vec![&[][..]; count])
    }

    /// One for each list of further words of its agent's command line.
    pub(crate) fn with(words: &[&[&str]]) -> Option<Machines> {
        Machines::start_agents(words.len(), words)
    }

    /// So many, of which the first have agents.
    pub(crate) fn with_first(agents: usize, count: usize) -> Option<Machines> {
        Machines::start_agents(count, &vec![&[][..]; agents])
    }

    /// So many without agents.
    pub(crate) fn bare(count: usize) -> Option<Machines> {
        Machines::without_agents(count)
    }

    fn start_agents(count: usize, words: &[&[&str]]) -> Option<Machines> {
        let mut machines = Machines::without_agents(count)?;
        for (at, words) in words.iter().enumerate() {
            let mut agent = machines.agent(at, words);
            agent.wait_for("listens on");
            machines.agents.push(agent);
        }
        machines.meet();
        Some(machines)
    }

    /// So many, and the key of the cluster.
    fn without_agents(count: usize) -> Option<Machines> {
        if is_missing(&["ip", "nsenter", "setpriv", "unshare"]) || !has_namespaces() {
            return None;
        }
        let folder = tempfile::Builder::new().prefix("windtunnel-test-").tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let switch = Machine::first(!is_root());
        switch.ip("link add switch type bridge");
        switch.ip("link set switch up");
        let machines = (0..count).map(|at| plugged_in(&switch, at)).collect();
        let all = Machines { agents: Vec::new(), machines, switch, folder, runs: 0 };
        all.own(all.path());
        let built = env!("CARGO_BIN_EXE_windtunnel");
        if fs::hard_link(built, all.binary()).is_err() {
            // By a process of its own: another test that forks meanwhile must not inherit the open
            // file, which could not be executed then.
            must(Command::new("cp").arg(built).arg(all.binary()));
        }
        (0..count).for_each(|at| drop(all.folder(NAMES[at])));
        if !all.windtunnel(0, &["doctor"]).output().unwrap().status.success() {
            missing("what windtunnel needs in a machine (see `windtunnel doctor`)");
            return None;
        }
        must(&mut all.windtunnel(0, &["keygen", "../key"]));
        Some(all)
    }

    /// Waits until each agent knows how each other's clock stands.
    #[track_caller]
    pub(crate) fn meet(&self) {
        self.meet_at(&address(0), self.agents.len());
    }

    /// The same of so many, of which one is there.
    #[track_caller]
    pub(crate) fn meet_at(&self, one: &str, count: usize) {
        until("that all agents know each other", || {
            let hosts = self.ask(0, &["hosts", one, "--key", "../key", "--json"]);
            let hosts: serde_json::Value = serde_json::from_slice(&hosts.stdout).ok()?;
            let hosts = hosts["hosts"].as_array()?.clone();
            let knows_all = |host: &serde_json::Value| {
                let peers = host["peers"].as_array().unwrap();
                peers.iter().filter(|peer| peer["clock"].is_object()).count() == count - 1
            };
            (hosts.len() == count && hosts.iter().all(knows_all)).then_some(())
        });
    }

    /// An agent on a machine.
    pub(crate) fn agent(&self, at: usize, words: &[&str]) -> Agent {
        self.start_agent(at, &[], words)
    }

    /// Has a machine that has none an agent behind a wrapper, which the machine's root runs.
    pub(crate) fn agent_behind(&mut self, at: usize, wrapper: &[&str]) {
        let mut agent = self.start_agent(at, wrapper, &[]);
        agent.wait_for("listens on");
        self.agents.push(agent);
        self.meet();
    }

    /// Has a machine that has none an agent of the machine's root.
    pub(crate) fn agent_of_root(&mut self, at: usize, words: &[&str]) {
        let (own, first) = (address(at), address(0));
        let (binary, ending) = (self.binary(), ["--pdeathsig", "KILL", "--"]);
        let agent = ["agent", "--name", NAMES[at], "--folder", "parts", "--listen", &own];
        let all = [&ending[..], &[binary.to_str().unwrap()], &agent].concat();
        let all = [&all[..], &["--key", "../key", "--join", &first], words].concat();
        let all: Vec<String> = all.into_iter().map(str::to_owned).collect();
        let command = self.settled(at, self.machines[at].command("setpriv"), &all);
        let log = self.path().join(format!("{}.log", NAMES[at]));
        let mut agent = Agent::start(command, &log);
        agent.wait_for("listens on");
        self.agents.push(agent);
        self.meet();
    }

    fn start_agent(&self, at: usize, wrapper: &[&str], words: &[&str]) -> Agent {
        let (own, first) = (address(at), address(0));
        let mut all = vec!["agent", "--name", NAMES[at], "--folder", "parts"];
        if !words.contains(&"--listen") {
            all.extend(["--listen", &own]);
        }
        if !words.contains(&"--key") {
            all.extend(["--key", "../key"]);
        }
        if at > 0 && !words.contains(&"--join") {
            all.extend(["--join", &first]);
        }
        Agent::start(
            self.windtunnel_behind(at, wrapper, &[&all, words].concat()),
            &self.path().join(format!("{}.log", NAMES[at])),
        )
    }

    /// The agent of a machine.
    pub(crate) fn agent_of(&mut self, at: usize) -> &mut Agent {
        &mut self.agents[at]
    }

    /// The process of a machine's agent.
    pub(crate) fn agent_id(&self, at: usize) -> u32 {
        self.agents[at].id()
    }

    /// windtunnel on a machine, as the test's user, in the machine's folder. It ends with the test.
    pub(crate) fn windtunnel(&self, at: usize, words: &[&str]) -> Command {
        self.command(at, self.binary().to_str().unwrap(), words)
    }

    /// The same behind a wrapper, which the machine's root runs.
    pub(crate) fn windtunnel_behind(&self, at: usize, wrapper: &[&str], words: &[&str]) -> Command {
        self.behind(at, wrapper, self.binary().to_str().unwrap(), words)
    }

    /// Another program as the test's user.
    pub(crate) fn command(&self, at: usize, program: &str, words: &[&str]) -> Command {
        self.behind(at, &[], program, words)
    }

    /// Another program as the machine's root. It ends with the test.
    pub(crate) fn as_root(&self, at: usize, program: &str) -> Command {
        let mut command = self.machines[at].command("setpriv");
        command.args(["--pdeathsig", "KILL", "--", program]).stdin(Stdio::null());
        command
    }

    /// windtunnel in the machine's folder, and in the network of the test itself.
    pub(crate) fn windtunnel_outside(&self, at: usize, words: &[&str]) -> Command {
        let line = as_user(self.binary().to_str().unwrap(), words);
        self.settled(at, Command::new(&line[0]), &line[1..])
    }

    fn behind(&self, at: usize, wrapper: &[&str], program: &str, words: &[&str]) -> Command {
        let wrapper = wrapper.iter().map(|word| (*word).to_owned());
        let line: Vec<String> = wrapper.chain(as_user(program, words)).collect();
        self.settled(at, self.machines[at].command(&line[0]), &line[1..])
    }

    /// A command with its words, environment and folder.
    fn settled(&self, at: usize, mut command: Command, words: &[String]) -> Command {
        command.args(words);
        for (key, _) in std::env::vars_os() {
            if key.to_string_lossy().starts_with("WINDTUNNEL_") {
                command.env_remove(key);
            }
        }
        let home = self.home(at);
        command.env("PATH", PATH).env("LC_ALL", "C").env("HOME", &home);
        command.current_dir(home).stdin(Stdio::null());
        command
    }

    /// Runs windtunnel on a machine to its end.
    pub(crate) fn ask(&self, at: usize, words: &[&str]) -> Output {
        self.windtunnel(at, words).output().unwrap()
    }

    /// Carries out a scenario over all machines, which must be faithful and pass. A run that this
    /// machine was too busy for is repeated, with the reason printed.
    #[track_caller]
    pub(crate) fn pass(&mut self, scenario: &str) -> Outcome {
        self.pass_within(scenario, MAX_LATENESS)
    }

    /// The same with another bound of lateness.
    #[track_caller]
    pub(crate) fn pass_within(&mut self, scenario: &str, max_lateness: &str) -> Outcome {
        let run = self.start_within(scenario, max_lateness, &["--attempts", "5"]);
        let outcome = run.finish_within(5 * LONGEST_RUN);
        outcome.assert_code(0);
        outcome
    }

    /// Starts a scenario over all machines, from the first.
    pub(crate) fn start(&mut self, scenario: &str, options: &[&str]) -> Run {
        self.start_within(scenario, MAX_LATENESS, options)
    }

    /// The same with another bound of lateness.
    pub(crate) fn start_within(
        &mut self,
        scenario: &str,
        max_lateness: &str,
        options: &[&str],
    ) -> Run {
        self.runs += 1;
        let (file, out) = (format!("net-{}.yaml", self.runs), format!("out-{}", self.runs));
        self.write(&file, scenario);
        let hosts = format!("{},all", address(0));
        let words = ["run", &file, "--hosts", &hosts, "--key", "../key", "--out", &out];
        let late = ["--max-lateness", max_lateness];
        let command = self.windtunnel(0, &[&words, &late[..], options].concat());
        Run::start(command, self.home(0).join(out))
    }

    /// Follows a run that goes on, from a machine.
    pub(crate) fn attach(&mut self, at: usize, words: &[&str]) -> Run {
        self.runs += 1;
        let out = format!("out-{}", self.runs);
        let command =
            self.windtunnel(at, &[&["attach", "--key", "../key", "--out", &out], words].concat());
        Run::start(command, self.home(at).join(out))
    }

    /// Writes a file on the first machine.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.home(0).join(name);
        fs::write(&path, text).unwrap();
        self.own(&path);
    }

    /// Cuts a machine off.
    pub(crate) fn cut(&self, at: usize) {
        self.switch.ip(&format!("link set port-{at} down"));
    }

    /// Joins it again.
    pub(crate) fn mend(&self, at: usize) {
        self.switch.ip(&format!("link set port-{at} up"));
    }

    /// From now on a machine does not get these packets of another one, and no program is notified:
    /// `which` is what `ip rule` calls them, all if it is empty.
    pub(crate) fn drop_from(&self, at: usize, from: usize, which: &str) {
        let machine = &self.machines[at];
        // Rules come in the order of their numbers, and the one that says which addresses are the
        // machine's own comes first otherwise.
        machine.ip("rule add pref 100 lookup local");
        machine.ip("rule del pref 0");
        let from = format!("rule add pref 10 iif uplink from 10.99.0.{}", from + 1);
        machine.ip(&[&from, which, "blackhole"].join(" ").replace("  ", " "));
    }

    /// Processes of runs on a machine: all but its agent, and the command lines that the test
    /// itself has there.
    pub(crate) fn processes(&self, at: usize) -> Vec<(u32, String)> {
        let home = format!("HOME={}\0", self.home(at).display());
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let of_run = entries.filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let environment = fs::read(entry.path().join("environ")).ok()?;
            environment.windows(home.len()).find(|part| *part == home.as_bytes())?;
            let words = String::from_utf8(fs::read(entry.path().join("cmdline")).ok()?).ok()?;
            let words = words.replace('\0', " ");
            let is_own = |verb: &&str| words.contains(&format!("windtunnel {verb} "));
            let own = ["agent", "run", "attach", "hosts", "stop"].iter().any(is_own);
            (!own && !words.is_empty()).then_some((id, words))
        });
        of_run.collect()
    }

    /// Those whose command line contains this.
    pub(crate) fn process_ids(&self, at: usize, words: &str) -> Vec<u32> {
        let all = self.processes(at).into_iter();
        all.filter(|(_, line)| line.contains(words)).map(|(id, _)| id).collect()
    }

    /// The folders of runs at the agent of a machine.
    pub(crate) fn folders(&self, at: usize) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.home(at).join("parts")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// No program of a run is left on a machine, nor windtunnel itself but the agent.
    #[track_caller]
    pub(crate) fn assert_nothing_runs(&self, at: usize) {
        until(&format!("the end of what runs on {}: {:?}", NAMES[at], self.processes(at)), || {
            self.processes(at).is_empty().then_some(())
        });
    }

    /// Nothing of a run is left on a machine: no process, no file.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self, at: usize) {
        self.assert_nothing_runs(at);
        let folders = self.folders(at);
        assert!(folders.is_empty(), "{folders:?}");
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of a machine's user.
    pub(crate) fn home(&self, at: usize) -> PathBuf {
        self.path().join(NAMES[at])
    }

    fn folder(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(&path).unwrap();
        self.own(&path);
        path
    }

    fn own(&self, path: &Path) {
        if is_root() {
            let user = NOBODY.parse().ok();
            chown(path, user, user).unwrap();
        }
    }

    fn binary(&self) -> PathBuf {
        self.path().join("windtunnel")
    }
}

/// By how many seconds a machine's clock is ahead of the real one: each has its own.
pub(crate) fn clock_ahead_s(at: usize) -> u32 {
    [100_000, 40, 3_000_000][at]
}

/// The address at which the agent of a machine listens.
pub(crate) fn address(at: usize) -> String {
    format!("10.99.0.{}:7447", at + 1)
}

fn plugged_in(switch: &Machine, at: usize) -> Machine {
    let machine = switch.another(clock_ahead_s(at));
    let id = machine.id();
    switch.ip(&format!("link add port-{at} type veth peer name uplink netns {id}"));
    switch.ip(&format!("link set port-{at} master switch up"));
    machine.ip("link set lo up");
    machine.ip(&format!("addr add 10.99.0.{}/24 dev uplink", at + 1));
    machine.ip("link set uplink up");
    machine
}

/// Whether machines can be made here: as root, or with user namespaces.
fn has_namespaces() -> bool {
    let mut command = Command::new("unshare");
    command.args(if is_root() { &["--net"][..] } else { &["--user", "--map-root-user", "--net"] });
    let made =
        command.args(["--", "ip", "link", "add", "switch", "type", "bridge"]).output().unwrap();
    if !made.status.success() {
        missing(&format!("namespaces and bridges: {}", String::from_utf8_lossy(&made.stderr)));
    }
    made.status.success()
}

/// A packet that leaves later than this is late. Five times the default: all machines of a test
/// share the processors of one.
pub(crate) const MAX_LATENESS: &str = "5ms";
const NAMES: [&str; 3] = ["one", "two", "three"];
/// The ordinary user's and its group's number.
/// A command line that the test's user runs, and that ends with the test.
fn as_user(program: &str, words: &[&str]) -> Vec<String> {
    let user: &[&str] = match is_root() {
        true => &["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"],
        false => &[],
    };
    let ending = ["--pdeathsig", "KILL", "--", program];
    [&["setpriv"], user, &ending, words].concat().into_iter().map(str::to_owned).collect()
}

const NOBODY: &str = "65534";
