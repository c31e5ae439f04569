//! Connections that outlive their server: real clients and servers, none of which knows of it.

use serde_json::Value;

use super::super::support::Outcome;
use super::*;

/// Bytes of a download: 3.2 s at the 20 Mbit/s of the client's link.
const BYTES: &str = "8000000";

/// Two regions 10 ms apart; `near` at the client's router, `far` at the other one.
const FILE: &str = "
ipv6: false
services: {www: {ports: 80/tcp, replicas: [near, far], fail-over: transparent}}
routers: [paris, york]
nodes:
  near: {run: $SERVER, daemon: true, ready: tcp:80}
  far: {run: $SERVER, daemon: true, ready: tcp:80}
  c: {run: $CLIENT, daemon: true}
links:
  - {between: [near, paris], name: edge, latency: 1ms}
  - {between: [far, york], latency: 1ms}
  - {between: [c, paris], latency: 1ms, rate: 20Mbit}
  - {between: [paris, york], latency: 10ms}
duration: 100s
";

const SERVER: &str = "python3 -u outlive.py serve 0.0.0.0 80";

fn with(server: &str, client: &str) -> String {
    let client = format!("python3 -u outlive.py {client}");
    FILE.replace("$SERVER", server).replace("$CLIENT", &client)
}

/// For every user: starts a run, and has the client begin once both replicas are registered.
fn with_each(server: &str, client: &str, check: impl Fn(Live<'_>)) {
    for lab in labs() {
        lab.write("outlive.py", include_str!("outlive.py"));
        let mut live = lab.start(&with(server, client));
        wait_for(&mut live, &["near", "far"]);
        check(live);
    }
}

/// The program of a node's server gets SIGKILL; the node's kernel lives.
#[track_caller]
fn kill_program(live: &Live<'_>, node: &str, name: &str) {
    let script = format!(
        "for it in /proc/[0-9]*; do case \"$(tr '\\0' ' ' <$it/cmdline)\" in *{name}*) \
         test ${{it#/proc/}} = $$ || kill -9 ${{it#/proc/}};; esac; done"
    );
    live.exec(node, &["sh", "-c", &script]);
}

fn report(outcome: &Outcome) -> Value {
    outcome.report()["services"][0]["transparent"].clone()
}

/// The client's download has all its bytes; the time in which it read nothing.
#[track_caller]
fn finish_download(live: Live<'_>) -> (Outcome, f64) {
    wait_for_line(&live, 0, "silence");
    let said = lines(&live);
    let outcome = stop(live);
    assert_eq!(said[said.len() - 2], "same", "{said:?}, {}", outcome.describe());
    let silence = said.last().unwrap().trim_start_matches("silence ").parse().unwrap();
    (outcome, silence)
}

#[test]
fn a_download_survives_the_kill_of_its_servers_program() {
    with_each(SERVER, &format!("fetch www 80 {BYTES}"), |live| {
        wait_for_line(&live, 0, "begun");
        kill_program(&live, "near", "[s]erve");
        let (outcome, _) = finish_download(live);
        let report = report(&outcome);
        assert_eq!((&report["opened"], &report["lost"]), (&1.into(), &0.into()), "{report}");
        assert_eq!(report["promoted"], 1, "{report}");
        let expelled = outcome.event(&[("event", "replica-expelled"), ("replica", "near")]);
        assert!(
            ["reset", "finished-alone"].contains(&expelled["cause"].as_str().unwrap()),
            "{expelled}"
        );
    });
}

#[test]
fn a_download_survives_the_kill_of_its_servers_node() {
    with_each(SERVER, &format!("fetch www 80 {BYTES}"), |live| {
        wait_for_line(&live, 0, "begun");
        happen(&live, "{node: near, do: kill}");
        let (outcome, _) = finish_download(live);
        let report = report(&outcome);
        assert_eq!(report["expelled_gone"], 1, "{report}");
        assert_eq!((&report["promoted"], &report["resumed"]), (&1.into(), &1.into()), "{report}");
    });
}

#[test]
fn a_download_survives_a_cut_that_is_not_reported() {
    with_each(SERVER, &format!("fetch www 80 {BYTES}"), |live| {
        wait_for_line(&live, 0, "begun");
        good(&live.ask("down", &["edge"]));
        let (outcome, silence) = finish_download(live);
        let report = report(&outcome);
        assert_eq!(report["expelled_silent"], 1, "{report}");
        // No test asks for speed: a retransmission timeout of the client's side would be more.
        assert!(silence < 5.0, "{silence} s, {report}");
    });
}

/// Downloads of a changed file, whose nearer server's node is killed.
fn survives_in(change: impl Fn(String) -> String, server: &str) {
    for lab in labs() {
        lab.write("outlive.py", include_str!("outlive.py"));
        let text = change(with(server, &format!("fetch www 80 {BYTES}")));
        let mut live = lab.start(&text);
        wait_for(&mut live, &["near", "far"]);
        wait_for_line(&live, 0, "begun");
        happen(&live, "{node: near, do: kill}");
        let (outcome, _) = finish_download(live);
        outcome.assert_conserved();
        let report = report(&outcome);
        assert_eq!((&report["promoted"], &report["lost"]), (&1.into(), &0.into()), "{report}");
    }
}

#[test]
fn a_download_over_ipv6_survives_the_kill_of_its_servers_node() {
    let server = format!("\"{}\"", SERVER.replace("0.0.0.0", "::"));
    survives_in(|text| text.replace("ipv6: false", "ipv4: false"), &server);
}

#[test]
fn a_download_survives_the_kill_of_a_server_on_the_clients_own_lan() {
    let link = "links:\n  - {between: [near, paris], name: edge, latency: 1ms}\n";
    let on_lan = "lans: {office: {}}\nlinks:\n  - {between: [near, office], latency: 1ms}\n  \
                  - {between: [paris, office]}\n";
    let change = |text: String| {
        assert!(text.contains(link), "{text}");
        text.replace(link, on_lan).replace("[c, paris]", "[c, office]")
    };
    survives_in(change, SERVER);
}

#[test]
fn a_talk_goes_on_without_a_line_lost_or_repeated() {
    for death in ["{node: near, do: kill}", "{node: far, do: kill}"] {
        with_each(SERVER, "talk www 80", |live| {
            let known = wait_for_line(&live, 0, "line 20");
            happen(&live, death);
            wait_for_line(&live, known, "line 60");
            let said = lines(&live);
            stop(live);
            for (number, line) in said.iter().enumerate() {
                assert_eq!(*line, format!("line {number}"));
            }
        });
    }
}

#[test]
fn a_reply_with_the_time_of_day_is_noticed_and_the_client_goes_on() {
    with_each(SERVER, "time www 80", |live| {
        wait_for_line(&live, 0, "line 20");
        let outcome = stop(live);
        let expelled = outcome.event(&[("event", "replica-expelled"), ("cause", "differed")]);
        assert_eq!(expelled["replica"], "far", "{expelled}");
        assert!(expelled["offset"].as_u64().unwrap() < 20, "{expelled}");
        assert_eq!(report(&outcome)["expelled_differed"], 1);
    });
}

#[test]
fn with_one_replica_a_connection_ends_with_it_and_that_is_counted() {
    for lab in labs() {
        lab.write("outlive.py", include_str!("outlive.py"));
        let text = with(SERVER, "talk www 80").replacen(
            "far: {run: python3 -u outlive.py serve 0.0.0.0 80",
            "far: {run: sleep 1000",
            1,
        );
        let text = text.replace("daemon: true, ready: tcp:80}\n  c:", "daemon: true}\n  c:");
        let mut live = lab.start(&text);
        wait_for(&mut live, &["near"]);
        wait_for_line(&live, 0, "line 5");
        let outcome = stop(live);
        let report = report(&outcome);
        assert_eq!((&report["opened"], &report["plain"]), (&0.into(), &1.into()), "{report}");
    }
}

#[test]
fn a_page_of_nginx_survives_the_kill_of_its_nginx() {
    if is_missing(&["nginx"]) {
        return;
    }
    // HTTP/0.9: a head would have the time of day.
    let server = "
    - sh
    - -ec
    - |
      cd \"$WINDTUNNEL_RUN/nodes/$WINDTUNNEL_NODE\"
      python3 -c 'import sys, hashlib; n = 250000; sys.stdout.buffer.write(b\"\".join(hashlib.sha256(str(i).encode()).digest() for i in range(n)))' >page
      cat >nginx.conf <<END
      daemon off;
      master_process off;
      pid nginx.pid;
      events { }
      http {
        access_log off;
        client_body_temp_path temp;
        proxy_temp_path temp;
        fastcgi_temp_path temp;
        uwsgi_temp_path temp;
        scgi_temp_path temp;
        server { listen 80; location / { root .; } }
      }
      END
      exec nginx -p . -c nginx.conf -e stderr
";
    for lab in labs() {
        lab.write("outlive.py", include_str!("outlive.py"));
        let node = |name: &str| {
            format!(
                "  {name}:\n    daemon: true\n    results: true\n    ready: tcp:80\n    run:{}",
                server.replace('\n', "\n  ")
            )
        };
        let text = with("X", &format!("page www 80 /page {BYTES}"));
        let text = text.replace(
            "  near: {run: X, daemon: true, ready: tcp:80}\n",
            &format!("{}\n", node("near")),
        );
        let text = text.replace(
            "  far: {run: X, daemon: true, ready: tcp:80}\n",
            &format!("{}\n", node("far")),
        );
        let mut live = lab.start(&text);
        wait_for(&mut live, &["near", "far"]);
        wait_for_line(&live, 0, "begun");
        kill_program(&live, "near", "[n]ginx");
        let (outcome, _) = finish_download(live);
        let report = report(&outcome);
        assert_eq!((&report["opened"], &report["promoted"]), (&1.into(), &1.into()), "{report}");
    }
}
