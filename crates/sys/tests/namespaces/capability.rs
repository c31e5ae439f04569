//! Capabilities.

use std::ffi::CString;
use std::fs;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;

use windtunnel_sys::capability::{self, EffectiveCapabilities};
use windtunnel_sys::namespace::NamespaceFlags;
use windtunnel_sys::process::{self, SpawnPlan};

use crate::{Case, Outcome};

pub(crate) const CASES: &[Case] = &[
    Case { name: "root_of_a_namespace_has_capabilities", flags: NamespaceFlags::NET, body: has },
    Case {
        name: "dropped_capabilities_are_gone_for_good",
        flags: NamespaceFlags::NET,
        body: dropped,
    },
    Case { name: "a_program_can_be_started_without", flags: NamespaceFlags::NET, body: started },
];

const SETS: [&str; 5] = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];

fn has() -> Outcome {
    // A container may keep this one from its root.
    const SYS_RESOURCE: u32 = 24;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let bits = status.lines().find_map(|line| line.strip_prefix("CapEff:\t")).unwrap();
    let bits = u64::from_str_radix(bits, 16).unwrap();
    let all = EffectiveCapabilities {
        sys_admin: true,
        sys_resource: bits >> SYS_RESOURCE & 1 == 1,
        net_admin: true,
        net_raw: true,
        bpf: true,
        perfmon: true,
    };
    assert_eq!(capability::effective().unwrap(), all);
    Ok(())
}

fn dropped() -> Outcome {
    capability::drop_all().unwrap();
    let none = EffectiveCapabilities {
        sys_admin: false,
        sys_resource: false,
        net_admin: false,
        net_raw: false,
        bpf: false,
        perfmon: false,
    };
    assert_eq!(capability::effective().unwrap(), none);
    assert_all_empty(&fs::read_to_string("/proc/self/status").unwrap());
    // Twice is not an error, although the bounding set can be changed no more.
    capability::drop_all().unwrap();
    Ok(())
}

fn started() -> Outcome {
    let arguments = ["cat", "/proc/self/status"].map(|word| CString::new(word).unwrap());
    let environment = [CString::new("PATH=/bin").unwrap()];
    let null = File::open("/dev/null").unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let stdio = [null.as_fd(), writer.as_fd(), writer.as_fd()];
    let mut plan = SpawnPlan::new(&arguments, &environment, stdio);
    plan.drop_capabilities = true;
    plan.user = Some(process::current_user());
    let pid = process::spawn(&plan).unwrap();
    drop(writer);
    let mut status = String::new();
    reader.read_to_string(&mut status).unwrap();
    assert_all_empty(&status);
    crate::fork::passed(pid)
}

fn assert_all_empty(status: &str) {
    for set in SETS {
        assert!(status.contains(&format!("{set}:\t0000000000000000\n")), "{set} in {status}");
    }
}
