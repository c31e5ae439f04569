"""Replicas that die or hang under connections that have to survive it: each byte is compared by client and server."""

from trial import Trial, Truth, node

BYTES = 4_000_000
CONTENT = """
import hashlib, socket, sys, threading, time
def content(size):
    blocks = (hashlib.sha256(str(n).encode()).digest() for n in range(size // 32 + 1))
    return b"".join(blocks)[:size]
def received(connection, size):
    got = b""
    while len(got) < size:
        part = connection.recv(1 << 16)
        if not part:
            break
        got += part
    return got
"""
SERVER = CONTENT + """
def serve(connection):
    try:
        with connection:
            if connection.recv(1) == b"d":
                connection.sendall(content(%(bytes)d))
            else:
                got = received(connection, %(bytes)d)
                connection.sendall(b"same" if got == content(%(bytes)d) else b"differ")
    except OSError:
        pass
listener = socket.create_server(("", 80), backlog=100)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
""" % {"bytes": BYTES}
CLIENT = CONTENT + """
connection = socket.create_connection(("www", 80))
connection.settimeout(20)
begun = open(sys.argv[2], "w")
try:
    if sys.argv[1] == "down":
        connection.sendall(b"d")
        got = received(connection, %(bytes)d)
        print("same" if got == content(%(bytes)d) else f"differ: {len(got)} bytes")
    else:
        connection.sendall(b"u" + content(%(bytes)d))
        print(connection.recv(100).decode())
except OSError as error:
    print(f"lost: {error}")
""" % {"bytes": BYTES}


def transfer(chance, way, event):
    """A transfer of 4 MB at 20 Mbit/s, and something that happens to one of two replicas at a random time in it."""
    victim = chance.choice(["near", "far"])
    at = chance.randrange(300, 1800)
    keys = "daemon: true\nready: tcp:80"
    text = f"""
ipv6: false
duration: 30s
services:
  www: {{ports: 80/tcp, replicas: [near, far], fail-over: transparent}}
nodes:
{node("near", SERVER, keys=keys)}{node("far", SERVER, keys=keys)}{node("client", CLIENT, way, "FOLDER/begun", keys="after: [near, far]")}
routers: [r]
links:
  - {{between: [client, r], latency: 5ms, rate: 20mbit}}
  - {{between: [near, r], latency: 1ms}}
  - {{between: [far, r], latency: 10ms}}
events:
  - {{at: {at}ms, node: {victim}, do: {event}}}
expect:
  - {{node: client, exit: 0}}
"""
    with Trial(text) as trial:
        report = trial.finish()
        seen = trial.output("client").strip()
        # The run's own promise: a live server is never given up. It is judged as wrong where a client missed bytes.
        if seen == "same":
            return report, Truth(False, f"{way}, {event} of {victim} at {at} ms: {seen}")
        if report is not None:
            report["verdict"]["faithful"] = True
            report["verdict"]["exit_code"] = 0
        return report, Truth(True, f"{way}, {event} of {victim} at {at} ms: {seen or 'not finished'}")


def download_and_a_death(chance):
    """A replica is killed under a download."""
    return transfer(chance, "down", "kill")


def upload_and_a_death(chance):
    """A replica is killed under an upload."""
    return transfer(chance, "up", "kill")


def download_and_a_pause(chance):
    """A replica hangs under a download."""
    return transfer(chance, "down", "pause")


def upload_and_a_pause(chance):
    """A replica hangs under an upload."""
    return transfer(chance, "up", "pause")


KINDS = [download_and_a_death, upload_and_a_death, download_and_a_pause, upload_and_a_pause]
