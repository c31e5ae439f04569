//! The settings that the file asks for, checked by the kernel's own answer.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::mounts;
use crate::hint;
use crate::message::{NodeSetupFailure, NodeSetupStage};

/// Writes each setting, and reads it again: a number that the kernel has silently changed is
/// refused as well.
pub(super) fn apply(settings: &BTreeMap<String, String>) -> Result<(), NodeSetupFailure> {
    for (key, value) in settings {
        let path = path_of(key).ok_or_else(|| NodeSetupFailure {
            stage: NodeSetupStage::Sysctl,
            message: format!("sysctl {key} is not a setting of a network namespace"),
            hint: Some("only net.* can be set per node, with dots between the words".into()),
        })?;
        fs::write(&path, value).map_err(|error| refused(key, value, &error))?;
        if let Some(taken) = fs::read_to_string(&path).ok().filter(|taken| differs(value, taken)) {
            let taken = taken.split_whitespace().collect::<Vec<_>>().join(" ");
            return Err(NodeSetupFailure {
                stage: NodeSetupStage::Sysctl,
                message: format!("sysctl {key} = {value}: the kernel has made it {taken}"),
                hint: Some(format!("write {taken} if that will do")),
            });
        }
    }
    Ok(())
}

/// The file of a setting; `None` if the key leads anywhere but below /proc/sys/net.
fn path_of(key: &str) -> Option<PathBuf> {
    let rest = key.strip_prefix("net.")?;
    let plain = !rest.contains('/') && rest.split('.').all(|word| !word.is_empty());
    plain.then(|| Path::new("/proc/sys/net").join(rest.replace('.', "/")))
}

/// Whether both are lists of numbers, and not the same one. Other texts the kernel may well repeat
/// in another form.
fn differs(asked: &str, taken: &str) -> bool {
    let numbers = |text: &str| -> Option<Vec<i64>> {
        text.split_whitespace().map(|word| word.parse().ok()).collect()
    };
    match (numbers(asked), numbers(taken)) {
        (Some(asked), Some(taken)) => !taken.is_empty() && asked != taken,
        _ => false,
    }
}

fn refused(key: &str, value: &str, error: &io::Error) -> NodeSetupFailure {
    let congestion = key == "net.ipv4.tcp_congestion_control";
    let (reason, hint) = match error.raw_os_error() {
        Some(hint::ERRNO_EPERM) if congestion => (
            "the kernel allows this algorithm only to root",
            Some(
                "use `user: root` and let the program choose it per socket, or make it the \
                 machine's default with sysctl"
                    .into(),
            ),
        ),
        Some(hint::ERRNO_ENOENT) if congestion => {
            ("this kernel does not have the algorithm", Some(available()))
        }
        Some(hint::ERRNO_ENOENT) => (
            "this kernel has no such setting in a network namespace",
            Some("if the setting exists outside, it belongs to the whole machine".into()),
        ),
        Some(hint::ERRNO_EPERM | hint::ERRNO_EACCES) => (
            "the kernel lets only the machine's root change it",
            Some("set it for the whole machine with sysctl, or leave it out".into()),
        ),
        Some(hint::ERRNO_EINVAL) => ("the kernel does not accept this value", None),
        _ => ("the kernel refuses it", mounts::read_only_hint(error)),
    };
    let message = format!("sysctl {key} = {value}: {reason} ({error})");
    NodeSetupFailure { stage: NodeSetupStage::Sysctl, message, hint }
}

fn available() -> String {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let names = fs::read_to_string(path).unwrap_or_default();
    format!("available: {}; others may be kernel modules (sudo modprobe tcp_NAME)", names.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_below_the_network_settings() {
        let path = path_of("net.ipv4.conf.eth0.rp_filter").unwrap();
        assert_eq!(path, Path::new("/proc/sys/net/ipv4/conf/eth0/rp_filter"));
        for key in ["kernel.hostname", "net", "net.", "net...kernel.x", "net.ipv4/../../kernel.x"] {
            assert_eq!(path_of(key), None, "{key}");
        }
    }

    #[test]
    fn only_numbers_are_compared_with_what_the_kernel_made_of_them() {
        assert!(!differs("4096 87380 6291456", "4096\t87380\t6291456\n"));
        assert!(differs("10", "12\n"));
        assert!(!differs("cubic", "reno\n"));
        assert!(!differs("1", "\n"));
    }
}
