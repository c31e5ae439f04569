//! Words, numbers and signs of the churn language.

use windtunnel_model::Span;

use super::{TextError, decimal};

/// One word, number or sign with its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScriptToken<'t> {
    pub(super) text: &'t str,
    /// From 1, in characters.
    pub(super) column: usize,
}

/// One line while it is read.
#[derive(Debug)]
pub(super) struct TokenCursor<'t> {
    number: usize,
    tokens: Vec<ScriptToken<'t>>,
    next: usize,
    end: usize,
}

impl<'t> TokenCursor<'t> {
    /// What is left of a line without its comment.
    pub(super) fn new(text: &'t str, number: usize) -> Self {
        let end = [text.find('#'), text.find("//")].into_iter().flatten().min();
        let text = &text[..end.unwrap_or(text.len())];
        let tokens = tokens(text);
        TokenCursor { number, tokens, next: 0, end: text.trim_end().chars().count() + 1 }
    }

    pub(super) fn peek(&self) -> Option<ScriptToken<'t>> {
        self.tokens.get(self.next).copied()
    }

    /// Takes the next token if it is one of `words`, in whatever case.
    pub(super) fn take(&mut self, words: &[&str]) -> Option<ScriptToken<'t>> {
        let token = self.peek()?;
        words.iter().any(|word| token.text.eq_ignore_ascii_case(word)).then(|| {
            self.next += 1;
            token
        })
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<(), TextError> {
        match self.take(&[word]) {
            Some(_) => Ok(()),
            None => Err(self.wrong(&format!("`{word}`"))),
        }
    }

    /// A time: `2h`, `2h30m`, `2h, 30m and 10s`.
    pub(super) fn time(&mut self) -> Result<Span, TextError> {
        let mut sum = Span::ZERO;
        loop {
            let number = self.number("a time such as 30s or `2h, 30m and 10s`")?;
            let Some(unit) = self.peek().and_then(|unit| unit_of(unit.text)) else {
                return Err(self.wrong("a unit of time: s, m, h or d"));
            };
            self.next += 1;
            let millionths = decimal(number.text, 6).unwrap_or(0);
            let nanos = u128::from(millionths) * u128::from(unit) / 1_000_000;
            sum = sum + Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            let more = self.take(&[",", "and"]).is_some() | self.take(&["and"]).is_some();
            let number_follows = self.peek().is_some_and(|token| is_number(token.text));
            if !more && !number_follows {
                return Ok(sum);
            }
        }
    }

    /// A number, perhaps with `%`; in millionths.
    pub(super) fn amount(&mut self, needed: &str) -> Result<(u64, bool), TextError> {
        let number = self.number(needed)?;
        let share = self.take(&["%"]).is_some();
        let value = match share {
            true => decimal(number.text, 6).and_then(|millionths| millionths.checked_div(100)),
            false => number.text.parse().ok(),
        };
        let value = value.ok_or_else(|| self.wrong_at(Some(number), needed))?;
        Ok((value, share))
    }

    pub(super) fn end(&self) -> Result<(), TextError> {
        match self.peek() {
            None => Ok(()),
            Some(token) => {
                let shown = crate::text::shorten(token.text);
                Err(self.error(token, format!("`{shown}` is too much: the statement ends here")))
            }
        }
    }

    /// Something else was needed here.
    pub(super) fn wrong(&self, needed: &str) -> TextError {
        self.wrong_at(self.peek(), needed)
    }

    /// A mistake at a token.
    pub(super) fn error(&self, token: ScriptToken<'_>, message: String) -> TextError {
        TextError {
            line: self.number,
            column: token.column,
            length: token.text.chars().count(),
            message,
            hint: None,
        }
    }

    fn wrong_at(&self, token: Option<ScriptToken<'_>>, needed: &str) -> TextError {
        match token {
            Some(token) => {
                let shown = crate::text::shorten(token.text);
                self.error(token, format!("here {needed} is needed, not `{shown}`"))
            }
            None => {
                let end = ScriptToken { text: " ", column: self.end };
                self.error(end, format!("here {needed} is missing"))
            }
        }
    }

    fn number(&mut self, needed: &str) -> Result<ScriptToken<'t>, TextError> {
        let token = self.peek().filter(|token| decimal(token.text, 6).is_some());
        let token = token.ok_or_else(|| self.wrong(needed))?;
        self.next += 1;
        Ok(token)
    }
}

fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// Nanoseconds of a unit of time.
fn unit_of(word: &str) -> Option<u64> {
    const SECOND: u64 = 1_000_000_000;
    let units: [(&[&str], u64); 5] = [
        (&["ms"], SECOND / 1000),
        (&["s", "sec", "second", "seconds"], SECOND),
        (&["m", "min", "minute", "minutes"], 60 * SECOND),
        (&["h", "hour", "hours"], 3600 * SECOND),
        (&["d", "day", "days"], 86_400 * SECOND),
    ];
    let named = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
    units.iter().find(|(names, _)| named(names)).map(|(_, nanos)| *nanos)
}

/// Runs of letters, runs of digits with a point, and single signs.
fn tokens(text: &str) -> Vec<ScriptToken<'_>> {
    let kind = |c: char| match c {
        c if c.is_whitespace() => 0,
        c if c.is_ascii_digit() || c == '.' => 1,
        c if c.is_alphanumeric() || c == '_' || c == '-' => 2,
        _ => 3,
    };
    let mut tokens: Vec<ScriptToken<'_>> = Vec::new();
    let (mut start, mut last) = (0, 0);
    for (column, (at, c)) in (1..).zip(text.char_indices()) {
        let this = kind(c);
        let goes_on = this == last && this != 3 && this != 0;
        match tokens.last_mut() {
            Some(token) if goes_on => token.text = &text[start..at + c.len_utf8()],
            _ if this != 0 => {
                start = at;
                tokens.push(ScriptToken { text: &text[at..at + c.len_utf8()], column });
            }
            _ => {}
        }
        last = this;
    }
    tokens
}
