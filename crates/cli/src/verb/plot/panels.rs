//! From the document of runs to a figure.

use windtunnel_model::Resource;
use windtunnel_plot::{
    Axis, AxisQuantity, Figure, FigureSize, PlotPanel, PlotSeries, SeriesInterpolation,
    VerticalMarker,
};
use windtunnel_report::document::EventAnnotationKind;

use super::PlotArguments;
use super::document::{PlotDocument, PlotHistogram, PlotLinkSeries, PlotRun};
use super::what::{BinAggregation, PlotPanelKind};
use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// A line of a panel: which run and lane, how it looks and is called.
#[derive(Debug)]
struct PlotCurve {
    run: usize,
    lane: usize,
    name: String,
    colour: usize,
    dash: usize,
}

/// The figure, and how many link directions are not in it.
pub(super) fn figure(
    arguments: &PlotArguments,
    document: &PlotDocument,
) -> Result<(Figure, usize), VerbFailure> {
    let labels = labels(arguments, document)?;
    let (lanes, left_out) = lanes(arguments, document)?;
    let lines = lines(document, &lanes, &labels);
    let mut panels = Vec::with_capacity(arguments.what.len());
    for &what in &arguments.what {
        let mut panel = match what {
            PlotPanelKind::RttCdf | PlotPanelKind::LatenessCdf => {
                distributions(what, arguments, document, &lanes, &labels)?
            }
            PlotPanelKind::Cpu => processors(document, &labels)?,
            _ => over_time(what, arguments, document, &lines),
        };
        if panel.x.quantity == AxisQuantity::Seconds {
            panel.x.range = Some(range(arguments, document)?);
            panel.marks = marks(arguments, document);
        }
        panels.push(panel);
    }
    let size = arguments.size.unwrap_or_else(|| FigureSize::of_panels(panels.len()));
    let title = title(arguments, document, &lines);
    Ok((Figure { title, size, panels }, left_out))
}

/// What the legend calls each run. Repetitions of one have one name, and one colour, where they are
/// laid over others.
fn labels(arguments: &PlotArguments, document: &PlotDocument) -> Result<Vec<String>, VerbFailure> {
    let (given, runs) = (&arguments.labels, document.runs.len());
    let groups = groups(document);
    let own = |run: &PlotRun| match groups {
        0 => run.label.clone(),
        _ => document.comparison.as_ref().map_or_else(
            || run.label.clone(),
            |comparison| comparison.groups[run.group].name.clone(),
        ),
    };
    if given.is_empty() {
        return Ok(document.runs.iter().map(own).collect());
    }
    if given.len() == runs {
        return Ok(given.clone());
    }
    if given.len() == groups {
        return Ok(document.runs.iter().map(|run| given[run.group].clone()).collect());
    }
    let text = format!("{} names for {runs} runs", given.len());
    let hint = "give --label a name for each run, in their order";
    Err(VerbFailure::new(ExitCategory::Usage, text).hint(hint))
}

/// How many groups there are, if a colour is one of a group: where repetitions are laid over others.
fn groups(document: &PlotDocument) -> usize {
    let groups = document.comparison.as_ref().map_or(0, |comparison| comparison.groups.len());
    if groups > 1 && document.runs.iter().all(|run| run.group < groups) { groups } else { 0 }
}

/// The colour of a run among several.
fn colour(document: &PlotDocument, index: usize) -> usize {
    if groups(document) > 0 { document.runs[index].group } else { index }
}

/// The lanes of each run that are asked for, without those that were idle in all runs; or the
/// busiest.
fn lanes(
    arguments: &PlotArguments,
    document: &PlotDocument,
) -> Result<(Vec<Vec<usize>>, usize), VerbFailure> {
    if arguments.links.is_empty() {
        return Ok(busiest(document));
    }
    let mut all = Vec::with_capacity(document.runs.len());
    for run in &document.runs {
        let mut lanes = Vec::new();
        for choice in &arguments.links {
            lanes.extend(choice.lanes(run)?);
        }
        // The same direction may be asked for twice.
        let mut seen = std::collections::BTreeSet::new();
        lanes.retain(|lane| seen.insert(*lane));
        let busy: Vec<usize> =
            lanes.iter().copied().filter(|lane| series(run, *lane).is_some()).collect();
        all.push(if busy.is_empty() { lanes } else { busy });
    }
    Ok((all, 0))
}

/// By bytes that were delivered in all runs, in the order of the file.
fn busiest(document: &PlotDocument) -> (Vec<Vec<usize>>, usize) {
    let Some(first) = document.runs.first() else { return (Vec::new(), 0) };
    let place = |run: &PlotRun, lane: usize| {
        let asked = &first.lanes[lane];
        run.lanes.iter().position(|l| l.link == asked.link && l.direction == asked.direction)
    };
    let bytes = |lane: usize| -> f64 {
        let of = |run: &PlotRun| {
            place(run, lane).and_then(|lane| series(run, lane).map(PlotLinkSeries::delivered))
        };
        document.runs.iter().filter_map(of).sum()
    };
    let mut busy: Vec<(usize, f64)> = (0..first.lanes.len())
        .map(|lane| (lane, bytes(lane)))
        .filter(|(_, bytes)| *bytes > 0.0)
        .collect();
    busy.sort_by(|a, b| b.1.total_cmp(&a.1));
    let most = if document.runs.len() == 1 { LANES_OF_ONE } else { LANES_OF_MANY };
    let left_out = busy.len().saturating_sub(most);
    let mut chosen: Vec<usize> = busy.into_iter().take(most).map(|(lane, _)| lane).collect();
    chosen.sort_unstable();
    let of = |run: &PlotRun| chosen.iter().filter_map(|lane| place(run, *lane)).collect();
    (document.runs.iter().map(of).collect(), left_out)
}

/// One run: a colour for each lane. Several: a colour for each run, and dashes for lanes.
fn lines(document: &PlotDocument, lanes: &[Vec<usize>], labels: &[String]) -> Vec<PlotCurve> {
    let several = document.runs.len() > 1;
    let one_link = one_link(document, lanes).is_some();
    let one_lane = lanes.iter().all(|lanes| lanes.len() <= 1);
    let mut lines = Vec::new();
    for (index, run) in document.runs.iter().enumerate() {
        for (position, &lane) in lanes[index].iter().enumerate() {
            let of = &run.lanes[lane];
            let lane_name = match one_link {
                true => of.direction.clone(),
                false => format!("{} ({})", of.link, of.direction),
            };
            let (name, colour, dash) = match (several, one_lane) {
                (true, true) => (labels[index].clone(), colour(document, index), 0),
                (true, false) => {
                    let name = format!("{}, {lane_name}", labels[index]);
                    (name, colour(document, index), position)
                }
                (false, _) => (lane_name, position, position / COLOURS),
            };
            lines.push(PlotCurve { run: index, lane, name, colour, dash });
        }
    }
    lines
}

/// The link, if all lanes are of one.
fn one_link<'d>(document: &'d PlotDocument, lanes: &[Vec<usize>]) -> Option<&'d str> {
    let each = document.runs.iter().zip(lanes);
    let mut links =
        each.flat_map(|(run, lanes)| lanes.iter().map(|lane| run.lanes[*lane].link.as_str()));
    let first = links.next()?;
    links.all(|link| link == first).then_some(first)
}

fn title(
    arguments: &PlotArguments,
    document: &PlotDocument,
    lines: &[PlotCurve],
) -> Option<String> {
    if arguments.no_title {
        return None;
    }
    if let Some(title) = &arguments.title {
        return Some(title.clone());
    }
    let of = |line: &PlotCurve| &document.runs[line.run].lanes[line.lane];
    let first = of(lines.first()?);
    let one_link = lines.iter().all(|line| of(line).link == first.link);
    let one_lane = one_link && lines.iter().all(|line| of(line).direction == first.direction);
    let place = match (one_lane, one_link) {
        (true, _) => Some(format!("{} ({})", first.link, first.direction)),
        (_, true) => Some(first.link.clone()),
        _ => None,
    };
    match (document.runs.as_slice(), place) {
        ([run], Some(place)) => Some(format!("{}: {place}", run.label)),
        ([run], None) => Some(run.label.clone()),
        (_, place) => place,
    }
}

fn over_time(
    what: PlotPanelKind,
    arguments: &PlotArguments,
    document: &PlotDocument,
    lines: &[PlotCurve],
) -> PlotPanel {
    let mut panel = PlotPanel::new(Axis::seconds(), what.axis());
    let Some(column) = what.column() else { return panel };
    for line in lines {
        let run = &document.runs[line.run];
        let values = series(run, line.lane).map(column.values).unwrap_or_default();
        let points = points(&values, run, column.aggregation, merged(arguments, run));
        panel.series.push(PlotSeries {
            name: line.name.clone(),
            colour: line.colour,
            dash: line.dash,
            shape: SeriesInterpolation::Line,
            points,
        });
    }
    panel
}

/// A point in the middle of each step. What is left at the end of the run belongs to the last step, if
/// it is less than half of one: a rate of so short a time says little.
fn points(values: &[f64], run: &PlotRun, merge: BinAggregation, bins: usize) -> Vec<(f64, f64)> {
    let step_s = seconds(run.series.step_ns);
    let end_s = seconds(run.elapsed_ns);
    let end_of = |bin: usize| (number(bin) * step_s).min(end_s);
    let mut steps: Vec<(usize, usize)> = (0..run.series.bins)
        .step_by(bins)
        .map(|first| (first, (first + bins).min(run.series.bins)))
        .collect();
    if let [.., before, (first, last)] = steps.as_mut_slice()
        && end_of(*last) - end_of(*first) < number(bins) * step_s / 2.0
    {
        before.1 = *last;
        steps.pop();
    }
    let value = |bin: usize| values.get(bin).copied().unwrap_or(0.0);
    let point = |(first, last): (usize, usize)| {
        let (begin, end) = (end_of(first), end_of(last));
        let of_step = (first..last).map(value);
        let merged = match merge {
            BinAggregation::Largest => of_step.fold(0.0, f64::max),
            BinAggregation::Rate(scale) => {
                of_step.sum::<f64>() * scale / (end - begin).max(step_s / 1e3)
            }
        };
        (f64::midpoint(begin, end), merged)
    };
    steps.into_iter().map(point).collect()
}

/// How many bins of the document become one point.
fn merged(arguments: &PlotArguments, run: &PlotRun) -> usize {
    let step_ns = run.series.step_ns.max(1);
    let bins = match arguments.step {
        Some(step) => (step.as_nanos() + step_ns / 2) / step_ns,
        None => {
            let end = arguments.to.map_or(run.elapsed_ns, |to| to.as_nanos().min(run.elapsed_ns));
            let begin = arguments.from.map_or(0, windtunnel_model::Span::as_nanos);
            (end.saturating_sub(begin) / step_ns).div_ceil(POINTS)
        }
    };
    usize::try_from(bins).unwrap_or(usize::MAX).max(1)
}

fn range(arguments: &PlotArguments, document: &PlotDocument) -> Result<(f64, f64), VerbFailure> {
    let longest = document.runs.iter().map(|run| run.elapsed_ns).max().unwrap_or(0);
    let from = arguments.from.map_or(0.0, |from| seconds(from.as_nanos()));
    let to = arguments.to.map_or(seconds(longest), |to| seconds(to.as_nanos()));
    if from >= to {
        let text = format!("nothing lies between {from} s and {to} s");
        let hint = format!("the runs last {} s", seconds(longest));
        return Err(VerbFailure::new(ExitCategory::Usage, text).hint(hint));
    }
    Ok((from, to))
}

/// What was changed or failed in the first run; of links only those that are drawn.
fn marks(arguments: &PlotArguments, document: &PlotDocument) -> Vec<VerticalMarker> {
    let Some(run) = document.runs.first().filter(|_| !arguments.no_marks) else {
        return Vec::new();
    };
    let chosen = |links: &[String]| {
        arguments.links.is_empty()
            || links.is_empty()
            || links.iter().any(|link| arguments.links.iter().any(|choice| choice.is_of(link)))
    };
    let is_shown = |kind: EventAnnotationKind| {
        matches!(kind, EventAnnotationKind::Fault | EventAnnotationKind::Change)
    };
    let shown = run.events.iter();
    let shown = shown.filter(|mark| mark.kind.known().is_some_and(is_shown) && chosen(&mark.links));
    let mut marks: Vec<VerticalMarker> = shown
        .map(|mark| VerticalMarker { at: seconds(mark.at_ns), text: mark.text.clone() })
        .collect();
    // Both directions of a link change at the same time.
    marks.dedup_by(|a, b| (a.at - b.at).abs() < 1e-6);
    marks
}

/// Of round-trip times or lateness: cumulated over a logarithmic axis.
fn distributions(
    what: PlotPanelKind,
    arguments: &PlotArguments,
    document: &PlotDocument,
    lanes: &[Vec<usize>],
    labels: &[String],
) -> Result<PlotPanel, VerbFailure> {
    let (label, key) = match what {
        PlotPanelKind::RttCdf => ("round-trip time", "round-trip times"),
        _ => ("lateness", "distributions of lateness"),
    };
    let mut panel = PlotPanel::new(Axis::new(label, AxisQuantity::Nanoseconds).log(), what.axis());
    let several = document.runs.len() > 1;
    for (index, run) in document.runs.iter().enumerate() {
        let all = if what == PlotPanelKind::RttCdf { &run.rtt } else { &run.lateness };
        let chosen: Vec<&PlotHistogram> = match what {
            PlotPanelKind::RttCdf => all.iter().collect(),
            _ if arguments.links.is_empty() => all.iter().take(1).collect(),
            _ => all
                .iter()
                .filter(|d| d.lane.is_some_and(|lane| lanes[index].contains(&lane)))
                .collect(),
        };
        if chosen.is_empty() {
            let text = format!("the run {} has no {key}", run.id);
            let hint = match what {
                PlotPanelKind::RttCdf => {
                    "`windtunnel run --record` records those of TCP connections; an expectation of `rtt` measures a path"
                }
                _ => "packets are needed on the links that are asked for",
            };
            return Err(VerbFailure::new(ExitCategory::Usage, text).hint(hint));
        }
        let merged = several || chosen.len() > COLOURS;
        if merged {
            let bins = chosen.iter().flat_map(|distribution| distribution.bins.iter().copied());
            let name = if several { labels[index].clone() } else { "all".to_owned() };
            panel.series.push(cumulated(
                &name,
                if several { colour(document, index) } else { 0 },
                bins.collect(),
            ));
        } else {
            let one_link = one_link(document, lanes).is_some();
            for (position, distribution) in chosen.into_iter().enumerate() {
                // As panels over time call it.
                let lane = distribution.lane.filter(|_| !arguments.links.is_empty());
                let name = match lane.and_then(|lane| run.lanes.get(lane)) {
                    Some(lane) if one_link => lane.direction.clone(),
                    Some(lane) => format!("{} ({})", lane.link, lane.direction),
                    None => distribution.name.clone(),
                };
                panel.series.push(cumulated(&name, position, distribution.bins.clone()));
            }
        }
    }
    Ok(panel)
}

fn cumulated(name: &str, colour: usize, mut bins: Vec<(f64, f64)>) -> PlotSeries {
    bins.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = bins.iter().map(|(_, count)| count).sum();
    let mut sum = 0.0;
    let mut points = Vec::with_capacity(bins.len() + 1);
    if let Some((least, _)) = bins.first() {
        points.push((*least, 0.0));
    }
    for (value, count) in bins {
        sum += count;
        points.push((value, sum / all.max(1.0)));
    }
    PlotSeries { shape: SeriesInterpolation::Steps, ..PlotSeries::new(name, colour, points) }
}

/// What limited nodes had of processors, and what they were to have.
fn processors(document: &PlotDocument, labels: &[String]) -> Result<PlotPanel, VerbFailure> {
    let mut panel = PlotPanel::new(Axis::seconds(), PlotPanelKind::Cpu.axis());
    let several = document.runs.len() > 1;
    for (index, run) in document.runs.iter().enumerate() {
        for (position, limit) in
            run.limits_series.iter().filter(|l| l.what == Resource::Cpu).enumerate()
        {
            let colour = if several { colour(document, index) } else { position };
            let of = |name: &str| match several {
                true => format!("{}, {}{name}", labels[index], limit.node),
                false => format!("{}{name}", limit.node),
            };
            let points = |values: &[f64]| -> Vec<(f64, f64)> {
                limit.at_ns.iter().map(|at| at / 1e9).zip(values.iter().copied()).collect()
            };
            panel.series.push(PlotSeries::new(&of(""), colour, points(&limit.delivered)));
            let asked = PlotSeries::new(&of(" asked"), colour, points(&limit.asked));
            panel.series.push(PlotSeries { dash: 2, shape: SeriesInterpolation::Steps, ..asked });
        }
    }
    if panel.series.is_empty() {
        let text = "no node of the runs had a limit of processor time";
        return Err(VerbFailure::new(ExitCategory::Usage, text)
            .hint("`cpu` of a node in the scenario sets one"));
    }
    Ok(panel)
}

fn series(run: &PlotRun, lane: usize) -> Option<&PlotLinkSeries> {
    run.series.lanes.get(lane)?.as_ref()
}

#[expect(clippy::cast_precision_loss, reason = "a figure shows four digits")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "bins are few")]
fn number(bin: usize) -> f64 {
    bin as f64
}

/// Points of a line.
const POINTS: u64 = 500;
/// Without a choice, lines of one run, and lines of each of several.
const LANES_OF_ONE: usize = 6;
const LANES_OF_MANY: usize = 2;
/// Colours of lines.
const COLOURS: usize = 7;
