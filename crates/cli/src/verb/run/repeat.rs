//! `run --repeat`: runs that differ in their seeds alone, for figures with confidence intervals.

use std::path::{Path, PathBuf};

use windtunnel_model::Plan;
use windtunnel_model::plan::{Node, RootSource};
use windtunnel_scenario::LoadedScenario;
use windtunnel_trace::report::RunReport;

use super::{RunArguments, child, new_run_folder, over, plan_of, show};
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::render::quantity::count;
use crate::verb::report;
use crate::{load, output};

/// Does all runs, until one is ended by a signal or cannot be done. The exit code is the greatest
/// of theirs.
pub(super) fn carry_out(arguments: &RunArguments) -> Outcome {
    if load::is_standard_input(&arguments.scenario.path()?) {
        let text = "--repeat reads the scenario for each run, and standard input can be read once";
        return Err(VerbFailure::new(ExitCategory::Usage, text).hint("write it to a file"));
    }
    let first = arguments.load()?.plan;
    let out = arguments.manner.out.as_deref();
    let folder = new_run_folder(out, &first.name)?;
    let mut done = Vec::new();
    for number in 1..=arguments.repeat {
        let seed = first.seed.wrapping_add(u64::from(number - 1));
        let report = repetition(arguments, number, seed, &folder, &first)?;
        let ends_all = report.verdict.exit_code > ExitCategory::Check.code();
        done.push(report);
        if ends_all {
            break;
        }
    }
    if out.is_none() {
        link_latest(&folder)?;
    }
    let page = arguments.manner.report.then(|| report::write_into(&folder));
    conclude(arguments, &done, &folder)?;
    page.transpose()?;
    Ok(done.iter().map(|report| report.verdict.exit_code).max().unwrap_or_default())
}

/// One of the runs: on this machine, where it leaves the network for good, in a process of its own.
fn repetition(
    arguments: &RunArguments,
    number: u32,
    seed: u64,
    folder: &Path,
    first: &Plan,
) -> Result<RunReport, VerbFailure> {
    let mut one = arguments.clone();
    let own = folder.join(number.to_string());
    one.manner.seed = Some(seed);
    one.manner.out = Some(own.clone());
    if !one.manner.is_quiet() {
        output::talk(&format!("run {number} of {}, seed {seed}", arguments.repeat));
    }
    let base_dir = load::folder_of(&one.scenario.path()?);
    let report = if one.machines.are_named() {
        let (_, executed) = over::carry_out(again(&one, first)?, base_dir, &one)?;
        reported(executed.result)?
    } else {
        child::run(|| {
            let plan = plan_of(again(&one, first)?, &one.manner)?;
            reported(super::carry_out(&plan, base_dir, &one)?.result)
        })?
    };
    if !one.manner.is_json() {
        show(&one.manner.showing, &report, &own)?;
    }
    Ok(report)
}

/// The scenario once more: a tag may lead to another image by now, and runs may differ in their seeds alone.
fn again(arguments: &RunArguments, first: &Plan) -> Result<LoadedScenario, VerbFailure> {
    let loaded = arguments.load()?;
    let Some((node, was, is)) = changed_image(first, &loaded.plan) else { return Ok(loaded) };
    let text = format!("node {node}: its image was {was} in the first run, and is {is} now");
    Err(VerbFailure::new(ExitCategory::Machine, text)
        .hint("name it by its digest, as plan.json does"))
}

/// A node whose files are others than they were: its name, what it had, and what it has.
fn changed_image(first: &Plan, now: &Plan) -> Option<(String, String, String)> {
    let shown = |node: &Node| match node.root.as_ref().map(|root| &root.source) {
        Some(RootSource::Image { location, digest, .. }) => {
            format!("{location} ({})", digest.as_deref().unwrap_or("unread"))
        }
        Some(RootSource::Folder(path)) => path.clone(),
        None => "none".to_owned(),
    };
    let mut pairs = first.nodes.iter().zip(&now.nodes);
    let pair = pairs.find(|(was, is)| shown(was) != shown(is))?;
    Some((pair.1.name.clone(), shown(pair.0), shown(pair.1)))
}

fn reported(result: Result<Option<RunReport>, VerbFailure>) -> Result<RunReport, VerbFailure> {
    result?.ok_or_else(|| VerbFailure::new(ExitCategory::Internal, "a run without a report"))
}

/// What all runs came to: the last line, or all reports as JSON.
fn conclude(
    arguments: &RunArguments,
    done: &[RunReport],
    folder: &Path,
) -> Result<(), VerbFailure> {
    if arguments.manner.is_json() {
        return output::json(&done);
    }
    let of = |wanted: &dyn Fn(&RunReport) -> bool| done.iter().filter(|it| wanted(it)).count();
    let faithful = of(&|report| report.verdict.faithful);
    let passed = of(&|report| report.verdict.passed);
    output::data(&format!(
        "{}: {faithful} FAITHFUL, {passed} PASSED ({})\n",
        count(done.len(), "run"),
        folder.display()
    ))
}

/// Makes `latest` beside the folder lead to it.
fn link_latest(folder: &Path) -> Result<(), VerbFailure> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else { return Ok(()) };
    let (link, aside): (PathBuf, PathBuf) = (parent.join("latest"), parent.join(".latest"));
    let made =
        std::os::unix::fs::symlink(name, &aside).and_then(|()| std::fs::rename(&aside, &link));
    made.map_err(|error| {
        VerbFailure::new(ExitCategory::Machine, format!("cannot make {}: {error}", link.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(image: &str) -> Plan {
        let text = format!(
            "nodes: {{a: {{image: {image}, run: x}}, b: {{}}}}\nlinks: [{{between: [a, b]}}]\n"
        );
        load::resolve(
            "x.yaml",
            text.as_bytes(),
            "x",
            Path::new("/"),
            windtunnel_scenario::ScenarioOverrides::default(),
        )
        .unwrap()
        .plan
    }

    #[test]
    fn an_image_that_has_changed_between_two_runs_is_named() {
        assert_eq!(changed_image(&plan("one.tar"), &plan("one.tar")), None);
        let (node, was, is) = changed_image(&plan("one.tar"), &plan("two.tar")).unwrap();
        assert_eq!((node.as_str(), was.as_str()), ("a", "/one.tar (unread)"));
        assert!(is.starts_with("/two.tar"), "{is}");
    }
}
