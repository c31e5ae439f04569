//! A trace: one line a member, with the seconds at which it joins, leaves, joins …

use std::collections::BTreeMap;

use windtunnel_model::Span;

use super::{PopulationChange, Speed, TextError, decimal};

/// Which members are there when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChurnTrace {
    /// By member: ascending times, each odd one a join, each even one a leave.
    pub(crate) members: Vec<Vec<Span>>,
}

impl ChurnTrace {
    /// Reads lines of ascending seconds with up to nine decimals. Empty lines, and what follows
    /// `#`, are passed over.
    pub(crate) fn parse(text: &str) -> Result<ChurnTrace, TextError> {
        let mut members = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("");
            let times = times(line, index + 1)?;
            if !times.is_empty() {
                members.push(times);
            }
        }
        match members.is_empty() {
            true => Err(TextError {
                line: 1,
                column: 1,
                length: 1,
                message: "the trace has no line with times".to_owned(),
                hint: Some("write a line a node, such as `30 300 600`: on, off, on".to_owned()),
            }),
            false => Ok(ChurnTrace { members }),
        }
    }

    /// What happens when.
    pub(crate) fn moves(&self, speed: Speed) -> Vec<PopulationChange> {
        let mut moves: BTreeMap<Span, PopulationChange> = BTreeMap::new();
        for (member, times) in self.members.iter().enumerate() {
            for (index, at) in times.iter().enumerate() {
                let at = speed.apply(*at);
                let entry = moves.entry(at);
                let step =
                    entry.or_insert(PopulationChange { at, leave: Vec::new(), join: Vec::new() });
                match index % 2 {
                    0 => step.join.push(member),
                    // What a speed-up brings to one instant: it has not been there.
                    _ if step.join.last() == Some(&member) => drop(step.join.pop()),
                    _ => step.leave.push(member),
                }
            }
        }
        moves.into_values().filter(|m| !m.leave.is_empty() || !m.join.is_empty()).collect()
    }
}

fn times(line: &str, number: usize) -> Result<Vec<Span>, TextError> {
    let mut times: Vec<Span> = Vec::new();
    let mut column = 0;
    for word in line.split(|c: char| c.is_whitespace() || c == ',') {
        let at = column + 1;
        column += word.chars().count() + 1;
        if word.is_empty() {
            continue;
        }
        let wrong = |message: String| TextError {
            line: number,
            column: at,
            length: word.chars().count(),
            message,
            hint: None,
        };
        let shown = crate::text::shorten(word);
        let nanos = decimal(word, 9).ok_or_else(|| {
            wrong(format!("`{shown}` is not a number of seconds, such as 30 or 2.5"))
        })?;
        let time = Span::from_nanos(nanos);
        if times.last().is_some_and(|last| *last >= time) {
            let message = format!("`{shown}` is not later than the time before it");
            return Err(wrong(message).hint(
                "a line holds the times at which a node goes on, off, on …, not how long it is",
            ));
        }
        times.push(time);
    }
    Ok(times)
}
