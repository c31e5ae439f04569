//! A name server behind one address: dnsmasq on three nodes, asked by busybox.

use super::*;

/// The last number of its answer is that of its node.
const SERVER: &str = "\
exec dnsmasq --keep-in-foreground --conf-file=/dev/null --no-hosts --no-resolv --user=root --pid-file= \
  --address=/who.example/192.0.2.${WINDTUNNEL_NODE#s}
";
/// Each query is from another port, so that it is a flow of its own.
const CLIENT: &str = "\
while ! test -e go; do sleep 0.01; done
while :; do
  busybox nslookup -type=a who.example 10.1.0.53 2>&1 | sed -n 's/^Address: 192.0.2./new s/p; s/^;;/failed:/p'
  sleep 0.03
done
";

#[test]
fn queries_go_to_the_nearest_name_server_and_to_the_next_one_when_it_dies() {
    if is_missing(&["dnsmasq", "busybox"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("server.sh", SERVER);
        lab.write("client.sh", CLIENT);
        let service = "ports: [53/udp, 53/tcp], address: 10.1.0.53, replicas: [s1, s2, s3]";
        let regions = REGIONS.replace("$SERVER", "sh server.sh").replace("$CLIENT", "sh client.sh");
        let mut live =
            lab.start(&format!("ipv6: false\nservices: {{dns: {{{service}}}}}{regions}"));
        for (replica, port) in
            ["s1", "s2", "s3"].into_iter().flat_map(|it| [(it, "53/udp"), (it, "53/tcp")])
        {
            let registered =
                [("event", "service-registered"), ("replica", replica), ("port", port)];
            live.wait_for(&registered);
        }
        std::fs::write(live.folder().with_file_name("go"), "").unwrap();
        let known = wait_for_line(&live, 0, "new s1");
        happen(&live, "{node: s1, do: kill}");
        let known = wait_for_line(&live, known, "new s2");
        happen(&live, "{node: s1, do: restart}");
        wait_for_line(&live, known, "new s1");
        let outcome = stop(live);
        outcome.assert_conserved();
        let dns = &outcome.report()["services"][0];
        let flows = |at: usize| dns["replicas"][at]["flows"].as_u64().unwrap();
        let answers = outcome.output("c");
        let answers =
            |begin: &str| answers.lines().filter(|it| it.starts_with(begin)).count() as u64;
        // A query that its server did not live to answer, or whose client was ended, has a flow, too.
        assert!(flows(0) >= answers("new s1") && flows(1) >= answers("new s2"), "{dns}");
        assert_eq!((flows(2), answers("new s3")), (0, 0), "{dns}");
    }
}
