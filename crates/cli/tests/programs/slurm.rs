//! The example for Slurm, under the real slurmctld with two slurmd.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::free_port::free_port;
use crate::support::{
    Lab, User, find_program, is_missing, is_root, missing, until, until_within, users,
};

const PROGRAMS: [&str; 7] = ["munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "sinfo"];

/// Two machines, wt1 and wt2, as far as Slurm knows; both are this one.
struct Slurm {
    lab: Lab,
    daemons: Vec<Child>,
}

impl Slurm {
    fn start() -> Slurm {
        let lab = Lab::new(User::Invoker);
        for folder in ["state", "spool-wt1", "spool-wt2"] {
            lab.folder(folder);
        }
        let mut key = [0; 64];
        fs::File::open("/dev/urandom").unwrap().read_exact(&mut key).unwrap();
        let key = lab.write("munge.key", key);
        fs::set_permissions(key, fs::Permissions::from_mode(0o400)).unwrap();
        let mut slurm = Slurm { lab, daemons: Vec::new() };
        slurm.configure();
        let munged = "--foreground --force --socket=munge.socket --key-file=munge.key --pid-file=munged.pid \
                      --seed-file=munged.seed --log-file=munged.log";
        slurm.daemon("munged", munged);
        let socket = slurm.lab.path().join("munge.socket");
        until("munged listens", || socket.exists().then_some(()));
        let conf = slurm.conf();
        slurm.daemon("slurmctld", &format!("-D -f {}", conf.display()));
        for node in ["wt1", "wt2"] {
            slurm.daemon("slurmd", &format!("-D -f {} -N {node}", conf.display()));
        }
        until_within(START, "both machines are idle", || {
            let idle = slurm.command("sinfo", &["-h", "-t", "idle", "-o", "%D"]).output().unwrap();
            (idle.stdout == b"2\n").then_some(())
        });
        slurm
    }

    fn conf(&self) -> PathBuf {
        self.lab.path().join("slurm.conf")
    }

    fn configure(&self) {
        let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let name = name.trim().split('.').next().unwrap();
        let at = self.lab.path().display();
        let [control, first, second] = [(); 3].map(|()| free_port());
        let node = "NodeAddr=127.0.0.1 CPUs=2 RealMemory=100";
        self.lab.write(
            "slurm.conf",
            format!(
                "ClusterName=test
SlurmctldHost={name}(127.0.0.1)
SlurmctldPort={control}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={at}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=5
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool-%n
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd-%n.pid
SlurmctldLogFile={at}/slurmctld.log
SlurmdLogFile={at}/slurmd-%n.log
NodeName=wt1 NodeHostname={name} Port={first} {node}
NodeName=wt2 NodeHostname={name} Port={second} {node}
PartitionName=all Nodes=wt1,wt2 Default=YES MaxTime=10 State=UP
"
            ),
        );
    }

    fn daemon(&mut self, name: &str, arguments: &str) {
        let log = fs::File::create(self.lab.path().join(format!("{name}.out"))).unwrap();
        let mut command = Command::new(find_program(name).unwrap());
        command.args(arguments.split_whitespace()).current_dir(self.lab.path());
        let output = [log.try_clone().unwrap(), log];
        let [out, talk] = output;
        self.daemons.push(command.stdin(Stdio::null()).stdout(out).stderr(talk).spawn().unwrap());
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        self.command_of(User::Invoker, program, arguments)
    }

    /// A command of Slurm, as a user.
    fn command_of(&self, user: User, program: &str, arguments: &[&str]) -> Command {
        let mut words =
            user.prefix().iter().copied().chain([program]).chain(arguments.iter().copied());
        let mut command = Command::new(words.next().unwrap());
        command.args(words).env("SLURM_CONF", self.conf()).stdin(Stdio::null());
        command
    }

    /// Submits the example with a file of the user's.
    fn submit(&self, lab: &Lab, file: &Path, options: &[&str]) -> Output {
        let file = file.to_str().unwrap();
        let arguments = [options, &["run.sbatch", file]].concat();
        let mut command = self.command_of(lab.user(), "sbatch", &arguments);
        command
            .current_dir(lab.path())
            .env("HOME", lab.path())
            .env("TMPDIR", lab.path().join("tmp"));
        command.env("WINDTUNNEL", lab.path().join("windtunnel"));
        // The machine may be loaded.
        command.env("WINDTUNNEL_MAX_LATENESS", "5s").output().unwrap()
    }

    /// The logs of the daemons, for a failure.
    fn said(&self) -> String {
        let logs = ["slurmctld.log", "slurmd-wt1.log", "slurmd-wt2.log", "munged.log"];
        let read = |name| fs::read_to_string(self.lab.path().join(name)).unwrap_or_default();
        logs.map(read).concat()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

#[test]
fn the_example_runs_in_an_allocation_of_two_machines_and_leaves_nothing() {
    if !is_root() {
        return missing("root, to start the daemons of Slurm");
    }
    if is_missing(&PROGRAMS) || is_missing(&["python3", "curl", "ping"]) {
        return;
    }
    let slurm = Slurm::start();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/slurm");
    for user in users() {
        let lab = Lab::new(user);
        lab.folder("tmp");
        lab.write("run.sbatch", fs::read(example.join("run.sbatch")).unwrap());
        let file = lab.write("net.yaml", fs::read(example.join("net.yaml")).unwrap());
        let output = slurm.submit(&lab, &file, &["--wait", "--parsable", "--output=log"]);
        let said = fs::read_to_string(lab.path().join("log")).unwrap_or_default();
        assert!(output.status.success(), "{output:?}\n{said}\n{}", slurm.said());
        for line in ["agent on wt1: started by Slurm, at ", "agent on wt2: started by Slurm, at "] {
            assert!(said.contains(line), "{said}");
        }
        assert!(said.contains("1 on wt1") && said.contains("1 on wt2"), "{said}");
        let job = String::from_utf8(output.stdout).unwrap();
        let results = lab.path().join(format!("windtunnel-{}", job.trim()));
        let pings = fs::read_to_string(results.join("nodes/client/stdout.1")).unwrap();
        assert!(pings.contains("5 received"), "{pings}");
        assert_eq!(fs::read_dir(lab.path().join("tmp")).unwrap().count(), 0, "a key is left");
        lab.assert_nothing_left();

        // A job that is cancelled ends its run within KillWait: all agents and nodes go, and what
        // the run has written until then is there.
        let long = "placement: spread\nnodes: {a: {run: [sh, -c, echo began; exec sleep 1000]}, b: {run: [sh, -c, echo began; exec sleep 1000]}}\nlinks: [{between: [a, b], latency: 20ms}]\n";
        let file = lab.write("long.yaml", long);
        let output = slurm.submit(&lab, &file, &["--parsable", "--output=log-2"]);
        let job = String::from_utf8(output.stdout).unwrap();
        let log = lab.path().join("log-2");
        until("both programs have begun", || {
            let said = fs::read_to_string(&log).unwrap_or_default();
            ["a | began", "b | began"].iter().all(|line| said.contains(line)).then_some(())
        });
        assert!(slurm.command_of(user, "scancel", &[job.trim()]).status().unwrap().success());
        let results = lab.path().join(format!("windtunnel-{}", job.trim()));
        let ended = "the results of the cancelled job";
        until(ended, || {
            let said = fs::read_to_string(&log).unwrap_or_default();
            said.contains(&format!("windtunnel-{})", job.trim())).then_some(())
        });
        let read = |name: &str| fs::read_to_string(results.join(name)).unwrap_or_default();
        for node in ["a", "b"] {
            assert_eq!(read(&format!("nodes/{node}/stdout")), "began\n", "{}", read("run.json"));
            assert!(!read(&format!("nodes/{node}/exit")).is_empty(), "{}", read("run.json"));
        }
        let report: serde_json::Value = serde_json::from_str(&read("run.json")).unwrap();
        assert_eq!(report["lost"], serde_json::Value::Null, "{report}");
        lab.assert_nothing_left();
    }
}

/// Daemons of Slurm know each other within seconds; on a loaded machine, later.
const START: Duration = Duration::from_secs(60);
