//! A database with a primary and a backup behind one address: redis, whose backup follows.

use super::*;

const SERVER: &str = "redis-server --save '' --appendonly no --bind 0.0.0.0 --protected-mode no \
                      --repl-diskless-sync-delay 0";
/// Writes numbers one after the other, each by a new connection, and prints those that the backup has
/// confirmed as well (WAIT).
const CLIENT: &str = "
import itertools, socket

def ask(connection, text):
    connection.sendall((text + '\\r\\n').encode())
    reply = connection.makefile('rb').readline()
    if reply[:1] != b':':
        raise OSError(reply.decode().strip() or 'closed')
    return int(reply[1:])

for number in itertools.count():
    try:
        with socket.create_connection(('db', 6379), timeout=2) as it:
            ask(it, f'RPUSH log {number}')
            try:
                confirmed = ask(it, 'WAIT 1 200')
            except OSError:
                confirmed = 0
            print('written' if confirmed else 'alone', number, flush=True)
    except OSError as error:
        print('failed', error, flush=True)
";

/// In this order, however near they are: the client is at the backup's side.
fn file() -> String {
    format!(
        "
ipv6: false
services: {{db: {{ports: 6379/tcp, replicas: [primary, backup], policy: ordered, on-loss: reset}}}}
routers: [r, q]
nodes:
  primary: {{run: \"{SERVER}\", daemon: true, ready: tcp:6379}}
  backup: {{run: \"{SERVER} --replicaof primary 6379\", daemon: true, ready: tcp:6379, after: primary}}
  c: {{run: python3 client.py, daemon: true, after: backup}}
links:
  - {{between: [primary, r], latency: 2ms}}
  - {{between: [backup, q], latency: 1ms}}
  - {{between: [c, q], latency: 1ms}}
  - {{between: [r, q], latency: 5ms}}
duration: 100s
"
    )
}

fn redis(live: &Live<'_>, words: &[&str]) -> String {
    let seen = live.exec("backup", &[&["redis-cli"], words].concat());
    good(&seen);
    String::from_utf8(seen.stdout).unwrap()
}

#[test]
fn what_was_written_before_the_primary_died_is_in_the_backup_that_takes_over() {
    if is_missing(&["redis-server", "redis-cli", "python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("client.py", CLIENT);
        let mut live = lab.start(&file());
        wait_for(&mut live, &["primary", "backup"]);
        let known = wait_for_line(&live, 0, "written 3");
        happen(&live, "{node: primary, do: kill}");
        // It takes no writes before it is made the primary.
        let known = wait_for_line(&live, known, "failed -READONLY");
        assert_eq!(redis(&live, &["replicaof", "no", "one"]), "OK\n");
        wait_for_line(&live, known, "alone");
        let kept = redis(&live, &["lrange", "log", "0", "-1"]);
        let kept: Vec<&str> = kept.lines().collect();
        let written = lines(&live);
        let written = written.iter().filter_map(|line| line.strip_prefix("written "));
        for number in written {
            assert!(kept.contains(&number), "{number} is lost: {kept:?}");
        }
        let outcome = stop(live);
        outcome.assert_conserved();
        let db = &outcome.report()["services"][0];
        let connections = |at: usize| db["replicas"][at]["connections"].as_u64().unwrap();
        assert!(connections(0) >= 4 && connections(1) >= 2, "{db}");
    }
}
