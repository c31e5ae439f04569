//! Texts of others on the terminal: what would act there is shown instead.

use std::borrow::Cow;

/// A line that a program wrote. Control characters are shown escaped, but tabs, and the return before
/// the end of the line.
pub(crate) fn shown(line: &str) -> Cow<'_, str> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let acts = |c: char| c != '\t' && is_active(c);
    if line.chars().any(acts) { Cow::Owned(escaped(line, acts)) } else { Cow::Borrowed(line) }
}

/// Whether a terminal does something on a character: control characters, and those that change the
/// direction of what stands on the line (UAX #9).
pub(crate) fn is_active(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with those characters escaped for which `acts` holds.
pub(crate) fn escaped(text: &str, acts: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if acts(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_program_writes_moves_the_cursor_or_changes_what_stands_there() {
        for (line, expected) in [
            ("\rFAITHFUL, PASSED", "\\rFAITHFUL, PASSED"),
            ("\u{1b}[2K\u{1b}[1A", "\\u{1b}[2K\\u{1b}[1A"),
            // The control sequence introducer of eight bits, a backspace, and a bell.
            ("\u{9b}1Ax\u{8}\u{7}", "\\u{9b}1Ax\\u{8}\\u{7}"),
            ("\u{202e}DESSAP", "\\u{202e}DESSAP"),
        ] {
            assert_eq!(shown(line), expected);
        }
    }

    #[test]
    fn lines_with_tabs_returns_at_their_end_and_any_script_stay_as_they_are() {
        assert_eq!(shown("a\tb 東京 é"), "a\tb 東京 é");
        assert_eq!(shown("of a program from elsewhere\r"), "of a program from elsewhere");
        assert!(matches!(shown("plain"), Cow::Borrowed("plain")));
    }
}
