//! One entry to everything that comes from the other machines of a run, for fuzzers.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use windtunnel_control::frame;
use windtunnel_engine::FlowAudienceTable;
use windtunnel_folder::RunOutputFolder;
use windtunnel_model::{Plan, Span};
use windtunnel_routing::Routes;
use windtunnel_verdict::{JudgingTerms, RunPartFolders, gather};

use crate::observer::OwnedNotice;
use crate::part::news::MemberAnnouncement;
use crate::supervisor::Supervisor;

/// What the first byte chooses to be read of the rest.
pub const KINDS: u8 = 6;

/// Reads arbitrary bytes as a message or a result of another machine's part of a run of `plan`,
/// in a folder below `scratch` that is removed. The first byte says as what: news, a notice, a
/// plan, or one of three files of its results, of which the others are those that `results` has.
///
/// # Panics
/// When reading does, or putting the files together, or a plan that was taken cannot be used.
pub fn fuzz_one(data: &[u8], plan: &Plan, results: &[(&str, Vec<u8>)], scratch: &Path) {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind % KINDS {
        0 => {
            if let Ok(MemberAnnouncement::Program { key, state }) = frame::decode(rest) {
                let mut supervisor = Supervisor::of_part(plan, vec![false; plan.nodes.len()]);
                supervisor.on_news(key, *state);
                supervisor.on_lost(&[key.node], "b");
            }
        }
        1 => drop(OwnedNotice::read(&String::from_utf8_lossy(rest), plan)),
        2 => use_plan(rest),
        file => {
            let file = ["part.json", "links.csv", "events.jsonl"][usize::from(file - 3)];
            put_together(file, rest, plan, results, scratch);
        }
    }
}

/// The same with the plan and the results of the corpus, for a program that has nothing else.
///
/// # Panics
/// As [`fuzz_one`]; and if the corpus is not there.
pub fn fuzz_alone(data: &[u8]) {
    struct Known {
        plan: Plan,
        results: Vec<(&'static str, Vec<u8>)>,
    }
    static KNOWN: OnceLock<Known> = OnceLock::new();
    let Known { plan, results } = KNOWN.get_or_init(|| {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        // The first byte is the kind.
        let read = |name: &str| fs::read(corpus.join(name)).map(|bytes| bytes[1..].to_vec());
        let all = [("part.json", "results"), ("links.csv", "samples"), ("events.jsonl", "events")];
        let results = all.map(|(file, name)| read(name).map(|bytes| (file, bytes)));
        let results: Result<Vec<_>, _> = results.into_iter().collect();
        let plan = read("plan").map(|bytes| serde_json::from_slice(&bytes));
        match (plan, results) {
            (Ok(Ok(plan)), Ok(results)) => Known { plan, results },
            other => panic!("the corpus cannot be read: {other:?}"),
        }
    });
    let scratch = std::env::temp_dir().join(format!("windtunnel-fuzz-{}", std::process::id()));
    fuzz_one(data, plan, results, &scratch);
}

fn use_plan(text: &[u8]) {
    let Ok(plan) = serde_json::from_slice::<Plan>(text) else { return };
    if plan.validate().is_err() {
        return;
    }
    let routes = Routes::compute(&plan);
    let _ = FlowAudienceTable::of(&plan, &routes, &vec![0; plan.nodes.len()], 1);
    let _ = Supervisor::new(&plan);
    let _ = windtunnel_trace::sample::lane_names(&plan);
}

/// A run on two machines, of which one has left these files.
fn put_together(file: &str, text: &[u8], plan: &Plan, results: &[(&str, Vec<u8>)], scratch: &Path) {
    let root = scratch.join("run");
    let part = scratch.join("part");
    let prepared = (|| {
        fs::create_dir_all(&part)?;
        for node in &plan.nodes {
            fs::create_dir_all(part.join("nodes").join(&node.name))?;
        }
        results.iter().try_for_each(|(name, bytes)| fs::write(part.join(name), bytes))?;
        fs::write(part.join(file), text)
    })();
    assert!(prepared.is_ok(), "the folder can be written: {prepared:?}");
    if let Ok(folder) = RunOutputFolder::create(&root, plan) {
        let late_above = Span::from_millis(1);
        let terms = JudgingTerms { plan_hash: "", late_above, attempts: &[] };
        let members =
            vec![("a".to_owned(), Ok(part.clone())), ("b".to_owned(), Err("lost".into()))];
        let placement = vec![0; plan.nodes.len()];
        let _ = gather(
            plan,
            terms,
            &folder,
            &RunPartFolders { members, placement, ..RunPartFolders::default() },
        );
    }
    // What cannot be removed is found by the next.
    let _ = fs::remove_dir_all(&root);
    let _ = fs::remove_dir_all(&part);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use windtunnel_simlab::fuzzing::json::{
        hostile_values, with_hostile_value, with_hostile_values,
    };
    use windtunnel_simlab::fuzzing::{damage, replay_seeds};

    use super::*;
    use windtunnel_verdict::testing::sample;

    fn plan() -> Plan {
        windtunnel_dataplane::testing::plan(
            "nodes:\n  a: {run: [sleep, '1'], ready: listen}\n  b: {run: x, after: a}\nrouters: [r]\nlinks:\n\
- {between: [a, r], rate: 1mbit, discipline: codel}\n- {between: [b, r], loss: 1%}\n\
expect:\n- {link: a--r, direction: up, rate: {max: 1mbit}}\n- {path: [a, b], throughput: {min: 1kbit}}\n\
- {path: [a, b], rtt: {max: 1s}}\n- {node: a, log: {match: ok, count: 1}}\n",
        )
    }

    /// The files of a part's results.
    fn results(plan: &Plan) -> Vec<(&'static str, Vec<u8>)> {
        let csv = format!(
            "{}\n0.100000,a--r,a-r,1,2,3,4,5,6,7,8,9,10,11,12\n1.200000,b--r,b-r,1,2,3,4,5,6,7,8,9,10,11,12\n",
            windtunnel_trace::sample::COLUMNS
        );
        let events = "{\"at_ns\":5,\"event\":\"healed\"}\n{\"at_ns\":7,\"event\":\"run-began\"}\n";
        vec![
            ("part.json", sample(plan)),
            ("links.csv", csv.into_bytes()),
            ("events.jsonl", events.as_bytes().to_vec()),
        ]
    }

    fn seeds(plan: &Plan) -> Vec<(&'static str, Vec<u8>)> {
        let of = |kind: u8, text: &[u8]| [&[kind], text].concat();
        let state =
            serde_json::to_value(Supervisor::new(plan).programs().next().unwrap().1).unwrap();
        let key = json!({"node": 0, "program": 0});
        let news = [
            ("news-program", json!({"news": "program", "key": key, "state": state})),
            ("news-order", json!({"news": "order", "at": "1s", "action": "heal"})),
            ("news-end", json!({"news": "end", "ending": {"Interrupted": 2}})),
        ];
        let notices = [
            ("notice-setup", json!({"notice": "setup", "done": 1, "total": 2})),
            ("notice-tick", json!({"notice": "tick", "elapsed": "1s", "running": 2})),
            (
                "notice-output",
                json!({"notice": "output", "source": "a", "node": 0, "error": false, "line": "x"}),
            ),
        ];
        let mut seeds = vec![("empty", Vec::new())];
        seeds.extend(news.map(|(name, it)| (name, of(0, it.to_string().as_bytes()))));
        seeds.extend(notices.map(|(name, it)| (name, of(1, it.to_string().as_bytes()))));
        seeds.push(("plan", of(2, &serde_json::to_vec(plan).unwrap())));
        let names = ["results", "samples", "events"];
        let files = (3..).zip(names).zip(results(plan));
        seeds.extend(files.map(|((kind, name), (_, bytes))| (name, of(kind, &bytes))));
        seeds
    }

    struct Bench {
        plan: Plan,
        results: Vec<(&'static str, Vec<u8>)>,
        scratch: tempfile::TempDir,
    }

    impl Bench {
        fn new() -> Self {
            let plan = plan();
            Bench { results: results(&plan), plan, scratch: tempfile::tempdir().unwrap() }
        }

        fn feed(&self, bytes: &[u8]) {
            fuzz_one(bytes, &self.plan, &self.results, self.scratch.path());
        }
    }

    /// `WINDTUNNEL_HOST_CORPUS=write` makes the files again.
    #[test]
    fn every_file_of_the_corpus_is_replayed() {
        let bench = Bench::new();
        let seeds = seeds(&bench.plan);
        let root = env!("CARGO_MANIFEST_DIR");
        replay_seeds(root, "WINDTUNNEL_HOST_CORPUS", &seeds, |bytes| bench.feed(bytes));
    }

    #[test]
    fn every_hostile_value_is_survived() {
        let bench = Bench::new();
        for (_, seed) in seeds(&bench.plan).iter().filter(|(_, seed)| !seed.is_empty()) {
            // Of long files each value in turn gets some of the hostile ones; all together get all.
            let all = hostile_values(&seed[1..]);
            for pick in (0..all).step_by(if all > MANY { 29 } else { 1 }) {
                let hostile = with_hostile_value(&seed[1..], pick);
                bench.feed(&[&seed[..1], &hostile].concat());
            }
            damage(seed, 60, |byte| [0x00, 0xff, byte ^ 0x10], |bytes| bench.feed(bytes));
        }
    }

    #[test]
    fn results_of_another_machine_are_taken_if_they_are_those_of_its_part() {
        let bench = Bench::new();
        let part = bench.scratch.path().join("part");
        let read = |change: fn(&mut serde_json::Value)| {
            let mut results = serde_json::from_slice(&bench.results[0].1).unwrap();
            change(&mut results);
            fs::create_dir_all(&part).unwrap();
            fs::write(part.join("part.json"), results.to_string()).unwrap();
            let read = windtunnel_verdict::PartResults::read(&part, 0, &bench.plan);
            read.map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(read(|_| {}), Ok(()));
        let wrong: [fn(&mut serde_json::Value); 6] = [
            |it| it["member"] = json!(1),
            |it| it["device_drops"]["packets"] = json!(u64::MAX),
            |it| it["tally"]["lanes"] = json!([]),
            |it| it["tally"]["flows"][0]["to"] = json!(9),
            |it| it["ending"] = json!({"Interrupted": i32::MAX}),
            |it| it["programs"][0][0]["node"] = json!(77),
        ];
        for (number, change) in wrong.into_iter().enumerate() {
            assert!(read(change).is_err(), "change {number}");
        }
    }

    const MANY: usize = 500;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn several_hostile_values_at_once_are_survived(seed: usize, picks: Vec<usize>) {
            let bench = Bench::new();
            let seeds = seeds(&bench.plan);
            let (_, seed) = &seeds[1 + seed % (seeds.len() - 1)];
            let bytes = with_hostile_values(&seed[1..], picks.into_iter().take(6));
            bench.feed(&[&seed[..1], &bytes].concat());
        }
    }
}
