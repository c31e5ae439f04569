//! Nodes and their programs.

use alloc::borrow::ToOwned;
use alloc::format;

use crate::name;
use crate::plan::{
    ImageLocation, Node, NodeFilesystem, Plan, Program, ProgramUser, ReadinessCheck,
    ReadinessCheckSettings, ReadinessCondition, RootSource, Volume, VolumeSource,
};

use crate::message::{PlanValidationError, Validate, ensure, shown};

pub(super) fn validate(plan: &Plan, node: &Node) -> Result<(), PlanValidationError> {
    let named = |error: PlanValidationError| {
        PlanValidationError::new(format!("node `{}`: {error}", node.name))
    };
    let pin = node.pin.as_ref();
    ensure(pin.is_none_or(|pin| name::is_machine(pin)), || "its `pin` names no machine".to_owned())
        .and_then(|()| {
            ensure(are_aliases(node), || "one of its further names cannot be one".to_owned())
        })
        .and_then(|()| node.sysctl.iter().try_for_each(|(key, value)| setting(key, value)))
        .and_then(|()| node.demand.validate())
        .and_then(|()| internet(plan, node))
        .and_then(|()| root(node))
        .and_then(|()| node.programs.iter().try_for_each(|it| program(plan, node, it)))
        .map_err(named)
}

/// One node is the machine's outside at the most: it has one link, and no programs.
fn internet(plan: &Plan, node: &Node) -> Result<(), PlanValidationError> {
    let others = plan.nodes.iter().filter(|other| other.internet.is_some()).count();
    let own = node.internet.is_none()
        || (others == 1 && node.interfaces.len() <= 1 && node.programs.is_empty() && !node.forward);
    ensure(own, || "it cannot be the machine's outside".to_owned())?;
    ensure(node.publish.is_empty() || (others == 1 && node.internet.is_none()), || {
        "its ports are published without a node for the machine's outside".to_owned()
    })
}

fn are_aliases(node: &Node) -> bool {
    node.aliases.len() <= Node::ALIASES_MAX
        && node.aliases.iter().all(|alias| name::is_alias(alias))
}

fn setting(key: &str, value: &str) -> Result<(), PlanValidationError> {
    ensure(name::is_sysctl(key) && is_text(value), || {
        format!("`{}` is not a `net.*` setting", shown(key))
    })
}

/// A file system of its own.
fn root(node: &Node) -> Result<(), PlanValidationError> {
    let is_path = |path: &str| path.starts_with('/') && is_text(path);
    let Some(root) = &node.root else {
        let of_image = node.user == ProgramUser::Image;
        return ensure(!of_image, || {
            "its user is that of an image that it does not have".to_owned()
        });
    };
    let source = match &root.source {
        RootSource::Folder(path) => {
            is_path(path) && (node.user != ProgramUser::Image || root.user.is_some())
        }
        RootSource::Image { location, digest, .. } => {
            let is_location = match location {
                ImageLocation::Path(path) => is_path(path),
                ImageLocation::Registry(reference) => !reference.is_empty() && is_text(reference),
            };
            let digest = digest.as_deref();
            let is_digest =
                |text: &str| text.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64);
            is_location && digest.is_none_or(is_digest)
        }
    };
    ensure(source, || "its file system cannot be found by what is said of it".to_owned())?;
    ensure(root.cwd.as_deref().is_none_or(is_path), || {
        "the folder of its image is not an absolute path".to_owned()
    })?;
    ensure(root.env.iter().all(|(key, value)| is_variable(key) && is_text(value)), || {
        "its image has a variable whose name or value cannot be one".to_owned()
    })?;
    let volume = |volume: &Volume| {
        let source = match &volume.source {
            VolumeSource::Path(path) => is_path(path),
            VolumeSource::Named(name) => NodeFilesystem::is_volume_name(name),
        };
        source && NodeFilesystem::is_target(&volume.target)
    };
    ensure(root.volumes.iter().all(volume), || "it has a volume that cannot be one".to_owned())
}

fn program(plan: &Plan, node: &Node, program: &Program) -> Result<(), PlanValidationError> {
    let of_image = node.root.as_ref().is_some_and(NodeFilesystem::is_unread_image);
    let command = match program.argv.first() {
        Some(word) => !word.is_empty(),
        None => of_image,
    };
    ensure(command && program.argv.iter().all(|word| is_text(word)), || {
        "a program has no command".to_owned()
    })?;
    let cwd = program.cwd.as_ref();
    ensure(cwd.is_none_or(|cwd| cwd.starts_with('/') && is_text(cwd)), || {
        "a program's folder is not an absolute path".to_owned()
    })?;
    ensure(program.env.iter().all(|(key, value)| is_variable(key) && is_text(value)), || {
        "a program has a variable whose name or value cannot be one".to_owned()
    })?;
    let ready = match &program.ready {
        Some(ReadinessCondition::Unix(path)) => is_text(path),
        Some(ReadinessCondition::Log(pattern)) => pattern.len() <= PATTERN_BYTES_MAX,
        Some(ReadinessCondition::Command(check)) => is_check(check),
        Some(ReadinessCondition::OfImage(said)) => of_image && is_checking(said),
        Some(
            ReadinessCondition::Tcp(_) | ReadinessCondition::Listen | ReadinessCondition::Exit,
        )
        | None => true,
    };
    ensure(ready, || "what makes a program ready cannot be looked for".to_owned())?;
    program.demand.validate()?;
    ensure(program.after.iter().all(|node| plan.has_node(*node)), || {
        "a program waits for a node that is not there".to_owned()
    })
}

fn is_check(check: &ReadinessCheck) -> bool {
    let words = check.argv.first().is_some_and(|word| !word.is_empty());
    let times = [check.every, check.timeout, check.start_every];
    words
        && check.argv.iter().all(|word| is_text(word))
        && times.iter().all(|time| *time >= ReadinessCheck::TIME_MIN)
        && check.fall.is_none_or(is_fall)
}

fn is_checking(said: &ReadinessCheckSettings) -> bool {
    let times = [said.every, said.timeout, said.start_every];
    said.argv.iter().all(|word| is_text(word))
        && said.argv.first().is_none_or(|word| !word.is_empty())
        && times.iter().flatten().all(|time| *time >= ReadinessCheck::TIME_MIN)
        && said.fall.is_none_or(is_fall)
}

fn is_fall(fall: u32) -> bool {
    (1..=ReadinessCheck::FALL_MAX).contains(&fall)
}

/// Whether the kernel takes it as a word: texts end at NUL there.
fn is_text(text: &str) -> bool {
    !text.contains('\0')
}

fn is_variable(key: &str) -> bool {
    !key.is_empty() && !key.contains('=') && is_text(key)
}

/// The longest regular expression: as long as the longest file.
pub(super) const PATTERN_BYTES_MAX: usize = 16 << 20;
