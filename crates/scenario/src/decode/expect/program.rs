//! Expectations of programs.

use windtunnel_model::expect::{Bounds, ExitWanted, ProgramFact, Stream};

use super::Subject;
use crate::decode::{Field, Fields};
use crate::error::Findings;
use crate::keys;
use crate::text::nearest;

impl Findings {
    pub(super) fn expect_of_node(
        &mut self,
        fields: &Fields<'_>,
        subject: Field<'_>,
    ) -> Option<Subject> {
        let node = self.text_at(subject, "a node's name");
        let untimed = TIMED.into_iter().chain(["exit"]).any(|key| fields.has(key));
        if let Some(between) = fields.find("between").filter(|_| untimed) {
            let hint = "bound the time itself, such as `exited: {min: 10s, max: 20s}`";
            self.mistake_with_hint(between.place, "`between` goes with `log` only", hint);
            return None;
        }
        let any = match fields.find("of") {
            Some(field) => self.choice(field, &[("each", false), ("any", true)])?,
            None => false,
        };
        let mut facts = Vec::new();
        if let Some(field) = fields.find("exit") {
            facts.push(ProgramFact::Exit(self.exit_wanted(field)?));
        }
        for key in TIMED {
            let Some(field) = fields.find(key) else { continue };
            let bounds = self.bounds(field, "a time such as 20s")?;
            facts.push(match key {
                "exited" => ProgramFact::Exited(bounds),
                "ready" => ProgramFact::Ready(bounds),
                _ => ProgramFact::Runtime(bounds),
            });
        }
        if let Some(field) = fields.find("log") {
            facts.push(self.log(field)?);
        }
        Some(Subject::Node { node: node?, any, facts })
    }

    /// A code, `any`, or the name of a signal.
    fn exit_wanted(&mut self, field: Field<'_>) -> Option<ExitWanted> {
        let text = field.scalar().unwrap_or_default();
        if text == "any" {
            return Some(ExitWanted::Any);
        }
        if text.starts_with("SIG") {
            let known = SIGNALS.iter().find(|(name, _)| *name == text);
            if known.is_none() {
                let message = format!("exit: `{}` is no signal", crate::text::shorten(text));
                match nearest(text, SIGNALS.iter().map(|(name, _)| *name)) {
                    Some(near) => {
                        let hint = format!("did you mean `{near}`?");
                        self.mistake_with_hint(field.wrong(), message, hint);
                    }
                    None => self.mistake(field.wrong(), message),
                }
            }
            return known.map(|(_, number)| ExitWanted::Signal(*number));
        }
        let needed = "an exit code, a signal such as SIGTERM, or `any`";
        let code = self.integer(field, 0..=255, needed)?;
        Some(ExitWanted::Code(u8::try_from(code).ok()?))
    }

    /// A pattern, or `{match: PATTERN, count: …, stream: …}`.
    fn log(&mut self, field: Field<'_>) -> Option<ProgramFact> {
        let at_least_one = Bounds { min: Some(1), max: None };
        if field.scalar().is_some() {
            let pattern = self.regex(field)?;
            return Some(ProgramFact::Log { pattern, stream: None, count: at_least_one });
        }
        let fields = self.fields(field, "an expectation of output", keys::LOG)?;
        let wanted = self.required(&fields, "match", "this expectation of output")?;
        let pattern = self.regex(wanted)?;
        let count = match fields.find("count") {
            Some(field) => self.count(field)?,
            None => at_least_one,
        };
        let stream = match fields.find("stream") {
            Some(field) => {
                let streams = [("stdout", Stream::Stdout), ("stderr", Stream::Stderr)];
                Some(self.choice(field, &streams)?)
            }
            None => None,
        };
        Some(ProgramFact::Log { pattern, stream, count })
    }

    fn regex(&mut self, field: Field<'_>) -> Option<String> {
        let pattern = self.text(field, "a regular expression")?;
        if pattern.is_empty() {
            self.mistake(field.wrong(), format!("`{}` is empty: every line matches", field.key));
            return None;
        }
        self.check_regex(field, pattern).then(|| pattern.to_owned())
    }
}

/// Facts that are times themselves.
const TIMED: [&str; 3] = ["exited", "ready", "runtime"];

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
