//! Settings of the network namespace in which all nodes' devices end.

use std::fs;
use std::io;

use super::EnterError;

/// Silences the fabric's own IP stack.
pub(super) fn settle() -> Result<(), EnterError> {
    for path in IPV6_OFF {
        // A kernel without IPv6 needs no silencing.
        match fs::write(path, "1") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            written => written.map_err(|source| EnterError::Fabric { path, source })?,
        }
    }
    Ok(())
}

const IPV6_OFF: [&str; 2] =
    ["/proc/sys/net/ipv6/conf/all/disable_ipv6", "/proc/sys/net/ipv6/conf/default/disable_ipv6"];
