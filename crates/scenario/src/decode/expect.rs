//! Expectations: what must hold at the end.

mod figure;
mod program;

use windtunnel_model::Span;
use windtunnel_model::expect::{
    DROP_CAUSES, LinkFact, PacketCount, PathFact, ProgramFact, RateStatistic, TimeStatistic, Window,
};

use super::{At, Field, Fields};
use crate::error::Findings;
use crate::keys;
use crate::position::Place;
use figure::RateFact;

/// An expectation as the file has it; each of its facts becomes one of the plan.
#[derive(Debug)]
pub(crate) struct ExpectDraft {
    pub(crate) place: Place,
    pub(crate) window: Option<At<Window>>,
    pub(crate) subject: Subject,
}

/// What it is about.
#[derive(Debug)]
pub(crate) enum Subject {
    Node { node: At<String>, any: bool, facts: Vec<ProgramFact> },
    Path { ends: [At<String>; 2], every: Option<At<Span>>, facts: Vec<PathFact> },
    Link { link: At<String>, direction: At<String>, facts: Vec<LinkFact> },
}

/// The keys that say what is expected, each with those that go with it, the facts first.
const SUBJECTS: [(&str, usize, &[&str]); 3] = [
    ("node", 5, &["exit", "exited", "ready", "runtime", "log", "node", "of", "between"]),
    ("path", 3, &["rtt", "loss", "throughput", "path", "every", "between"]),
    (
        "link",
        8,
        &[
            "rate",
            "loss",
            "drops",
            "queue",
            "offered",
            "delivered",
            "marked",
            "lateness",
            "link",
            "direction",
            "between",
        ],
    ),
];

impl Findings {
    pub(super) fn expectation(&mut self, field: Field<'_>) -> Option<ExpectDraft> {
        let fields = self.fields(field, "an expectation", keys::EXPECT)?;
        let found = SUBJECTS.iter().find(|(key, ..)| fields.has(key));
        let Some((key, facts, with)) = found else {
            if !fields.unknown {
                let message = "this expectation says not of what";
                let hint = "it needs `node`, `path` or `link`, and what is expected of it";
                self.mistake_with_hint(fields.place, message, hint);
            }
            return None;
        };
        let subject = fields.find(key)?;
        let known = |field: &Field<'_>| keys::EXPECT.contains(&field.key);
        let stray = fields.all().find(|field| known(field) && !with.contains(&field.key));
        if let Some(stray) = stray {
            let message = format!("`{}` does not go with `{key}`", stray.key);
            self.mistake(stray.place, message);
            return None;
        }
        let facts = &with[..*facts];
        if !facts.iter().any(|fact| fields.has(fact)) {
            if !fields.unknown {
                let message = format!("this expectation says not what is expected of the {key}");
                let hint = format!("it needs one of {}", facts.join(", "));
                self.mistake_with_hint(fields.place, message, hint);
            }
            return None;
        }
        let window = match fields.find("between") {
            Some(field) => Some(self.window(field)?),
            None => None,
        };
        let subject = match *key {
            "node" => self.expect_of_node(&fields, subject),
            "path" => self.expect_of_path(&fields, subject, window.as_ref()),
            _ => self.expect_of_link(&fields, subject, window.is_some()),
        };
        Some(ExpectDraft { place: fields.place, window, subject: subject? })
    }

    /// `between: [10s, 20s]` or `[10s, end]`.
    fn window(&mut self, field: Field<'_>) -> Option<At<Window>> {
        let needed = "a list of two times after the run began, such as [10s, 20s] or [10s, end]";
        let ends: Vec<_> = self.list(field, needed)?.collect();
        let [from, to] = ends[..] else {
            self.mistake(field.wrong(), format!("`between` must be {needed}"));
            return None;
        };
        let from = self.quantity::<Span>(from, "a time such as 10s")?;
        let to = match to.scalar() {
            Some("end") => None,
            _ => Some(self.quantity::<Span>(to, "a time such as 20s, or `end`")?),
        };
        if let Some(to) = to.filter(|to| *to <= from) {
            let message = format!("between: the end ({to}) is not after the beginning ({from})");
            self.mistake(field.value.place, message);
            return None;
        }
        Some(At { value: Window { from, to }, place: field.value.place })
    }

    fn expect_of_path(
        &mut self,
        fields: &Fields<'_>,
        subject: Field<'_>,
        window: Option<&At<Window>>,
    ) -> Option<Subject> {
        let ends = self.ends(subject);
        let mut facts = Vec::new();
        let rtt = fields.find("rtt").map(|field| self.rtt(field));
        let loss = fields.find("loss").map(|field| self.bounds(field, "a probability such as 1%"));
        let throughput = fields.find("throughput").map(|field| self.rate_figures(field));
        if let Some(times) = rtt {
            facts.extend(times?.into_iter().map(|(what, bounds)| PathFact::Rtt(what, bounds)));
        }
        if let Some(bounds) = loss {
            facts.push(PathFact::Loss(bounds?));
        }
        for fact in throughput.unwrap_or(Some(Vec::new()))? {
            facts.push(match fact {
                RateFact::Level(what, bounds) => PathFact::Throughput(what, bounds),
                RateFact::Deviation(bounds) => PathFact::Deviation(bounds),
            });
        }
        let echoes = fields.has("rtt") || fields.has("loss");
        let every = match fields.find("every") {
            Some(field) => Some(self.every(field, echoes, window)?),
            None => None,
        };
        Some(Subject::Path { ends: ends?, every, facts })
    }

    fn ends(&mut self, subject: Field<'_>) -> Option<[At<String>; 2]> {
        let needed = "a list of two nodes";
        let names: Vec<_> = self.list(subject, needed)?.collect();
        let names: Vec<_> =
            names.into_iter().map(|name| self.text_at(name, "a name")).collect::<Option<_>>()?;
        let Ok(ends) = <[At<String>; 2]>::try_from(names) else {
            self.mistake(subject.wrong(), format!("`path` must be {needed}"));
            return None;
        };
        Some(ends)
    }

    /// How often echo requests are sent.
    fn every(
        &mut self,
        field: Field<'_>,
        echoes: bool,
        window: Option<&At<Window>>,
    ) -> Option<At<Span>> {
        let every = self.quantity::<Span>(field, "a time such as 100ms")?;
        let hint =
            "echo requests are sent for `rtt` or `loss` with a window, `between: [10s, 20s]`";
        if !echoes || window.is_none() {
            self.mistake_with_hint(field.place, "`every` has nothing to time", hint);
            return None;
        }
        if every < EVERY_LEAST {
            let message = format!("every: {every} is less than {EVERY_LEAST}");
            self.mistake(field.wrong(), message);
            return None;
        }
        Some(At { value: every, place: field.value.place })
    }

    fn rtt(&mut self, field: Field<'_>) -> Option<figure::Times<TimeStatistic>> {
        let figures = self.figures(field, "bounds of a round-trip time", keys::RTT)?;
        let needed = "a time such as 20ms";
        let named = [("mean", TimeStatistic::Mean)];
        self.times(&figures, needed, TimeStatistic::Median, &named, TimeStatistic::Percentile)
    }

    fn expect_of_link(
        &mut self,
        fields: &Fields<'_>,
        subject: Field<'_>,
        in_window: bool,
    ) -> Option<Subject> {
        let link = self.text_at(subject, "a link's name");
        let direction = fields.find("direction");
        if direction.is_none() && !fields.unknown {
            let hint = "write `direction: up`, `down`, or the ends as `from-to`";
            self.mistake_with_hint(fields.place, "this expectation lacks `direction`", hint);
        }
        let rate = fields.find("rate").map(|field| self.rate_figures(field));
        let loss = fields.find("loss").map(|field| self.bounds(field, "a probability such as 1%"));
        let drops = fields.find("drops").map(|field| self.drops(field));
        let queue = fields.find("queue").map(|field| self.queue_figures(field));
        let late = fields.find("lateness").map(|field| self.lateness(field, in_window));
        let mut facts = Vec::new();
        for fact in rate.unwrap_or(Some(Vec::new()))? {
            facts.push(match fact {
                RateFact::Level(what, bounds) => LinkFact::Rate(what, bounds),
                RateFact::Deviation(bounds) => LinkFact::Deviation(bounds),
            });
        }
        if let Some(bounds) = loss {
            facts.push(LinkFact::Loss(bounds?));
        }
        facts.extend(drops.unwrap_or(Some(Vec::new()))?);
        let queue = queue.unwrap_or(Some(Vec::new()))?;
        facts.extend(queue.into_iter().map(|(level, bounds)| LinkFact::Queue(level, bounds)));
        let counts = [
            ("offered", PacketCount::Offered),
            ("delivered", PacketCount::Delivered),
            ("marked", PacketCount::Marked),
        ];
        for (key, which) in counts {
            if let Some(field) = fields.find(key) {
                facts.push(LinkFact::Packets(which, self.count(field)?));
            }
        }
        let late = late.unwrap_or(Some(Vec::new()))?;
        facts.extend(late.into_iter().map(|(level, bounds)| LinkFact::Lateness(level, bounds)));
        let direction = self.direction(direction?)?;
        Some(Subject::Link { link: link?, direction, facts })
    }

    /// `{max: 0}`, `{queue-full: {max: 3}}`, `{share: {max: 1%}}`, or a number.
    fn drops(&mut self, field: Field<'_>) -> Option<Vec<LinkFact>> {
        if field.scalar().is_some() {
            return Some(vec![LinkFact::Drops(None, self.count(field)?)]);
        }
        let fields = self.fields(field, "bounds of dropped packets", keys::DROPS)?;
        let mut facts = Vec::new();
        if fields.has("min") || fields.has("max") {
            facts.push(LinkFact::Drops(None, self.count_bounds(field, &fields)?));
        }
        if let Some(share) = fields.find("share") {
            facts.push(LinkFact::DropShare(self.bounds(share, "a probability such as 1%")?));
        }
        for cause in DROP_CAUSES {
            if let Some(field) = fields.find(cause) {
                facts.push(LinkFact::Drops(Some((*cause).to_owned()), self.count(field)?));
            }
        }
        self.some_figure(field, fields.unknown, facts)
    }
}

/// `rate` alone means its best second.
const RATE_MEANT: RateStatistic = RateStatistic::Peak;
/// More often, and the echoes would be a load of their own.
const EVERY_LEAST: Span = Span::from_millis(1);
