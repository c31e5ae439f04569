//! Mounts, all below a tmpfs that only the case itself sees.

use std::fs;

use windtunnel_sys::mount::{self, BindMountAccess, Propagation};
use windtunnel_sys::namespace::{self, NamespaceFlags, NamespaceFork};
use windtunnel_sys::process;

use crate::{Case, Outcome};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "a_bound_file_shows_and_can_be_read_only",
        flags: NamespaceFlags::MOUNT,
        body: binding,
    },
    Case {
        name: "a_new_proc_shows_the_new_processes",
        flags: NamespaceFlags::MOUNT,
        body: new_proc,
    },
    Case {
        name: "a_new_sysfs_shows_the_new_devices",
        flags: NamespaceFlags::NET.with(NamespaceFlags::MOUNT),
        body: new_sysfs,
    },
];

fn binding() -> Outcome {
    private_tmp();
    fs::write("/tmp/one", "first").unwrap();
    fs::write("/tmp/two", "second").unwrap();
    mount::bind("/tmp/one", "/tmp/two", BindMountAccess::Same).unwrap();
    assert_eq!(fs::read_to_string("/tmp/two").unwrap(), "first");
    fs::write("/tmp/two", "changed").unwrap();
    mount::detach("/tmp/two").unwrap();
    assert_eq!(fs::read_to_string("/tmp/two").unwrap(), "second");
    mount::bind("/tmp/one", "/tmp/two", BindMountAccess::ReadOnly).unwrap();
    let error = fs::write("/tmp/two", "again").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EROFS));
    assert_eq!(fs::read_to_string("/tmp/two").unwrap(), "changed");
    // A file of the outer system, whose mount has flags that may not be cleared from inside.
    mount::bind("/proc/version", "/tmp/one", BindMountAccess::ReadOnly).unwrap();
    assert_eq!(fs::read("/tmp/one").unwrap(), fs::read("/proc/version").unwrap());
    Ok(())
}

fn new_proc() -> Outcome {
    private_tmp();
    match namespace::fork_into(NamespaceFlags::PID).unwrap() {
        NamespaceFork::Child => {
            let mounted = mount::proc("/proc").map_err(|error| error.raw_os_error());
            if mounted == Err(Some(libc::EPERM)) {
                process::exit_now(EPERM_CODE);
            }
            mounted.unwrap();
            assert_eq!(fs::read_link("/proc/self").unwrap().to_str(), Some("1"));
            assert_eq!(process::thread_count().unwrap(), 1);
            process::exit_now(0)
        }
        NamespaceFork::Parent { pid, .. } => match process::wait_pid(pid, false).unwrap() {
            Some(process::ProcessExitStatus::Exited(EPERM_CODE)) => {
                Err("the outer /proc is hidden".into())
            }
            status => {
                assert_eq!(status, Some(process::ProcessExitStatus::Exited(0)));
                Ok(())
            }
        },
    }
}

fn new_sysfs() -> Outcome {
    private_tmp();
    fs::create_dir("/tmp/sys").unwrap();
    match mount::sysfs("/tmp/sys") {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            return Err("the outer /sys is hidden".into());
        }
        mounted => mounted.unwrap(),
    }
    assert!(fs::exists("/tmp/sys/class/net/lo").unwrap());
    assert_eq!(fs::read_dir("/tmp/sys/class/net").unwrap().count(), 1);
    Ok(())
}

fn private_tmp() {
    mount::set_propagation("/", Propagation::Slave).unwrap();
    mount::set_propagation("/", Propagation::Private).unwrap();
    mount::tmpfs("/tmp", "mode=755,size=1m").unwrap();
}

const EPERM_CODE: i32 = 76;
