//! `run --repeat`: runs that differ in their seeds alone, for figures with confidence intervals.

use std::path::{Path, PathBuf};

use windtunnel_trace::report::Report;

use super::{Arguments, child, new_run_folder, over, plan_of, show};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::quantity::count;
use crate::verb::{Outcome, report};
use crate::{load, output};

/// Does all runs, until one is ended by a signal or cannot be done. The exit code is the greatest
/// of theirs.
pub(super) fn carry_out(arguments: &Arguments) -> Outcome {
    if load::is_standard_input(&arguments.scenario.path()?) {
        let text = "--repeat reads the scenario for each run, and standard input can be read once";
        return Err(Failure::new(Exit::Usage, text).hint("write it to a file"));
    }
    let first = arguments.load()?.plan;
    let out = arguments.manner.out.as_deref();
    let folder = new_run_folder(out, &first.name)?;
    let mut done = Vec::new();
    for number in 1..=arguments.repeat {
        let seed = first.seed.wrapping_add(u64::from(number - 1));
        let report = repetition(arguments, number, seed, &folder)?;
        let ends_all = report.verdict.exit_code > Exit::Check.code();
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
    arguments: &Arguments,
    number: u32,
    seed: u64,
    folder: &Path,
) -> Result<Report, Failure> {
    let mut one = arguments.clone();
    let own = folder.join(number.to_string());
    one.manner.seed = Some(seed);
    one.manner.out = Some(own.clone());
    if !one.manner.is_quiet() {
        output::talk(&format!("run {number} of {}, seed {seed}", arguments.repeat));
    }
    let base_dir = load::folder_of(&one.scenario.path()?);
    let report = if one.machines.are_named() {
        let (_, (_, _, result)) = over::carry_out(one.load()?, base_dir, &one)?;
        reported(result)?
    } else {
        child::run(|| {
            let plan = plan_of(one.load()?, &one.manner)?;
            let (_, _, result) = super::carry_out(&plan, base_dir, &one)?;
            reported(result)
        })?
    };
    if !one.manner.is_json() {
        show(&one.manner.showing, &report, &own)?;
    }
    Ok(report)
}

fn reported(result: Result<Option<Report>, Failure>) -> Result<Report, Failure> {
    result?.ok_or_else(|| Failure::new(Exit::Internal, "a run without a report"))
}

/// What all runs came to: the last line, or all reports as JSON.
fn conclude(arguments: &Arguments, done: &[Report], folder: &Path) -> Result<(), Failure> {
    if arguments.manner.is_json() {
        return output::json(&done);
    }
    let of = |wanted: &dyn Fn(&Report) -> bool| done.iter().filter(|it| wanted(it)).count();
    let faithful = of(&|report| report.verdict.faithful);
    let passed = of(&|report| report.verdict.passed);
    output::data(&format!(
        "{}: {faithful} FAITHFUL, {passed} PASSED ({})\n",
        count(done.len(), "run"),
        folder.display()
    ))
}

/// Makes `latest` beside the folder lead to it.
fn link_latest(folder: &Path) -> Result<(), Failure> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else { return Ok(()) };
    let (link, aside): (PathBuf, PathBuf) = (parent.join("latest"), parent.join(".latest"));
    let made =
        std::os::unix::fs::symlink(name, &aside).and_then(|()| std::fs::rename(&aside, &link));
    made.map_err(|error| {
        Failure::new(Exit::Machine, format!("cannot make {}: {error}", link.display()))
    })
}
