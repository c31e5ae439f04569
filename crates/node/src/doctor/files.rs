//! What nodes with a file system of their own need.

use std::fs;
use std::io;
use std::path::Path;

use windtunnel_sys::mount;
use windtunnel_sys::process;

use super::checks::{found, private};
use super::trial::PrerequisiteProblem;
use super::{PrerequisiteCheck, hint};
use crate::namespaces::subordinate;

/// Other users than one for the programs of nodes. Runs do without.
pub(super) fn identities() -> PrerequisiteCheck {
    const NAME: &str = "subordinate identities";
    let user = process::current_user();
    if user.uid == 0 {
        return PrerequisiteCheck::good(NAME, "not needed: root has every identity");
    }
    let one =
        "nodes with `user: root` or an image have one user: chown and setuid to others fail there";
    let without = |why: &str, hint: &str| PrerequisiteCheck {
        hint: Some(hint.to_owned()),
        ..PrerequisiteCheck::good(NAME, format!("{why}: {one}"))
    };
    let Some(maps) = subordinate::identities(user) else {
        let hint = "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER";
        return without("none in /etc/subuid and /etc/subgid", hint);
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |name: &str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    if !has("newuidmap") || !has("newgidmap") {
        return without("newuidmap and newgidmap are missing", "sudo apt install uidmap");
    }
    let count = maps.users.get(1).map_or(0, |range| range.count);
    PrerequisiteCheck::good(NAME, format!("{count}, for the users of images"))
}

/// Whether layers of images can be shown as one tree. Otherwise they are copied.
pub(super) fn overlay() -> Result<String, PrerequisiteProblem> {
    private()?;
    let place = std::env::temp_dir().join(format!("windtunnel-doctor-{}", std::process::id()));
    let tried = try_overlay(&place);
    // What is left of it is empty.
    let _ = fs::remove_dir_all(&place);
    match tried {
        Ok(()) => found("can be mounted"),
        Err(error) => found(&format!(
            "cannot be mounted ({error}): each node with an image copies it ({})",
            hint::OVERLAY
        )),
    }
}

fn try_overlay(place: &Path) -> io::Result<()> {
    let part = |name: &str| place.join(name);
    for name in ["lower", "upper", "work", "root"] {
        fs::create_dir_all(part(name))?;
    }
    let lower = ["lower".into()];
    mount::overlay(part("root"), place, &lower, &part("upper"), &part("work"))?;
    std::env::set_current_dir("/")?;
    mount::detach(part("root"))
}
