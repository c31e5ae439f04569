//! Expectations of paths.

use windtunnel_model::expect::{Expectation, PathFact, RateStatistic, TimeStatistic, ValueBounds};
use windtunnel_model::{NodeId, Rate, Span, Time};
use windtunnel_trace::rate::IntervalByteCounts;

use super::outcome::{ExpectationOutcome, allows, allows_share, megabits, percent, share, when};
use crate::evidence::{EchoProbe, EchoResults, RunEvidence};
use crate::text::rounded;

pub(super) fn check(
    evidence: &RunEvidence<'_>,
    asked: &Expectation,
    from: NodeId,
    to: NodeId,
    fact: &PathFact,
) -> ExpectationOutcome {
    let name = |node: NodeId| &evidence.plan.nodes[node.index()].name;
    let path = format!("path {} to {}", name(from), name(to));
    let seen = || {
        let probe = EchoProbe::of(asked)?;
        evidence.echoes.iter().find(|(known, _)| *known == probe).map(|(_, seen)| seen)
    };
    let flow = || {
        let flows = evidence.tally.flows.iter();
        let payload = flows.into_iter().find(|flow| (flow.from, flow.to) == (from, to));
        cut(&payload?.payload, asked.window)
    };
    let (figure, bounds, (seen, met)) = match fact {
        PathFact::Rtt(which, bounds) => {
            let figure = match which {
                TimeStatistic::Median => "rtt".to_owned(),
                which => format!("rtt, {which}"),
            };
            (figure, bounds.to_string(), rtt(seen(), *which, bounds))
        }
        PathFact::Loss(bounds) => {
            let result = match seen().map(|seen| (seen, seen.echoes.len())) {
                Some((seen, sent)) if sent > 0 => {
                    let lost = u64::try_from(seen.lost()).unwrap_or(u64::MAX);
                    let ppb = share(lost, sent as u64).unwrap_or(0);
                    let text = format!("{} ({lost} of {sent} echo requests)", percent(ppb));
                    (text, allows_share(bounds, ppb))
                }
                seen => (nothing(seen.map(|(seen, _)| seen)), false),
            };
            ("loss".to_owned(), bounds.to_string(), result)
        }
        PathFact::Throughput(which, bounds) => {
            (format!("throughput, {which}"), bounds.to_string(), throughput(flow(), *which, bounds))
        }
        PathFact::Deviation(bounds) => {
            let found = flow().and_then(|flow| flow.deviation_ppb());
            let result = match found {
                Some(ppb) => (percent(ppb), allows_share(bounds, ppb)),
                None => ("no two seconds with traffic".to_owned(), false),
            };
            ("throughput, deviation".to_owned(), bounds.to_string(), result)
        }
    };
    let file = match fact {
        PathFact::Rtt(..) | PathFact::Loss(_) => "echoes.csv",
        PathFact::Throughput(..) | PathFact::Deviation(_) => "paths.csv",
    };
    let look = format!("{file}, lines with `{},{},`", name(from), name(to));
    ExpectationOutcome { about: format!("{path} {figure}"), asked: bounds, seen, met, look }
}

fn rtt(
    seen: Option<&EchoResults>,
    which: TimeStatistic,
    bounds: &ValueBounds<Span>,
) -> (String, bool) {
    let figure = seen.and_then(|seen| match which {
        TimeStatistic::Median => seen.median(),
        TimeStatistic::Mean => seen.mean(),
        TimeStatistic::Percentile(percentile) => percentile.of(&seen.sorted()).copied(),
    });
    let (Some(figure), Some(seen)) = (figure, seen) else { return (nothing(seen), false) };
    let replies = seen.echoes.len() - seen.lost();
    (format!("{} ({which} of {replies})", rounded(figure)), bounds.allow(&figure))
}

/// Why there is no figure.
fn nothing(seen: Option<&EchoResults>) -> String {
    match seen {
        Some(EchoResults { error: Some(error), .. }) => error.clone(),
        Some(EchoResults { echoes, .. }) if !echoes.is_empty() => {
            format!("no reply to {} echo requests", echoes.len())
        }
        _ => "no reply".to_owned(),
    }
}

fn throughput(
    flow: Option<IntervalByteCounts>,
    which: RateStatistic,
    bounds: &ValueBounds<Rate>,
) -> (String, bool) {
    let stretch = flow.and_then(|flow| match which {
        RateStatistic::Mean => flow.mean(),
        RateStatistic::Peak => flow.best_second(),
        RateStatistic::Lowest => flow.worst_second(),
    });
    match stretch {
        Some(found) => {
            let rate = megabits(found.bits_per_second);
            (format!("{rate} ({})", when(&found)), allows(bounds, found.bits_per_second))
        }
        None => ("no sample".to_owned(), false),
    }
}

/// The intervals of a window, from the sample nearest to its beginning to that nearest to its end.
fn cut(
    all: &IntervalByteCounts,
    window: Option<windtunnel_model::expect::ExpectationWindow>,
) -> Option<IntervalByteCounts> {
    let Some(window) = window else { return Some(all.clone()) };
    let edges: Vec<Time> =
        [all.start].into_iter().chain(all.counts.iter().map(|(end, _)| *end)).collect();
    let nearest = |span: Span| {
        let time = Time::ZERO + span;
        let distance = |edge: Time| time.since(edge).max(edge.since(time));
        (0..edges.len()).min_by_key(|&index| distance(edges[index]))
    };
    let from = nearest(window.from)?;
    let to = match window.to {
        Some(to) => nearest(to)?,
        None => all.counts.len(),
    };
    let counts = all.counts.get(from..to).filter(|counts| !counts.is_empty())?;
    Some(IntervalByteCounts { start: edges[from], counts: counts.to_vec() })
}

#[cfg(test)]
mod tests {
    use windtunnel_model::expect::ExpectationWindow;

    use super::*;

    #[test]
    fn a_window_cuts_the_intervals_nearest_to_it() {
        let ms = |n: u64| Time::from_nanos(n * 1_000_000);
        let all = IntervalByteCounts {
            start: Time::ZERO,
            counts: vec![(ms(101), 1), (ms(200), 2), (ms(300), 3)],
        };
        let window = |from, to: Option<u64>| {
            Some(ExpectationWindow { from: Span::from_millis(from), to: to.map(Span::from_millis) })
        };
        let bytes = |window| {
            let cut = cut(&all, window);
            cut.map(|cut| cut.counts.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>())
        };
        assert_eq!(bytes(window(100, Some(200))), Some(vec![2]));
        assert_eq!(bytes(window(100, None)), Some(vec![2, 3]));
        assert_eq!(bytes(window(900, None)), None);
        assert_eq!(bytes(None), Some(vec![1, 2, 3]));
    }

    #[test]
    fn the_figures_of_echoes_are_those_of_the_replies() {
        let echo = |ms: Option<u64>| (Span::ZERO, ms.map(Span::from_millis));
        let seen = EchoResults {
            echoes: [Some(10), Some(30), None, Some(20), Some(40)].map(echo).into(),
            error: None,
        };
        let at_most = |ms| ValueBounds { min: None, max: Some(Span::from_millis(ms)) };
        let p75 = TimeStatistic::Percentile("p75".parse().unwrap());
        assert_eq!(rtt(Some(&seen), p75, &at_most(30)), ("30.0ms (p75 of 4)".to_owned(), true));
        assert_eq!(
            rtt(Some(&seen), TimeStatistic::Mean, &at_most(24)),
            ("25.0ms (mean of 4)".to_owned(), false)
        );
        let silent = EchoResults { echoes: vec![echo(None); 3], error: None };
        let (text, met) = rtt(Some(&silent), TimeStatistic::Median, &at_most(1));
        assert_eq!((text.as_str(), met), ("no reply to 3 echo requests", false));
    }
}
