//! Probes take replicas out and bring them back.

use super::*;

#[track_caller]
fn is_taken_out_and_brought_back(health: &str) {
    for lab in labs() {
        let service = format!("ports: 80/tcp, health: {health}");
        let client = "sh -c 'while :; do curl -s -m 2 http://www/; sleep 0.05; done'";
        let text = file(&service, "http 0.0.0.0 80", "X");
        let text = text.replace("python3 -u ask.py X", client);
        let mut live = lab.start(&text);
        wait_for_replicas(&mut live);
        let known = wait_for_line(&live, 0, "s1");
        lab.write("sick-s1", "");
        let fields = [("event", "service-health"), ("replica", "s1"), ("healthy", "false")];
        let event = live.wait_for(&fields);
        assert!(event["why"].as_str().is_some_and(|why| !why.is_empty()), "{event}");
        let known = wait_for_line(&live, known, "s2");
        std::fs::remove_file(lab.path().join("sick-s1")).unwrap();
        live.wait_for(&[("event", "service-health"), ("replica", "s1"), ("healthy", "true")]);
        wait_for_line(&live, known, "s1");
        stop(live).assert_code(0);
    }
}

#[test]
fn a_replica_whose_http_answer_is_an_error_gets_nothing_new_until_it_is_well() {
    if is_missing(&["curl"]) {
        return;
    }
    is_taken_out_and_brought_back("{http: /, every: 100ms}");
}

#[test]
fn a_replica_whose_command_fails_gets_nothing_new_until_it_is_well() {
    if is_missing(&["curl"]) {
        return;
    }
    let command = "[sh, -c, 'test ! -e sick-$WINDTUNNEL_NODE']";
    is_taken_out_and_brought_back(&format!("{{command: {command}, every: 100ms}}"));
}

#[test]
fn a_replica_that_accepts_no_connection_fails_the_probe_by_tcp() {
    for lab in labs() {
        // A queue of one connection that is never accepted: its kernel answers no further one.
        lab.write(
            "full.py",
            "import socket, time\ns = socket.socket()\ns.bind(('0.0.0.0', 80))\ns.listen(0)\n\
             kept = [socket.create_connection(('127.0.0.1', 80))]\ntime.sleep(1000)\n",
        );
        let service = "ports: 80/tcp, health: {tcp: 100ms, timeout: 200ms}";
        let text = file(service, "tcp 0.0.0.0 80", "each www 80");
        let text = text.replacen("python3 -u serve.py tcp 0.0.0.0 80", "python3 -u full.py", 1);
        let mut live = lab.start(&text);
        wait_for(&mut live, &["s1", "s2"]);
        live.wait_for(&[("event", "service-health"), ("replica", "s1"), ("healthy", "false")]);
        wait_for_line(&live, 0, "new s2");
        stop(live).assert_code(0);
    }
}

#[test]
fn a_server_whose_datagrams_say_something_else_is_out_after_its_count_of_failures() {
    for lab in labs() {
        let answers = "import os, socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                       s.bind(('0.0.0.0', 53))\nname = os.environ['WINDTUNNEL_NODE']\n\
                       while True:\n  _, peer = s.recvfrom(99)\n  \
                       sick = os.path.exists('sick-' + name)\n  \
                       s.sendto(b'pang' if sick else b'pong', peer)\n";
        lab.write("pong.py", answers);
        let health =
            "health: {udp: ping, expect: pong, every: 50ms, timeout: 100ms, fall: 3, rise: 2}";
        let text = file(&format!("ports: 53/udp, {health}"), "udp 0.0.0.0 53", "udp www 53");
        let text = text.replace("python3 -u serve.py udp 0.0.0.0 53", "python3 -u pong.py");
        let mut live = lab.start(&text);
        wait_for_replicas(&mut live);
        lab.write("sick-s1", "");
        let fields = [("event", "service-health"), ("replica", "s1"), ("healthy", "false")];
        let out = live.wait_for(&fields);
        // The node and the run both keep the time: the first to report says why.
        let why = out["why"].as_str().unwrap_or_default();
        assert!(why.contains("without what") || why.contains("took too long"), "{out}");
        std::fs::remove_file(lab.path().join("sick-s1")).unwrap();
        live.wait_for(&[("event", "service-health"), ("replica", "s1"), ("healthy", "true")]);
        let outcome = stop(live);
        assert!(outcome.events(&[("event", "service-health"), ("replica", "s2")]).is_empty());
    }
}
