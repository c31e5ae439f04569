//! Expectations of programs.

use serde_json::{Value as Json, json};
use windtunnel_model::expect::{ExitWanted, ProgramFact, StandardStream, ValueBounds};

use super::bounds::{CountBoundsForm, TimeBounds};
use crate::grammar::{
    Decoder, Fields, RequiredKeyForm, SchemaAlternative, SchemaDefinitions, ValueForm,
    YamlMapEntry, check_regex, form, map, text, words,
};
use crate::text::{nearest, shorten};

map! {
    /// What can be expected of programs.
    NodeFacts {
        /// How its programs exit: a code (128+n also for a signal n), a signal such as `SIGTERM`,
        /// or `any`.
        "exit" EXIT: ExitCode,
        /// When its programs have exited, after the run began.
        "exited" EXITED: TimeBounds,
        /// When its programs became ready, after the run began.
        "ready" READY: TimeBounds,
        /// How long the last life of its programs lasted, to the end of the run at the most.
        "runtime" RUNTIME: TimeBounds,
        /// What its programs write: a regular expression that a line must match, or more.
        "log" LOG: LogExpectationForm,
    }
}

/// Reads what is expected of programs.
pub(super) fn read_program_facts(
    from: &mut Decoder<'_>,
    fields: &Fields<'_>,
) -> Option<Vec<ProgramFact>> {
    let mut facts = Vec::new();
    facts.extend(from.read(fields, NodeFacts::EXIT)?.map(ProgramFact::Exit));
    facts.extend(from.read(fields, NodeFacts::EXITED)?.map(ProgramFact::Exited));
    facts.extend(from.read(fields, NodeFacts::READY)?.map(ProgramFact::Ready));
    facts.extend(from.read(fields, NodeFacts::RUNTIME)?.map(ProgramFact::Runtime));
    facts.extend(from.read(fields, NodeFacts::LOG)?);
    Some(facts)
}

words! {
    /// Which members of a group.
    Members as "Of"; bool {
        /// All members.
        "each" => false,
        /// One member at the least.
        "any" => true,
    }
}

/// A code, `any`, or the name of a signal.
pub(super) struct ExitCode;

impl ValueForm for ExitCode {
    type Value = ExitWanted;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<ExitWanted> {
        let text = field.scalar().unwrap_or_default();
        if text == "any" {
            return Some(ExitWanted::Any);
        }
        if text.starts_with("SIG") {
            return read_signal(from, field, text).map(ExitWanted::Signal);
        }
        let needed = "an exit code, a signal such as SIGTERM, or `any`";
        let code = from.integer(field, 0..=255, needed)?;
        Some(ExitWanted::Code(u8::try_from(code).ok()?))
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let word = |definitions: &mut SchemaDefinitions| {
            let description = "The name of a signal, or `any`.";
            definitions.text("SignalOrAny", description, "^(any|SIG[A-Z0-9]+)$", "SIGTERM")
        };
        definitions.any_of(
            "ExitCode",
            "An exit code, the name of a signal, or `any`.",
            &[
                SchemaAlternative(
                    "The code.",
                    |_| json!({"type": "integer", "minimum": 0, "maximum": 255}),
                ),
                SchemaAlternative("A signal, or whatever it is.", word),
            ],
        )
    }
}

fn read_signal(from: &mut Decoder<'_>, field: YamlMapEntry<'_>, text: &str) -> Option<i32> {
    let known = SIGNALS.iter().find(|(name, _)| *name == text);
    if known.is_none() {
        let message = format!("exit: `{}` is not a signal", shorten(text));
        match nearest(text, SIGNALS.iter().map(|(name, _)| *name)) {
            Some(near) => {
                from.mistake_with_hint(field.wrong(), message, format!("did you mean `{near}`?"));
            }
            None => from.mistake(field.wrong(), message),
        }
    }
    known.map(|(_, number)| *number)
}

map! {
    /// Lines of output, and how many.
    LogForm {
        /// The regular expression that a line must match.
        "match" MATCH: RequiredKeyForm<Pattern>,
        /// How many lines; default `{min: 1}`. 0 for none.
        "count" COUNT: CountBoundsForm,
        /// Only `stdout` or only `stderr`; default: both.
        "stream" STREAM: StreamName,
    }
}

words! {
    /// A stream of a program.
    StreamName: StandardStream {
        /// Standard output.
        "stdout" => StandardStream::Stdout,
        /// Standard error.
        "stderr" => StandardStream::Stderr,
    }
}

/// A pattern, or `{match: PATTERN, count: …, stream: …}`.
pub(super) struct LogExpectationForm;

impl ValueForm for LogExpectationForm {
    type Value = ProgramFact;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<ProgramFact> {
        let at_least_one = ValueBounds { min: Some(1), max: None };
        if field.scalar().is_some() {
            let pattern = Pattern::read(from, field)?;
            return Some(ProgramFact::Log { pattern, stream: None, count: at_least_one });
        }
        let fields = from.table::<LogForm>(field, "an expectation of output")?;
        let pattern = from.need(&fields, LogForm::MATCH, "this expectation of output")?;
        let count = from.read_or(&fields, LogForm::COUNT, at_least_one)?;
        let stream = from.read(&fields, LogForm::STREAM)?;
        Some(ProgramFact::Log { pattern, stream, count })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Log",
            "What programs write.",
            &[
                SchemaAlternative("A regular expression that at least one line must match.", text),
                SchemaAlternative("All of it.", LogForm::definition),
            ],
        )
    }
}

form! {
    /// A regular expression that does not match everything.
    Pattern: String, by read_pattern, like text
}

fn read_pattern(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<String> {
    let pattern = from.text(field, "a regular expression")?;
    if pattern.is_empty() {
        from.mistake(field.wrong(), format!("`{}` is empty: every line matches", field.key));
        return None;
    }
    check_regex(from, field, pattern).then(|| pattern.to_owned())
}

/// signal(7), as on every architecture but Alpha, SPARC, MIPS and PARISC.
const SIGNALS: [(&str, i32); 14] = [
    ("SIGHUP", 1),
    ("SIGINT", 2),
    ("SIGQUIT", 3),
    ("SIGILL", 4),
    ("SIGABRT", 6),
    ("SIGBUS", 7),
    ("SIGFPE", 8),
    ("SIGKILL", 9),
    ("SIGUSR1", 10),
    ("SIGSEGV", 11),
    ("SIGUSR2", 12),
    ("SIGPIPE", 13),
    ("SIGALRM", 14),
    ("SIGTERM", 15),
];
