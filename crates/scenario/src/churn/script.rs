//! The churn language: statements that happen together, one population.
//!
//! Everything is a step at an instant: a period of `join 10` is ten joins at the ends of ten equal
//! parts, churn is so many replacements at the middles of equal parts. Periods that overlap simply
//! both add their steps. Shares are of the population at the instant at which a statement (or a
//! time of its `per`) begins.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::Span;
use windtunnel_model::random::RandomSequence;

use super::ledger::MembershipLedger;
use super::statement::{ChurnAction, ChurnShare, Statement, rounded, statement};
use super::{PopulationChange, TextError, middle, part};

/// Statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChurnScript {
    statements: Vec<Statement>,
}

/// What a script comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChurnScriptOutcome {
    pub(crate) moves: Vec<PopulationChange>,
    /// Joins that the maximum population has prevented, by line.
    pub(crate) prevented: BTreeMap<usize, u64>,
}

impl ChurnScript {
    /// Reads statements, one a line.
    pub(crate) fn parse(text: &str) -> Result<ChurnScript, TextError> {
        let mut statements = Vec::new();
        for (index, line) in text.lines().enumerate() {
            statements.extend(statement(line, index + 1)?);
        }
        let stop = statements.iter().find(|s: &&Statement| s.action == ChurnAction::Stop);
        let late =
            stop.and_then(|stop| statements.iter().find(|s| s.to > stop.from).zip(Some(stop)));
        if let Some((late, stop)) = late {
            let message = format!("this goes on after the `stop` of line {}", stop.line);
            return Err(wrong(late, message));
        }
        if statements.is_empty() {
            let message = "the script has no statement".to_owned();
            let hint = Some("write lines such as `at 30s join 10`".to_owned());
            return Err(TextError { line: 1, column: 1, length: 1, message, hint });
        }
        Ok(ChurnScript { statements })
    }

    /// The moves of `members`, of which `inside` are there at the beginning, in at most `most`
    /// steps.
    pub(crate) fn moves(
        &self,
        members: usize,
        inside: &BTreeSet<usize>,
        draws: RandomSequence,
        most: usize,
    ) -> Result<ChurnScriptOutcome, TextError> {
        let mut play =
            ChurnInterpreter::new(self, members, MembershipLedger::new(members, inside, draws));
        let mut steps = 0;
        while let Some((ChurnStepOrder { at, statement: index, .. }, step)) = play.steps.pop_first()
        {
            steps += 1;
            if steps > most {
                let message = "here the script comes to too many steps".to_owned();
                return Err(wrong(&self.statements[index], message));
            }
            play.step(at, index, step)?;
        }
        Ok(ChurnScriptOutcome { moves: play.ledger.into_moves(), prevented: play.prevented })
    }
}

/// What happens at an instant.
#[derive(Debug, Clone, Copy)]
enum ChurnStep {
    /// A statement begins.
    Begin,
    /// A time of its churn begins.
    Window,
    Join,
    Leave,
    /// One is replaced.
    Swap,
}

/// When a step is, before which others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ChurnStepOrder {
    at: Span,
    /// What ends at an instant is before what begins.
    begins: bool,
    statement: usize,
    number: u64,
}

struct ChurnInterpreter<'s> {
    statements: &'s [Statement],
    members: usize,
    ledger: MembershipLedger,
    steps: BTreeMap<ChurnStepOrder, ChurnStep>,
    added: u64,
    /// In millionths.
    replacement: u64,
    /// What is left of replacements, in millionths.
    owed: u64,
    maximum: u64,
    prevented: BTreeMap<usize, u64>,
}

impl<'s> ChurnInterpreter<'s> {
    fn new(script: &'s ChurnScript, members: usize, ledger: MembershipLedger) -> Self {
        let mut play = ChurnInterpreter {
            statements: &script.statements,
            members,
            ledger,
            steps: BTreeMap::new(),
            added: 0,
            replacement: 1_000_000,
            owed: 0,
            maximum: u64::MAX,
            prevented: BTreeMap::new(),
        };
        for (index, statement) in script.statements.iter().enumerate() {
            play.add(statement.from, true, index, ChurnStep::Begin);
        }
        play
    }

    fn add(&mut self, at: Span, begins: bool, index: usize, step: ChurnStep) {
        let number = self.added;
        self.steps.insert(ChurnStepOrder { at, begins, statement: index, number }, step);
        self.added += 1;
    }

    fn step(&mut self, at: Span, index: usize, step: ChurnStep) -> Result<(), TextError> {
        match step {
            ChurnStep::Begin => self.begin(at, index),
            ChurnStep::Window => {
                self.window(at, index);
                Ok(())
            }
            ChurnStep::Join => self.join(at, index),
            ChurnStep::Leave => match self.ledger.leave(at) {
                Some(_) => Ok(()),
                None => Err(self.none_to_leave(at, index)),
            },
            ChurnStep::Swap => {
                self.owed += self.replacement;
                let replaced = self.owed >= 1_000_000;
                self.owed -= if replaced { 1_000_000 } else { 0 };
                match self.ledger.swap(at, replaced) {
                    true => Ok(()),
                    false => Err(self.none_to_leave(at, index)),
                }
            }
        }
    }

    fn begin(&mut self, at: Span, index: usize) -> Result<(), TextError> {
        let statement = &self.statements[index];
        match statement.action {
            ChurnAction::Join(quantity) => {
                let count = quantity.of(self.ledger.inside());
                self.spread(index, count, ChurnStep::Join)?;
            }
            ChurnAction::Leave(quantity) => {
                let count = quantity.of(self.ledger.inside());
                let inside = u64::try_from(self.ledger.inside()).unwrap_or(u64::MAX);
                if statement.from == statement.to && count > inside {
                    let message =
                        format!("{count} are to leave at {at}, but only {inside} are there");
                    return Err(wrong(statement, message));
                }
                self.spread(index, count, ChurnStep::Leave)?;
            }
            ChurnAction::Keep => {}
            ChurnAction::SetReplacement(share) => self.replacement = share,
            ChurnAction::SetMaximum(quantity) => self.maximum = quantity.of(self.members),
            ChurnAction::Stop => {
                self.steps.clear();
                while self.ledger.leave(at).is_some() {}
            }
        }
        if statement.churn.is_some() {
            self.window(at, index);
        }
        Ok(())
    }

    /// `count` steps: at once, or at the ends of equal parts of the period.
    fn spread(&mut self, index: usize, count: u64, step: ChurnStep) -> Result<(), TextError> {
        let statement = &self.statements[index];
        let (from, length) = (statement.from, statement.to.saturating_sub(statement.from));
        let members = u64::try_from(self.members).unwrap_or(u64::MAX);
        if count > members {
            let message = format!("{count} nodes: there are only {members}");
            return Err(wrong(statement, message));
        }
        for i in 1..=count {
            match length.is_zero() {
                true => self.step(from, index, step)?,
                false => {
                    let at = from + part(length, i.into(), count.into());
                    self.add(at, false, index, step);
                }
            }
        }
        Ok(())
    }

    /// The replacements of one time of `per`, and the beginning of the next.
    fn window(&mut self, at: Span, index: usize) {
        let statement = &self.statements[index];
        let Some(ChurnShare { share, per }) = statement.churn else { return };
        let rest = statement.to.saturating_sub(at);
        let per = per.unwrap_or(statement.to.saturating_sub(statement.from));
        let length = per.min(rest);
        let count = rounded(share, self.ledger.inside(), length.as_nanos(), per.as_nanos());
        for i in 0..count {
            self.add(middle(at, length, i, count), false, index, ChurnStep::Swap);
        }
        if rest > per {
            self.add(at + per, true, index, ChurnStep::Window);
        }
    }

    fn join(&mut self, at: Span, index: usize) -> Result<(), TextError> {
        let statement = &self.statements[index];
        if u64::try_from(self.ledger.inside()).unwrap_or(u64::MAX) >= self.maximum {
            *self.prevented.entry(statement.line).or_default() += 1;
            return Ok(());
        }
        if self.ledger.outside() == 0 {
            let members = self.members;
            let message = format!("at {at} no node is left to join: all {members} are there");
            return Err(wrong(statement, message));
        }
        self.ledger.join(at);
        Ok(())
    }

    fn none_to_leave(&self, at: Span, index: usize) -> TextError {
        wrong(&self.statements[index], format!("at {at} no node is there that could leave"))
    }
}

fn wrong(statement: &Statement, message: String) -> TextError {
    let Statement { line, column, length, .. } = *statement;
    TextError { line, column, length, message, hint: None }
}
