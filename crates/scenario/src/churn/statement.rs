//! Statements of the churn language.

use windtunnel_model::Span;

use super::TextError;
use super::token::{ScriptToken, TokenCursor};
use crate::text::nearest;

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) line: usize,
    /// Of the action's first word.
    pub(super) column: usize,
    pub(super) length: usize,
    pub(super) from: Span,
    /// The same as `from` for what happens at one instant.
    pub(super) to: Span,
    pub(super) action: ChurnAction,
    pub(super) churn: Option<ChurnShare>,
}

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChurnAction {
    Join(PopulationAmount),
    Leave(PopulationAmount),
    /// The population stays as it is.
    Keep,
    /// The share of leaving nodes that are replaced, in millionths.
    SetReplacement(u64),
    /// No node joins beyond this.
    SetMaximum(PopulationAmount),
    /// All leave, and nothing more happens.
    Stop,
}

/// How many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PopulationAmount {
    Count(u64),
    /// In millionths of the population.
    Share(u64),
}

/// A share that is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChurnShare {
    /// In millionths of the population.
    pub(super) share: u64,
    /// In each such time; `None`: in the whole period.
    pub(super) per: Option<Span>,
}

impl PopulationAmount {
    /// How many that are of `population`, rounded to the nearest whole, halves up.
    pub(super) fn of(self, population: usize) -> u64 {
        match self {
            PopulationAmount::Count(count) => count,
            PopulationAmount::Share(millionths) => rounded(millionths, population, 1, 1),
        }
    }
}

/// `millionths` of `population` · `numerator` / `denominator`, to the nearest whole, halves up.
pub(super) fn rounded(millionths: u64, population: usize, numerator: u64, denominator: u64) -> u64 {
    let population = u128::from(u64::try_from(population).unwrap_or(u64::MAX));
    let top = u128::from(millionths).saturating_mul(population).saturating_mul(numerator.into());
    let bottom = 1_000_000 * u128::from(denominator.max(1));
    u64::try_from((top.saturating_mul(2) + bottom) / (2 * bottom)).unwrap_or(u64::MAX)
}

/// The statement of a line; `None` for a line that says nothing.
pub(super) fn statement(text: &str, number: usize) -> Result<Option<Statement>, TextError> {
    let mut line = TokenCursor::new(text, number);
    let Some(first) = line.peek() else { return Ok(None) };
    let (from, to) = times(&mut line, first)?;
    let word = line.peek();
    let action = action(&mut line, first)?;
    let churn = match (line.take(&["churn"]), action) {
        (None, _) => None,
        (Some(_), ChurnAction::Join(_) | ChurnAction::Leave(_) | ChurnAction::Keep)
            if to > from =>
        {
            Some(churn(&mut line)?)
        }
        (Some(token), _) => {
            let message = "`churn` needs a period, and `join`, `leave` or `keep`".to_owned();
            return Err(line.error(token, message).hint("write `from 5m to 10m keep churn 50%`"));
        }
    };
    line.end()?;
    let word = word.unwrap_or(first);
    let (column, length) = (word.column, word.text.chars().count());
    let keeps = action == ChurnAction::Keep && churn.is_none();
    if to == from && keeps {
        return Err(line.error(word, "at one instant there is nothing to keep".to_owned()));
    }
    Ok(Some(Statement { line: number, column, length, from, to, action, churn }))
}

/// `at T`, `from T to T`, or nothing in front of `set`.
fn times(line: &mut TokenCursor<'_>, first: ScriptToken<'_>) -> Result<(Span, Span), TextError> {
    if line.take(&["at"]).is_some() {
        let at = line.time()?;
        return Ok((at, at));
    }
    if line.take(&["from"]).is_none() {
        // What is set holds from the beginning.
        return match first.text.eq_ignore_ascii_case("set") {
            true => Ok((Span::ZERO, Span::ZERO)),
            false => Err(guess(line.wrong("`at`, `from` or `set`"), first, &["at", "from", "set"])),
        };
    }
    let from = line.time()?;
    line.expect("to")?;
    let end = line.peek();
    let to = line.time()?;
    match end {
        Some(token) if to <= from => {
            let message = format!("the period ends at {to}, not after it begins at {from}");
            Err(line.error(token, message))
        }
        _ => Ok((from, to)),
    }
}

fn action(line: &mut TokenCursor<'_>, first: ScriptToken<'_>) -> Result<ChurnAction, TextError> {
    let at_instant = !first.text.eq_ignore_ascii_case("from");
    let many = "a number of nodes such as 10, or a share such as 20%";
    if line.take(&["join", "add", "increase", "inc"]).is_some() {
        return Ok(ChurnAction::Join(quantity(line, many)?));
    }
    if let Some(word) = line.take(&["leave", "remove", "decrease", "dec"]) {
        let quantity = quantity(line, many)?;
        if let PopulationAmount::Share(1_000_001..) = quantity {
            return Err(line.error(word, "more than all cannot leave".to_owned()));
        }
        return Ok(ChurnAction::Leave(quantity));
    }
    if line.take(&["const", "constant", "keep"]).is_some() {
        return Ok(ChurnAction::Keep);
    }
    let only_at = |line: &TokenCursor<'_>, word: ScriptToken<'_>| match at_instant {
        true => Ok(()),
        false => {
            let shown = word.text;
            Err(line
                .error(word, format!("`{shown}` happens at one instant: write `at 5m {shown}`")))
        }
    };
    if let Some(word) = line.take(&["stop"]) {
        return only_at(line, word).map(|()| ChurnAction::Stop);
    }
    if let Some(word) = line.take(&["set"]) {
        only_at(line, word)?;
        return setting(line);
    }
    let churn = line.peek().is_some_and(|token| token.text.eq_ignore_ascii_case("churn"));
    match line.peek() {
        // Churn alone keeps the population.
        Some(_) if churn => Ok(ChurnAction::Keep),
        Some(word) => {
            let error = line.wrong("`join`, `leave`, `keep`, `set` or `stop`");
            Err(guess(error, word, &WORDS))
        }
        None => Err(line.wrong("`join`, `leave`, `keep`, `set` or `stop`")),
    }
}

fn setting(line: &mut TokenCursor<'_>) -> Result<ChurnAction, TextError> {
    if line.take(&["replacement"]).is_some() {
        line.expect("ratio")?;
        line.expect("to")?;
        let needed = "a share from 0% to 100%";
        let number = line.peek();
        let (share, is_share) = line.amount(needed)?;
        return match (number, is_share) {
            (_, true) if share <= 1_000_000 => Ok(ChurnAction::SetReplacement(share)),
            (Some(number), _) => Err(line.error(number, format!("here {needed} is needed"))),
            (None, _) => Err(line.wrong(needed)),
        };
    }
    if line.take(&["maximum", "max"]).is_some() {
        line.expect("population")?;
        line.expect("to")?;
        let needed = "a number of nodes such as 10, or a share of all such as 80%";
        return Ok(ChurnAction::SetMaximum(quantity(line, needed)?));
    }
    let error = line.wrong("`replacement ratio` or `maximum population`");
    match line.peek() {
        Some(word) => Err(guess(error, word, &["replacement", "maximum"])),
        None => Err(error),
    }
}

fn churn(line: &mut TokenCursor<'_>) -> Result<ChurnShare, TextError> {
    let needed = "a share such as 50%";
    let number = line.peek();
    let (share, is_share) = line.amount(needed)?;
    if let (Some(number), false) = (number, is_share) {
        return Err(line.error(number, format!("here {needed} is needed")));
    }
    let per = match line.take(&["per"]) {
        Some(word) => {
            let per = line.time()?;
            if per.is_zero() {
                return Err(line.error(word, "a share per no time".to_owned()));
            }
            Some(per)
        }
        None => None,
    };
    Ok(ChurnShare { share, per })
}

fn quantity(line: &mut TokenCursor<'_>, needed: &str) -> Result<PopulationAmount, TextError> {
    let (value, share) = line.amount(needed)?;
    Ok(if share { PopulationAmount::Share(value) } else { PopulationAmount::Count(value) })
}

fn guess(error: TextError, word: ScriptToken<'_>, words: &[&str]) -> TextError {
    match nearest(word.text, words.iter().copied()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    }
}

const WORDS: [&str; 11] = [
    "join", "add", "increase", "leave", "remove", "decrease", "const", "keep", "set", "stop",
    "churn",
];
