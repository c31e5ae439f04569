//! What is wrong with a trace file.

use crate::position::SourceLocation;

/// What is wrong with a trace, and where.
#[derive(Debug)]
pub(super) struct TraceSyntaxError {
    pub(super) place: SourceLocation,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl TraceSyntaxError {
    /// `column` and `length` in characters, from 1 and at least 1.
    pub(super) fn at(
        line: usize,
        column: usize,
        length: usize,
        message: impl Into<String>,
    ) -> Self {
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let place = SourceLocation {
            line: number(line),
            column: number(column),
            length: number(length.max(1)),
        };
        TraceSyntaxError { place, message: message.into(), hint: None }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        TraceSyntaxError { hint: Some(hint.into()), ..self }
    }
}
