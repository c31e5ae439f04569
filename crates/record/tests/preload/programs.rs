//! Whole programs: their output is the same, and what is recorded is what was transferred.

use crate::{Run, same};

/// Bytes that flows to or from a port sent and received, all together, without the port's own side.
fn of_clients(run: &Run, port: u16) -> (u64, u64) {
    let flows = run.flows();
    let sum = |reverse: bool| {
        let moved = run.moved();
        let clients = moved.iter().filter(|((flow, _), _)| flows[flow].to.1 == port);
        clients.filter(|((_, direction), _)| *direction == reverse).map(|(_, bytes)| bytes).sum()
    };
    (sum(false), sum(true))
}

fn of_servers(run: &Run, port: u16) -> (u64, u64) {
    let flows = run.flows();
    let sum = |reverse: bool| {
        let moved = run.moved();
        let servers = moved.iter().filter(|((flow, _), _)| flows[flow].from.1 == port);
        servers.filter(|((_, direction), _)| *direction == reverse).map(|(_, bytes)| bytes).sum()
    };
    (sum(false), sum(true))
}

#[test]
fn nginx_and_curl_transfer_what_the_records_say() {
    let Some(run) = same(
        "mkdir www logs; head -c 1000000 /dev/zero >www/large; echo small >www/small
cat >nginx.conf <<END
daemon off; pid $PWD/pid; error_log $PWD/logs/error; worker_processes 2; user root;
events { worker_connections 100; }
http { access_log off; client_body_temp_path $PWD/a; proxy_temp_path $PWD/b;
  fastcgi_temp_path $PWD/c; uwsgi_temp_path $PWD/d; scgi_temp_path $PWD/e; sendfile on;
  server { listen 8080; root $PWD/www; } }
END
nginx -p $PWD -c $PWD/nginx.conf 2>/dev/null &
until_it curl -s http://127.0.0.1:8080/small
for i in 1 2 3; do curl -s http://127.0.0.1:8080/large | sha256sum; done
curl -s http://127.0.0.1:8080/small http://127.0.0.1:8080/small
kill -QUIT $(cat pid); wait",
    ) else {
        return;
    };
    let (clients, servers) = (of_clients(&run, 8080), of_servers(&run, 8080));
    assert_eq!((clients.0, clients.1), (servers.1, servers.0));
    assert!(clients.1 > 3_000_000);
}

#[test]
fn redis_and_its_clients_transfer_what_the_records_say() {
    let Some(run) = same(
        "redis-server --port 7000 --save '' --appendonly no --io-threads 2 >/dev/null &
until_it redis-cli -p 7000 ping
redis-cli -p 7000 set key value
redis-cli -p 7000 get key
redis-benchmark -p 7000 -n 2000 -c 10 -t set,get -q >/dev/null
redis-cli -p 7000 dbsize
redis-cli -p 7000 shutdown nosave; wait",
    ) else {
        return;
    };
    let (clients, servers) = (of_clients(&run, 7000), of_servers(&run, 7000));
    assert_eq!((clients.0, clients.1), (servers.1, servers.0));
    assert!(clients.0 > 2 * 2000 * 30);
}

#[test]
fn asyncio_transfers_what_the_records_say() {
    let Some(run) = same(
        "cat >script.py <<'END'
import asyncio
async def serve(reader, writer):
    while data := await reader.read(10000):
        writer.write(data); await writer.drain()
    writer.close()
async def ask(number):
    reader, writer = await asyncio.open_connection('127.0.0.1', 4000)
    for size in 1, 1000, 100000:
        writer.write(b'x' * size); await writer.drain()
        assert len(await reader.readexactly(size)) == size
    writer.close(); await writer.wait_closed()
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 4000)
    await asyncio.gather(*(ask(number) for number in range(20)))
asyncio.run(main()); print('done')
END
/usr/bin/python3 script.py",
    ) else {
        return;
    };
    let bytes = 20 * 101_001;
    assert_eq!(of_clients(&run, 4000), (bytes, bytes));
    assert_eq!(of_servers(&run, 4000), (bytes, bytes));
}

#[test]
fn ssh_and_sshd_work_and_are_recorded_to_the_last_byte() {
    let Some(run) = same(
        "mkdir -p -m 755 /run/sshd 2>/dev/null
ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f key
cp key.pub authorized; chmod 600 authorized
cat >sshd.conf <<END
Port 2222
HostKey $PWD/host
PidFile $PWD/sshd.pid
AuthorizedKeysFile $PWD/authorized
StrictModes no
UsePAM no
END
/usr/sbin/sshd -f sshd.conf -E sshd.log -D &
sshd=$!
go() { ssh -F none -q -i key -p 2222 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
  -o BatchMode=yes 127.0.0.1 \"$@\"; }
until_it go true
go 'echo hello; head -c 300000 /dev/zero' | sha256sum
head -c 200000 /dev/zero | go 'wc -c'
kill $sshd; wait",
    ) else {
        return;
    };
    let (clients, servers) = (of_clients(&run, 2222), of_servers(&run, 2222));
    assert!(clients.1 >= 300_000 && clients.0 >= 200_000, "{clients:?}");
    assert_eq!((clients.0, clients.1), (servers.1, servers.0));
}
