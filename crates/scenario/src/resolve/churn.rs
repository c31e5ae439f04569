//! Churn: its nodes, and its moves as events.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::plan::{EventAction, ScheduledEvent};
use windtunnel_model::random::{RandomSequence, RandomStream};
use windtunnel_model::{NodeId, Probability, Span};

use super::amount::{count_of, share_of};
use super::end::RepetitionEnd;
use super::expansion::{ExpansionBudget, weight};
use super::scene::Scene;
use super::timeline::EventTimeline;
use crate::churn::{
    ChurnRate, ChurnScript, ChurnTrace, PopulationChange, Speed, TextError, by_rate,
};
use crate::decode::{ChurnDraft, ChurnKind, EndDraft, EventDraft, NodeAmount, TextDraft};
use crate::error::Diagnostics;
use crate::position::{LocatedValue, SourceLocation, line};
use crate::source::LARGEST_FILE;

/// The most moves that one description may come to.
const MOST_MOVES: usize = 1_000_000;

pub(super) fn expand(
    found: &mut Diagnostics,
    event: &EventDraft,
    churn: &ChurnDraft,
    scene: &Scene<'_>,
    budget: &mut ExpansionBudget,
    timeline: &mut EventTimeline,
) -> Option<()> {
    let mut nodes = scene.members(found, &churn.nodes, "churn")?;
    nodes.retain(|id| !scene.plan.nodes[id.index()].programs.is_empty());
    check_shared(found, churn, &nodes, scene, timeline)?;
    let stage = ChurnResolver { event, nodes: &nodes, scene };
    let moves = match &churn.kind {
        ChurnKind::Rate { rate, every, away, end } => {
            stage.by_rate(found, rate, every, *away, end, budget)?
        }
        ChurnKind::Script { text, speed, present } => {
            stage.script(found, text, *speed, present.as_ref(), timeline)?
        }
        ChurnKind::Trace { text, speed } => stage.trace(found, text, *speed, timeline)?,
    };
    let named = |members: Vec<usize>| members.into_iter().map(|member| nodes[member]).collect();
    for PopulationChange { at, leave, join } in moves {
        let action = EventAction::Churn { leave: named(leave), by: churn.leave, join: named(join) };
        if !budget.spend(found, 1 + weight(&action), event.place) {
            return None;
        }
        timeline.events.push(ScheduledEvent { at: event.at.value + at, action });
    }
    Some(())
}

/// Two churns may share nodes only if both are by rate: a script and a trace know which are there.
fn check_shared(
    found: &mut Diagnostics,
    churn: &ChurnDraft,
    nodes: &[NodeId],
    scene: &Scene<'_>,
    timeline: &mut EventTimeline,
) -> Option<()> {
    let knows = !matches!(churn.kind, ChurnKind::Rate { .. });
    for node in nodes {
        if let Some(other_knows) = timeline.churned.insert(*node, knows)
            && (knows || other_knows)
        {
            let name = &scene.plan.nodes[node.index()].name;
            let message =
                format!("`{name}` is in two churns, and a script or trace is its only one");
            found.mistake(churn.nodes[0].place, message);
            return None;
        }
    }
    Some(())
}

/// The nodes of a churn, and the scene.
struct ChurnResolver<'a> {
    event: &'a EventDraft,
    nodes: &'a [NodeId],
    scene: &'a Scene<'a>,
}

impl ChurnResolver<'_> {
    fn draws(&self, kind: &str) -> RandomSequence {
        let plan = self.scene.plan;
        let names: Vec<&str> =
            self.nodes.iter().map(|id| plan.nodes[id.index()].name.as_str()).collect();
        let at = (self.scene.now + self.event.at.value).to_string();
        RandomSequence::new(RandomStream::named(plan.seed, &["churn", kind, &at, &names.join(" ")]))
    }

    /// Members that are outside now; none, before the run.
    fn absent(&self) -> BTreeSet<usize> {
        let Some(absent) = self.scene.absent else { return BTreeSet::new() };
        (0..self.nodes.len()).filter(|member| absent.contains(&self.nodes[*member])).collect()
    }

    fn by_rate(
        &self,
        found: &mut Diagnostics,
        rate: &LocatedValue<Probability>,
        every: &LocatedValue<Span>,
        away: Option<Span>,
        end: &EndDraft,
        budget: &mut ExpansionBudget,
    ) -> Option<Vec<PopulationChange>> {
        let count = u64::try_from(self.nodes.len()).unwrap_or(u64::MAX);
        let leavers = share_of(rate.value, count);
        if leavers == 0 {
            let message = format!("rate: {} of {count} nodes is not even one", rate.value);
            found.mistake(rate.place, message);
            return None;
        }
        let end = RepetitionEnd::of(found, self.event, end, self.scene)?;
        let periods = end.repetitions(self.event.at.value, every.value);
        budget.announce(found, periods.saturating_mul(leavers), every.place)?;
        let away = away.unwrap_or(Span::from_nanos(every.value.as_nanos() / 2));
        let rate_of = ChurnRate {
            leavers,
            every: every.value,
            away,
            end: Some(end.at.saturating_sub(self.event.at.value)),
            periods: (end.times != u64::MAX).then_some(end.times),
        };
        let absent = self.absent();
        let moves = by_rate(self.nodes.len(), &absent, &rate_of, self.draws("rate"), MOST_MOVES);
        if moves.is_none() {
            let message = format!(
                "{leavers} of {count} nodes leave every {} and stay away for {away}: this leaves \
                 none, or comes to more than {MOST_MOVES} moves",
                every.value
            );
            found.mistake(rate.place, message);
        }
        moves
    }

    fn script(
        &self,
        found: &mut Diagnostics,
        text: &TextDraft,
        speed: Speed,
        present: Option<&LocatedValue<NodeAmount>>,
        timeline: &mut EventTimeline,
    ) -> Option<Vec<PopulationChange>> {
        let words = self.words(found, text)?;
        let mut draws = self.draws("script");
        let inside = self.inside(found, present, &mut draws)?;
        let outcome = ChurnScript::parse(&words)
            .and_then(|script| script.moves(self.nodes.len(), &inside, draws, MOST_MOVES));
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return self.report(found, text, &words, error),
        };
        for (line, count) in outcome.prevented {
            let message = format!(
                "line {line} of the script: {count} joins would exceed the maximum population and \
                 do not happen"
            );
            found.notice(text.place(), message);
        }
        self.leave_out(timeline, &inside);
        let moves = outcome.moves.into_iter();
        Some(merged(moves.map(|step| PopulationChange { at: speed.apply(step.at), ..step })))
    }

    /// The members that are there at the beginning.
    fn inside(
        &self,
        found: &mut Diagnostics,
        present: Option<&LocatedValue<NodeAmount>>,
        draws: &mut RandomSequence,
    ) -> Option<BTreeSet<usize>> {
        let mut all: Vec<usize> = (0..self.nodes.len()).collect();
        match (present, self.scene.absent) {
            (Some(present), Some(_)) => {
                let message = "`present`: which nodes are present is known";
                found.mistake_with_hint(present.place, message, "leave `present` out");
                None
            }
            (Some(present), None) => {
                let count = count_of(found, present, all.len())?;
                Some((0..count).filter_map(|_| draws.take(&mut all)).collect())
            }
            (None, Some(_)) => {
                let absent = self.absent();
                Some(all.into_iter().filter(|member| !absent.contains(member)).collect())
            }
            (None, None) => Some(BTreeSet::new()),
        }
    }

    fn trace(
        &self,
        found: &mut Diagnostics,
        text: &TextDraft,
        speed: Speed,
        timeline: &mut EventTimeline,
    ) -> Option<Vec<PopulationChange>> {
        let words = self.words(found, text)?;
        let trace = match ChurnTrace::parse(&words) {
            Ok(trace) => trace,
            Err(error) => return self.report(found, text, &words, error),
        };
        let (lines, nodes) = (trace.members.len(), self.nodes.len());
        if lines > nodes {
            let message = format!("the trace has lines for {lines} nodes, here are {nodes}");
            found.mistake_with_hint(text.place(), message, format!("write `count: {lines}`"));
            return None;
        }
        if lines < nodes {
            let message =
                format!("the trace has lines for {lines} of {nodes} nodes: the others never join");
            found.notice(text.place(), message);
        }
        self.leave_out(timeline, &BTreeSet::new());
        Some(trace.moves(speed))
    }

    /// Members that are not inside do not start with the run.
    fn leave_out(&self, timeline: &mut EventTimeline, inside: &BTreeSet<usize>) {
        let outside = (0..self.nodes.len()).filter(|member| !inside.contains(member));
        let nodes: Vec<NodeId> = outside.map(|member| self.nodes[member]).collect();
        if self.scene.absent.is_none() && !nodes.is_empty() {
            timeline
                .events
                .push(ScheduledEvent { at: Span::ZERO, action: EventAction::Absent { nodes } });
        }
    }

    /// The text, from wherever it is.
    fn words(&self, found: &mut Diagnostics, text: &TextDraft) -> Option<String> {
        match text {
            TextDraft::Here(text) => Some(text.value.clone()),
            TextDraft::There(path) => match (self.scene.files)(&path.value) {
                Ok(bytes) if bytes.len() > LARGEST_FILE => {
                    let most = LARGEST_FILE >> 20;
                    let message = format!("`{}` is larger than {most} MiB", path.value);
                    found.mistake(path.place, message);
                    None
                }
                Ok(bytes) => match String::from_utf8(bytes) {
                    Ok(text) => Some(text),
                    Err(_) => {
                        found.mistake(path.place, format!("`{}` is not a text", path.value));
                        None
                    }
                },
                Err(error) => {
                    found.mistake(path.place, format!("cannot read `{}`: {error}", path.value));
                    None
                }
            },
        }
    }

    /// A mistake inside a text: at its place in this file if that is known.
    fn report<T>(
        &self,
        found: &mut Diagnostics,
        text: &TextDraft,
        words: &str,
        error: TextError,
    ) -> Option<T> {
        let (place, message) = match text {
            TextDraft::There(path) => {
                let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
                let TextError { line, column, length, message, hint } = error;
                let (line, column) = (number(line), number(column));
                let place = SourceLocation { line, column, length: number(length) };
                found.mistake_in(&path.value, words, place, message, hint);
                return None;
            }
            TextDraft::Here(at) => match inner(self.scene.text, at.place, words, &error) {
                Some(place) => (place, error.message.clone()),
                None => {
                    let TextError { line, column, message, .. } = &error;
                    (at.place, format!("line {line}, column {column} of the text: {message}"))
                }
            },
        };
        match error.hint {
            Some(hint) => found.mistake_with_hint(place, message, hint),
            None => found.mistake(place, message),
        }
        None
    }
}

impl TextDraft {
    fn place(&self) -> SourceLocation {
        match self {
            TextDraft::Here(at) | TextDraft::There(at) => at.place,
        }
    }
}

/// Speeding up may bring moves to one instant. A node that joins and leaves at once has not
/// been there; one that leaves and joins at once is started afresh.
fn merged(moves: impl Iterator<Item = PopulationChange>) -> Vec<PopulationChange> {
    let mut by_time: BTreeMap<Span, (BTreeSet<usize>, BTreeSet<usize>)> = BTreeMap::new();
    for step in moves {
        let (leave, join) = by_time.entry(step.at).or_default();
        for member in step.leave {
            if !join.remove(&member) {
                leave.insert(member);
            }
        }
        join.extend(step.join);
    }
    let moves = by_time.into_iter().map(|(at, (leave, join))| PopulationChange {
        at,
        leave: leave.into_iter().collect(),
        join: join.into_iter().collect(),
    });
    moves.filter(|step| !step.leave.is_empty() || !step.join.is_empty()).collect()
}

/// Where a place of a text in several lines is in the file; `None` if the file writes it
/// differently.
fn inner(
    file: &str,
    start: SourceLocation,
    text: &str,
    error: &TextError,
) -> Option<SourceLocation> {
    let (first, opening) = text.lines().enumerate().find(|(_, line)| !line.trim().is_empty())?;
    let lines = u32::try_from(file.lines().count()).ok()?;
    let opens = |number: &u32| line(file, *number).trim() == opening.trim();
    let begins = (start.line.saturating_sub(1).max(1)..=lines).find(opens)?;
    let inside = u32::try_from((error.line - 1).checked_sub(first)?).ok()?;
    let written = line(file, begins + inside).trim_end();
    let meant = text.lines().nth(error.line - 1)?.trim_end();
    let indent = written.strip_suffix(meant)?.chars().count();
    Some(SourceLocation {
        line: begins + inside,
        column: u32::try_from(indent + error.column).ok()?,
        length: u32::try_from(error.length).ok()?,
    })
}
