//! A flood of SYNs against a service whose connections outlive their server: `curl` beside it.

use super::*;

/// SYNs of random sources, and how many a second: more than the 4096 half-open connections that are
/// kept, in less than the 10 s for which they are.
const SYNS: u64 = 8_000;
const RATE: u64 = 4_000;

/// `near` is at the client's router, `far` behind another.
const FILE: &str = "
ipv6: false
services: {www: {ports: 80/tcp, replicas: [near, far], fail-over: transparent}}
routers: [paris, york]
nodes:
  near: {run: python3 -u same.py 80 30000, daemon: true, ready: tcp:80}
  far: {run: python3 -u same.py 80 30000, daemon: true, ready: tcp:80}
  flood: {user: root, run: python3 -u flood.py www 80 $SYNS $RATE, daemon: true}
  c:
    daemon: true
    run:
      - sh
      - -c
      - |
        until test -e go; do sleep 0.01; done
        until test -e slow; do
          curl -sS http://www/ 2>&1 | md5sum
        done
        curl -sS --limit-rate 200k -o page http://www/
        md5sum < page
        while :; do
          curl -sS http://www/ 2>&1 | md5sum
        done
links:
  - {between: [near, paris], latency: 1ms}
  - {between: [far, york], latency: 1ms}
  - {between: [c, paris], latency: 1ms, rate: 20Mbit}
  - {between: [flood, paris], latency: 1ms}
  - {between: [paris, york], latency: 3ms}
duration: 100s
";

/// Lines of the program that floods.
fn flooded(live: &Live<'_>, line: &str) {
    let said = live.folder().join("nodes/flood/stdout");
    until(line, || std::fs::read_to_string(&said).ok()?.contains(line).then_some(()));
}

#[test]
fn a_flood_of_syns_keeps_no_client_from_a_connection_that_outlives_its_server() {
    if is_missing(&["curl"]) {
        return;
    }
    let text = FILE.replace("$SYNS", &SYNS.to_string()).replace("$RATE", &RATE.to_string());
    for lab in labs() {
        lab.write("same.py", include_str!("../../../../../examples/same.py"));
        lab.write("flood.py", include_str!("flood.py"));
        let mut live = lab.start(&text);
        wait_for(&mut live, &["near", "far"]);
        flooded(&live, "begins");
        let before = lines(&live).len();
        flooded(&live, "sent");
        let during = lines(&live).len();
        assert!(during >= before + 3, "{before} and {during} pages: {:?}", lines(&live));
        // All that began beside the flood can still lose a server. A connection that is being opened
        // then has no primary yet: `curl` is in the middle of a page.
        lab.write("slow", "");
        let page = lab.path().join("page");
        until("a slow page", || (std::fs::metadata(&page).ok()?.len() > 0).then_some(()));
        happen(&live, "{node: near, do: kill}");
        until("pages after the kill", || (lines(&live).len() > during + 2).then_some(()));
        let pages = lines(&live);
        let outcome = stop(live);
        // `yes windtunnel | head -n 30000 | md5sum`.
        for page in &pages {
            assert_eq!(
                page,
                "7e4c8e44a9856d4c7909448d9fc7bd93  -",
                "{pages:?}, {}",
                outcome.describe()
            );
        }
        let report = outcome.report()["services"][0]["transparent"].clone();
        let count = |name: &str| report[name].as_u64().unwrap();
        assert_eq!((count("unkept"), count("lost")), (0, 0), "{report}");
        // It was the primary of all.
        assert!(count("promoted") > 1, "{report}");
        assert_eq!(count("promoted"), count("expelled_gone"), "{report}");
        // All of them came, and none of those of `curl` up to the kill found one replica only.
        assert!(count("opened") >= SYNS + during as u64, "{report}");
        let forgotten = count("half_open_forgotten");
        assert!((SYNS - 4_096..SYNS).contains(&forgotten), "{report}");
        let warned = outcome.report()["verdict"]["warnings"].to_string();
        assert!(warned.contains("forgotten before their clients had answered"), "{warned}");
    }
}
