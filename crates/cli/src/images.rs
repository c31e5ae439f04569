//! Images of nodes, looked at before a run: what they say becomes part of the plan, which names each by
//! its digest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use windtunnel_control::part::with_causes;
use windtunnel_host::roots::{self, RootError, emulator};
use windtunnel_image::{Image, ImageError, ImageHealthcheck};
use windtunnel_model::plan::{
    ImageLocation, Node, NodeFilesystem, Platform, ReadinessCheck, ReadinessCheckSettings,
    ReadinessCondition, RootSource,
};
use windtunnel_model::{Plan, Span};
use windtunnel_scenario::{
    LoadedScenario, ScenarioErrors, ScenarioMistake, ScenarioNotice, SourceLocation, WrittenRoot,
};

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;
use crate::progress::{ProgressIndicator, ProgressUnit};

/// Looks at every image of the loaded scenario. Mistakes are at the place of `image` in the file.
pub(crate) fn look_at(
    loaded: &mut LoadedScenario,
    name: &str,
    text: &[u8],
    quiet: bool,
) -> Result<(), VerbFailure> {
    fetch(&mut loaded.plan, quiet)?;
    let text = String::from_utf8_lossy(text);
    let mut images = ImageInspectionCache::default();
    let mut mistakes = BTreeMap::new();
    for node in &mut loaded.plan.nodes {
        if let Err(RootImageError { message, hint, of_platform }) = images.fill(node) {
            // Members of a group are written once.
            let place = place(loaded.roots.get(&node.group), of_platform);
            let mistake = ScenarioMistake::at(name, &text, place, message, hint);
            mistakes.entry(node.group.clone()).or_insert(mistake);
        }
    }
    drop_empty(loaded, name, &text, &mut mistakes);
    match mistakes.is_empty() {
        true => Ok(()),
        false => Err(VerbFailure::Scenario(ScenarioErrors::of(mistakes.into_values().collect()))),
    }
}

/// Refuses images whose programs this machine cannot execute. They have been looked at.
pub(crate) fn check_platforms(
    loaded: &LoadedScenario,
    name: &str,
    text: &[u8],
) -> Result<(), VerbFailure> {
    let text = String::from_utf8_lossy(text);
    let mut mistakes = BTreeMap::new();
    let foreign = emulator::foreign(loaded.plan.nodes.iter());
    for node in &loaded.plan.nodes {
        let platform = node.root.as_ref().and_then(|root| root.source.platform());
        let Some(error) = platform.and_then(|it| foreign.get(it)) else { continue };
        let place = place(loaded.roots.get(&node.group), true);
        let message = format!("platform: {error}");
        let mistake = ScenarioMistake::at(name, &text, place, message, Some(error.hint()));
        mistakes.entry(node.group.clone()).or_insert(mistake);
    }
    match mistakes.is_empty() {
        true => Ok(()),
        false => Err(VerbFailure::Scenario(ScenarioErrors::of(mistakes.into_values().collect()))),
    }
}

/// Where something of a node's files is written, or their platform, if it is.
fn place(written: Option<&WrittenRoot>, of_platform: bool) -> SourceLocation {
    let of_platform = written.and_then(|it| it.platform).filter(|_| of_platform);
    of_platform.or_else(|| written.map(|it| it.source)).unwrap_or(SourceLocation::START)
}

/// Fetches images that are in registries. What a tag leads to now is in the plan by its digest.
fn fetch(plan: &mut Plan, quiet: bool) -> Result<(), VerbFailure> {
    let mut bar = ProgressIndicator::new("fetching images", ProgressUnit::Bytes, quiet);
    let pinned = roots::fetch_for(plan.nodes.iter(), &mut |done, total| bar.set(done, total));
    let pinned = pinned.map_err(|error| root_failure(&error))?;
    for root in plan.nodes.iter_mut().filter_map(|node| node.root.as_mut()) {
        let found = root.source.reference().and_then(|text| pinned.get(text));
        if let (Some(found), RootSource::Image { location, .. }) = (found, &mut root.source) {
            *location = ImageLocation::Registry(found.to_string());
        }
    }
    Ok(())
}

/// What a verb says of images and folders that nodes cannot have.
pub(crate) fn root_failure(error: &RootError) -> VerbFailure {
    let failure = VerbFailure::new(ExitCategory::Machine, with_causes(error));
    error.hint().into_iter().fold(failure, VerbFailure::hint)
}

/// An image without a command gives its node no program; none may wait for it then.
fn drop_empty(
    loaded: &mut LoadedScenario,
    name: &str,
    text: &str,
    mistakes: &mut BTreeMap<String, ScenarioMistake>,
) {
    let is_empty = |node: &Node| node.programs.iter().any(|program| program.argv.is_empty());
    if !mistakes.is_empty() || !loaded.plan.nodes.iter().any(is_empty) {
        return;
    }
    let Plan { nodes, expectations, .. } = &loaded.plan;
    let awaited: Vec<usize> = nodes
        .iter()
        .flat_map(|node| node.programs.iter().flat_map(|program| &program.after))
        .map(|id| id.index())
        .collect();
    let in_the_way = |id: usize, node: &Node| {
        let ready = node.programs.iter().any(|program| program.ready.is_some());
        awaited.contains(&id) || ready || !expectations.is_empty()
    };
    for (id, node) in nodes.iter().enumerate().filter(|(_, node)| is_empty(node)) {
        if in_the_way(id, node) {
            let place = place(loaded.roots.get(&node.group), false);
            let message =
                "image: it has no command of its own, and the file needs one of this node";
            let hint = Some("write the command: `run: …`".to_owned());
            let mistake = ScenarioMistake::at(name, text, place, message.to_owned(), hint);
            mistakes.entry(node.group.clone()).or_insert(mistake);
        }
    }
    let empty = loaded.plan.nodes.iter().filter(|node| is_empty(node));
    // Members of a group are written once.
    let groups: BTreeSet<String> = empty.map(|node| node.group.clone()).collect();
    for group in groups {
        let place = place(loaded.roots.get(&group), false);
        let message =
            format!("node {group}: it runs nothing: its image has no command, and it has no `run`");
        loaded.notices.push(ScenarioNotice::at(place, message));
    }
    for node in &mut loaded.plan.nodes {
        node.programs.retain(|program| !program.argv.is_empty());
    }
}

/// Those that have been looked at.
#[derive(Default)]
struct ImageInspectionCache {
    known: BTreeMap<(ImageLocation, Option<String>, Option<Platform>), Image>,
}

/// What is wrong with an image.
struct RootImageError {
    message: String,
    hint: Option<String>,
    /// Whether it is that it is not for the platform of the file.
    of_platform: bool,
}

impl RootImageError {
    fn new(message: String) -> RootImageError {
        RootImageError { message, hint: None, of_platform: false }
    }
}

impl ImageInspectionCache {
    fn fill(&mut self, node: &mut Node) -> Result<(), RootImageError> {
        let Some(root) = &mut node.root else { return Ok(()) };
        let RootSource::Image { location, name, platform, .. } = &root.source else {
            let RootSource::Folder(path) = &root.source else { return Ok(()) };
            let missing = || RootImageError::new(format!("root: there is no folder {path}"));
            return if Path::new(path).is_dir() { Ok(()) } else { Err(missing()) };
        };
        let key = (location.clone(), name.clone(), platform.clone());
        if !self.known.contains_key(&key) {
            let place = roots::place_of(&root.source);
            let place = place.map_err(|error| RootImageError::new(error.to_string()))?;
            let image = Image::open(&place, name.as_deref(), platform.as_ref());
            let image = image.map_err(|error| said(&error))?;
            self.known.insert(key.clone(), image);
        }
        let Some(image) = self.known.get(&key) else { return Ok(()) };
        let args = take_over(root, image);
        for program in &mut node.programs {
            if program.argv.is_empty() {
                program.argv.clone_from(&args);
            }
            if let Some(ReadinessCondition::OfImage(said)) = &program.ready {
                program.ready = Some(ReadinessCondition::Command(check_of(image, said.clone())?));
            }
        }
        Ok(())
    }
}

fn said(error: &ImageError) -> RootImageError {
    let of_platform = matches!(error, ImageError::Platform { is_own: false, .. });
    let key = if of_platform { "platform" } else { "image" };
    let message = format!("{key}: {}", with_causes(error));
    RootImageError { message, hint: error.hint(), of_platform }
}

/// Takes over what the image says; its command.
fn take_over(root: &mut NodeFilesystem, image: &Image) -> Vec<String> {
    let config = image.config();
    root.env = config.env.clone();
    root.cwd = config.cwd.clone();
    // What the file says comes first.
    root.user = root.user.take().or_else(|| config.user.clone());
    let RootSource::Image { platform, digest, args, .. } = &mut root.source else {
        return Vec::new();
    };
    *digest = Some(image.id().to_string());
    *platform = Some(image.platform().clone());
    config.command(args.take().as_deref())
}

/// The check of an image, with what the file says in place of what it says.
fn check_of(image: &Image, said: ReadinessCheckSettings) -> Result<ReadinessCheck, RootImageError> {
    if let Some(why) = &image.config().health_fault {
        let message = format!("ready: `healthcheck`: the image's cannot be read: {why}");
        let hint = Some("write `ready: command:WORDS`, or `tcp:PORT`".to_owned());
        return Err(RootImageError { hint, ..RootImageError::new(message) });
    }
    let own = image.config().health.as_ref().map(checking).unwrap_or_default();
    let check = said.or(own).of_image();
    if check.argv.is_empty() {
        let message = "ready: `healthcheck`: the image has none (HEALTHCHECK)".to_owned();
        let hint = Some("write `ready: command:WORDS`, or `tcp:PORT`".to_owned());
        return Err(RootImageError { hint, ..RootImageError::new(message) });
    }
    Ok(check)
}

/// Times that cannot be held, and more failures than can be counted, are the nearest that can.
fn checking(health: &ImageHealthcheck) -> ReadinessCheckSettings {
    let time =
        |nanos: Option<u64>| nanos.map(|it| Span::from_nanos(it).max(ReadinessCheck::TIME_MIN));
    let fall = health.retries.map(|it| it.min(ReadinessCheck::FALL_MAX.into()));
    ReadinessCheckSettings {
        argv: health.argv.clone(),
        every: time(health.interval_ns),
        timeout: time(health.timeout_ns),
        fall: fall.and_then(|fall| u32::try_from(fall).ok()),
        start_period: health.start_period_ns.map(Span::from_nanos),
        start_every: time(health.start_interval_ns),
    }
}
