//! `doctor`: what this machine allows.

use anstyle::AnsiColor;
use serde::Serialize;
use windtunnel_node::PrerequisiteCheck;

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::Outcome;
use crate::output;
use crate::render::paint;
use crate::render::table::{ColumnAlignment, TextTable};

/// Show what this machine allows and denies, and how to change it
///
/// Tries every mechanism that a run needs. Exits with 4 if a needed one is denied.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    format: OutputFormat,
}

/// All checks, for `--json`.
#[derive(Debug, Serialize)]
struct MachineDiagnosis {
    ok: bool,
    checks: Vec<PrerequisiteCheck>,
}

pub(crate) fn run(arguments: &DoctorArguments) -> Outcome {
    let checks = windtunnel_node::diagnose();
    let ok = checks.iter().all(|check| check.ok);
    let code = if ok { ExitCategory::Fine } else { ExitCategory::Machine }.code();
    if arguments.format.json {
        output::json(&MachineDiagnosis { ok, checks })?;
    } else {
        output::data(&render(&checks, output::data_colours()))?;
    }
    Ok(code)
}

fn render(checks: &[PrerequisiteCheck], colours: bool) -> String {
    let mut table = TextTable::new(&[
        ("check", ColumnAlignment::Left),
        ("state", ColumnAlignment::Left),
        ("detail", ColumnAlignment::Left),
    ]);
    for check in checks {
        let state = if check.ok { "ok" } else { "denied" };
        table.row([check.name.to_owned(), state.to_owned(), check.detail.clone()]);
    }
    let mut lines = Vec::new();
    // The heading has no check.
    let marked = std::iter::once(None).chain(checks.iter().map(Some));
    for (line, check) in table.lines().into_iter().zip(marked) {
        match check {
            Some(check) if !check.ok => lines.push(paint(&line, AnsiColor::Red, colours)),
            _ => lines.push(line),
        }
        if let Some(hint) = check.and_then(|check| check.hint.as_deref()) {
            lines.push(format!("  hint: {hint}"));
        }
    }
    lines.push(match checks.iter().filter(|check| !check.ok).count() {
        0 => "this machine allows all that a run needs".to_owned(),
        1 => "one mechanism that a run needs is denied".to_owned(),
        denied => format!("{denied} mechanisms that a run needs are denied"),
    });
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_check_is_followed_by_its_hint() {
        let check = |name, ok, hint: Option<&str>| PrerequisiteCheck {
            name,
            ok,
            detail: "seen".into(),
            hint: hint.map(str::to_owned),
        };
        let checks = [check("namespaces", false, Some("do this")), check("ping", true, None)];
        assert_eq!(
            render(&checks, false),
            "check       state   detail\n\
             namespaces  denied  seen\n\
             \u{20} hint: do this\n\
             ping        ok      seen\n\
             one mechanism that a run needs is denied\n"
        );
    }
}
