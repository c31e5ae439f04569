//! The verdict of a run as JUnit XML, which CI systems show as tests.
//!
//! The form is the one that Ant's `junitreport` began and Jenkins, GitLab and others read:
//! `testsuites` with one `testsuite`, in it a `testcase` each with at most one `failure` or
//! `error`. A run is a suite. Its cases are the emulation's fidelity, the run's end, each program
//! and each expectation, so that a failed case says what failed.

use std::fmt::Write;

use crate::moment::seconds;
use crate::report::{ExpectationResult, ProgramReport, RunReport};

/// The document of a run.
#[must_use]
pub fn text(report: &RunReport) -> String {
    let mut cases = vec![fidelity(report), ending(report)];
    cases.extend(report.programs.iter().map(|program| self::program(report, program)));
    cases.extend(report.expectations.iter().map(|expected| expectation(report, expected)));
    let properties = [
        ("seed", report.seed.to_string()),
        ("plan_hash", report.plan_hash.clone()),
        ("windtunnel", report.windtunnel.clone()),
        ("kernel", report.kernel.clone()),
        ("verdict", report.verdict.text.clone()),
    ];
    let suite = JunitTestSuite {
        name: &report.name,
        began_unix_s: Some(report.began_unix_s),
        elapsed_ns: report.elapsed_ns,
        properties: &properties,
        cases: &cases,
    };
    suite.document()
}

/// The document of a run that could not begin, `why`.
#[must_use]
pub fn not_run(name: &str, why: &str) -> String {
    let case = JunitTestCase {
        class: class(name, "run"),
        name: "the network is set up".to_owned(),
        elapsed_ns: 0,
        problem: Some(JunitTestFailure {
            element: JunitProblemElement::Error,
            kind: "set-up",
            message: why.to_owned(),
        }),
        output: String::new(),
    };
    let suite = JunitTestSuite {
        name,
        began_unix_s: None,
        elapsed_ns: 0,
        properties: &[],
        cases: std::slice::from_ref(&case),
    };
    suite.document()
}

struct JunitTestSuite<'a> {
    name: &'a str,
    began_unix_s: Option<u64>,
    elapsed_ns: u64,
    properties: &'a [(&'a str, String)],
    cases: &'a [JunitTestCase],
}

struct JunitTestCase {
    class: String,
    name: String,
    elapsed_ns: u64,
    problem: Option<JunitTestFailure>,
    /// Where to look.
    output: String,
}

struct JunitTestFailure {
    element: JunitProblemElement,
    kind: &'static str,
    message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JunitProblemElement {
    /// Not as asked.
    Failure,
    /// It could not be tried.
    Error,
}

impl JunitProblemElement {
    const fn tag(self) -> &'static str {
        match self {
            JunitProblemElement::Failure => "failure",
            JunitProblemElement::Error => "error",
        }
    }
}

impl JunitTestSuite<'_> {
    fn document(&self) -> String {
        let count = |element: JunitProblemElement| {
            let problems = self.cases.iter().filter_map(|case| case.problem.as_ref());
            problems.filter(|problem| problem.element == element).count()
        };
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\" time=\"{}\"",
            self.cases.len(),
            count(JunitProblemElement::Failure),
            count(JunitProblemElement::Error),
            seconds(self.elapsed_ns)
        );
        let name = escaped(self.name);
        let began = self.began_unix_s.map(|at| format!(" timestamp=\"{}\"", iso_8601(at)));
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"windtunnel\" {counts}>\n  \
             <testsuite name=\"{name}\" {counts}{}>\n",
            began.unwrap_or_default()
        );
        if !self.properties.is_empty() {
            text.push_str("    <properties>\n");
            for (name, value) in self.properties {
                let value = escaped(value);
                // Writing to a text cannot fail, here and below.
                let _ = writeln!(text, "      <property name=\"{name}\" value=\"{value}\"/>");
            }
            text.push_str("    </properties>\n");
        }
        self.cases.iter().for_each(|case| case.write(&mut text));
        text.push_str("  </testsuite>\n</testsuites>\n");
        text
    }
}

impl JunitTestCase {
    fn write(&self, text: &mut String) {
        let _ = write!(
            text,
            "    <testcase classname=\"{}\" name=\"{}\" time=\"{}\"",
            escaped(&self.class),
            escaped(&self.name),
            seconds(self.elapsed_ns)
        );
        if self.problem.is_none() && self.output.is_empty() {
            text.push_str("/>\n");
            return;
        }
        text.push_str(">\n");
        if let Some(JunitTestFailure { element, kind, message }) = &self.problem {
            let message = escaped(message);
            let output = escaped(&self.output);
            let tag = element.tag();
            let _ = writeln!(
                text,
                "      <{tag} message=\"{message}\" type=\"{kind}\">{output}</{tag}>"
            );
        }
        if !self.output.is_empty() {
            let _ = writeln!(text, "      <system-out>{}</system-out>", escaped(&self.output));
        }
        text.push_str("    </testcase>\n");
    }
}

fn fidelity(report: &RunReport) -> JunitTestCase {
    let verdict = &report.verdict;
    let message = || verdict.unfaithful.join("; ");
    JunitTestCase {
        class: class(&report.name, "run"),
        name: "the emulation was faithful".to_owned(),
        elapsed_ns: report.elapsed_ns,
        problem: (!verdict.faithful).then(|| failure("not-faithful", message())),
        output: "see run.json and links.csv in the run folder".to_owned(),
    }
}

/// A run that was interrupted, or that could not go on.
fn ending(report: &RunReport) -> JunitTestCase {
    let verdict = &report.verdict;
    let bad = verdict.exit_code > 128 || verdict.failures.contains(&report.ended);
    JunitTestCase {
        class: class(&report.name, "run"),
        name: "the run came to its end".to_owned(),
        elapsed_ns: report.elapsed_ns,
        problem: bad.then(|| failure("ended", report.ended.clone())),
        output: format!("it ended because {}", report.ended),
    }
}

fn program(report: &RunReport, program: &ProgramReport) -> JunitTestCase {
    let several = report.programs.iter().filter(|other| other.node == program.node).count() > 1;
    let number = if several { format!(".{}", program.program) } else { String::new() };
    let end = program.exited_ns.unwrap_or(report.elapsed_ns);
    let node = &program.node;
    JunitTestCase {
        class: class(&report.name, "programs"),
        name: format!("{node}{number}: {}", program.argv.join(" ")),
        elapsed_ns: program.started_ns.map_or(0, |start| end.saturating_sub(start)),
        problem: program.failed.then(|| failure("exit", program.ended.clone())),
        output: format!("{}; see nodes/{node}/stdout{number} and stderr{number}", program.ended),
    }
}

fn expectation(report: &RunReport, expected: &ExpectationResult) -> JunitTestCase {
    let ExpectationResult { line, about, asked, seen, look, .. } = expected;
    let message = format!("expected {asked}, saw {seen}");
    JunitTestCase {
        class: class(&report.name, "expectations"),
        // Figures of one thing may be asked for in several lines.
        name: format!("line {line}: {about}, {asked}"),
        elapsed_ns: 0,
        problem: (!expected.met).then(|| failure("expectation", message)),
        output: format!("asked: {asked}\nseen: {seen}\nlook: {look}"),
    }
}

fn failure(kind: &'static str, message: String) -> JunitTestFailure {
    JunitTestFailure { element: JunitProblemElement::Failure, kind, message }
}

/// Readers split classes at dots to make a tree.
fn class(experiment: &str, part: &str) -> String {
    format!("{}.{part}", experiment.replace('.', "_"))
}

/// Text as XML 1.0 can hold it, in attributes and between tags.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' | '\n' | '\r' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            // XML 1.0, section 2.2: these are not characters of a document, escaped or not.
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

/// `2026-11-21T03:48:00`, in UTC, without a zone as the form has it.
fn iso_8601(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    // Howard Hinnant, "chrono-compatible low-level date algorithms": days from 0000-03-01, in eras
    // of 400 years.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
#[path = "junit/tests.rs"]
mod tests;
