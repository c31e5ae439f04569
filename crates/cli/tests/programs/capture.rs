//! Frames of nodes and links, read by tshark.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use super::support::{Lab, Live, is_missing, until, users};

const PINGS: &str = "nodes: {a: {run: ping -4 -c 3 -i 0.1 b}, b: {}}
links: [{between: [a, b], latency: 20ms}]
";

/// What tshark reads: a line for each packet with these fields.
fn tshark(file: &Path, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-Y", filter, "-T", "fields", "-E", "separator=|"]);
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
}

#[test]
fn a_capture_of_a_run_has_whole_frames_at_the_times_of_the_network() {
    if is_missing(&["ping", "tshark"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.run_with(PINGS, &["--pcap", "a", "--pcap", "a--b"]);
        outcome.assert_code(0);
        let file = outcome.path("captures/a.pcapng");
        let fields = ["frame.time_epoch", "icmp.type", "frame.len", "frame.interface_name"];
        let packets = tshark(&file, "icmp", &fields);
        let kinds: Vec<&str> = packets.iter().map(|packet| packet[1].as_str()).collect();
        assert_eq!(kinds, ["8", "0", "8", "0", "8", "0"], "{packets:?}");
        assert!(packets.iter().all(|packet| packet[2] == "98" && packet[3] == "a eth0"));
        for exchange in packets.chunks(2) {
            let at = |packet: &[String]| packet[0].parse::<f64>().unwrap();
            let trip = at(&exchange[1]) - at(&exchange[0]);
            // Twice the latency, and what b takes to answer.
            assert!(trip >= 0.04 - 1e-6, "{trip}");
        }
        let both = tshark(&outcome.path("captures/a--b.pcapng"), "icmp", &fields);
        assert_eq!(both.len(), 12, "each packet leaves one node and comes to the other");
        // The end of the first trip is the begin of the second only at b.
        let at_b = both.iter().filter(|packet| packet[3] == "b eth0").count();
        assert_eq!(at_b, 6);
    }
}

/// Pings without end.
const PINGING: &str = "nodes: {a: {run: ping -4 -i 0.05 b}, b: {}, alone: {}}
routers: [r, s]
links: [{between: [a, b], latency: 1ms}, {between: [r, s]}]
allow-unreachable: true
";

fn pinging(lab: &Lab) -> Live<'_> {
    let mut live = lab.start(PINGING);
    live.wait_for_output("a", "icmp_seq=1 ");
    live
}

/// Starts a capture whose standard output is `stdout`.
fn start(live: &Live<'_>, options: &[&str], stdout: Stdio) -> Child {
    live.command("capture", options).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stop(live: Live<'_>) -> super::support::Outcome {
    assert_eq!(live.ask("stop", &[]).status.code(), Some(0));
    let outcome = live.finish();
    outcome.assert_code(0);
    outcome
}

#[test]
fn a_live_capture_begins_and_ends_while_the_run_goes_on_and_cuts_frames() {
    if is_missing(&["ping", "tshark"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let live = pinging(&lab);
        for end in ["INT", "KILL"] {
            let file = lab.path().join(format!("{end}.pcapng"));
            let options = ["b", "-w", file.to_str().unwrap(), "--snaplen", "60B"];
            let capture = start(&live, &options, Stdio::null());
            until("twenty frames", || {
                (file.metadata().is_ok_and(|data| data.len() > 4000)).then_some(())
            });
            signal(&capture, end);
            let output = capture.wait_with_output().unwrap();
            if end == "INT" {
                assert_eq!(output.status.code(), Some(0), "{}", said(&output));
                assert!(said(&output).contains("capturing b eth0\n"), "{}", said(&output));
                assert!(said(&output).contains(" captured, 0 of them lost\n"), "{}", said(&output));
            }
            let fields = ["frame.len", "frame.cap_len", "icmp.type"];
            let packets = until("a whole file", || {
                let packets = tshark(&file, "icmp", &fields);
                (packets.len() >= 10).then_some(packets)
            });
            let cut = packets.iter().all(|packet| packet[0] == "98" && packet[1] == "60");
            assert!(cut, "{packets:?}");
        }
        // What is there already is not overwritten, and the run goes on.
        let again = live.ask("capture", &["b", "-w", "INT.pcapng"]);
        assert_eq!(again.status.code(), Some(2));
        assert!(said(&again).contains("hint: --force overwrites it"), "{}", said(&again));
        stop(live);
    }
}

#[test]
fn a_reader_that_closes_ends_its_capture_and_nothing_else() {
    if is_missing(&["ping", "tshark"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let live = pinging(&lab);
    let mut capture = start(&live, &["a"], Stdio::piped());
    let mut head = [0; 64];
    capture.stdout.take().unwrap().read_exact(&mut head).unwrap();
    assert_eq!(head[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    // Its standard output is closed now.
    let output = capture.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let full = live.ask("capture", &["a", "-w", "/dev/full"]);
    assert_eq!(full.status.code(), Some(4), "{}", said(&full));
    let text = "error: cannot write to /dev/full: No space left on device";
    assert!(said(&full).contains(text), "{}", said(&full));
    let outcome = stop(live);
    let warnings = outcome.report()["verdict"]["warnings"].to_string();
    assert!(warnings.contains("the capture of a ended before the run"), "{warnings}");
    assert!(!outcome.stdout.contains("INCOMPLETE"), "it is not a capture of the run");
}

#[test]
fn a_place_without_frames_is_refused_by_name_and_leaves_no_file() {
    let lab = Lab::new(users()[0]);
    let live = pinging(&lab);
    let cases = [
        ("c", "no node or link is called c"),
        ("r", "r is a router: frames are captured at nodes only"),
        ("r--s", "no end of link r--s is at a node: no frames of it can be captured"),
        ("alone", "node alone has no link: no frames of it can be captured"),
    ];
    for (place, text) in cases {
        let refused = live.ask("capture", &[place, "-w", "none.pcapng"]);
        assert_eq!(refused.status.code(), Some(2));
        let said = said(&refused);
        assert!(said.starts_with(&format!("error: {text}\nhint: ")), "{said}");
        assert!(!lab.path().join("none.pcapng").exists());
    }
    stop(live);
}

#[test]
fn a_reader_that_stands_still_delays_nothing_and_is_shown_what_it_has_lost() {
    if is_missing(&["iperf3", "tshark"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let mut live = lab.start(
        "nodes:
  a: {run: sh -c 'sleep 1; iperf3 -c b -n 60M; echo sent; sleep 100', after: b}
  b: {run: iperf3 -s, ready: tcp:5201, daemon: true}
links: [{between: [a, b], latency: 1ms}]
",
    );
    live.wait_for(&[("event", "run-began")]);
    let mut capture = start(&live, &["b"], Stdio::piped());
    // Nothing reads the pipe until all has been sent.
    live.wait_for_output("a", "sent");
    let file = lab.path().join("slow.pcapng");
    let mut pipe = capture.stdout.take().unwrap();
    let (at, copied) = (file.clone(), std::sync::mpsc::channel());
    let copy = std::thread::spawn(move || {
        let mut file = File::create(at).unwrap();
        let mut buffer = [0; 1 << 16];
        loop {
            let length = pipe.read(&mut buffer).unwrap();
            if length == 0 {
                return;
            }
            std::io::Write::write_all(&mut file, &buffer[..length]).unwrap();
            let _ = copied.0.send(());
        }
    });
    copied.1.recv().unwrap();
    signal(&capture, "INT");
    let output = capture.wait_with_output().unwrap();
    copy.join().unwrap();
    let outcome = stop(live);
    let text = said(&output);
    let words: Vec<&str> =
        text.lines().find(|line| line.contains("captured")).unwrap().split(' ').collect();
    let [seen, lost] = [words[0], words[3]].map(|word| word.parse::<usize>().unwrap());
    let packets = tshark(&file, "frame", &["frame.number"]).len();
    assert_eq!(packets + lost, seen, "{text}");
    assert!(lost > 0 && packets * 1500 > 8 << 20, "{text}");
    let warnings = outcome.report()["verdict"]["warnings"].to_string();
    let expected = format!("{lost} of {seen} packets of the capture of b are missing");
    assert!(warnings.contains(&expected), "{warnings}");
}

#[test]
fn trains_are_captured_as_the_segments_that_they_stand_for() {
    if is_missing(&["iperf3", "tshark"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.run_with(
            "nodes:
  a: {run: iperf3 -c b -n 2M, after: b}
  b: {run: iperf3 -s -1, ready: tcp:5201}
links: [{between: [a, b], latency: 1ms}]
ipv6: false
",
            &["--pcap", "b"],
        );
        outcome.assert_code(0);
        let file = outcome.path("captures/b.pcapng");
        let packets = tshark(&file, "frame", &["frame.len", "frame.packet_flags_direction"]);
        let whole = 1514;
        assert!(packets.iter().all(|packet| packet[0].parse::<u32>().unwrap() <= whole));
        let heading = |packet: &[String]| {
            packet[1].trim_start_matches("0x").trim_start_matches('0').to_owned()
        };
        let count =
            |wanted| packets.iter().filter(|packet| heading(packet) == wanted).count() as u64;
        let (came, went) = (outcome.link("a-b"), outcome.link("b-a"));
        assert!(count("1") > 100);
        assert_eq!(Some(count("1")), came["delivered_packets"].as_u64(), "each that was delivered");
        assert_eq!(Some(count("2")), went["offered_packets"].as_u64(), "each that was offered");
        let again = tshark(&file, "tcp.analysis.lost_segment", &["frame.number"]);
        assert_eq!(again.len(), 0, "nothing is missing in the capture");
        let counters = outcome.report()["verdict"]["incomplete"].clone();
        assert!(counters.as_array().is_none_or(Vec::is_empty), "{counters}");
    }
}

#[test]
fn a_place_that_is_not_in_the_plan_is_refused_before_the_run() {
    let lab = Lab::new(users()[0]);
    let outcome = lab.run_with(PINGS, &["--pcap", "c"]);
    outcome.assert_code(2);
    assert!(outcome.stderr.contains("no node or link is called c"), "{}", outcome.stderr);
    assert!(!outcome.path("plan.json").exists(), "nothing was begun");
}
