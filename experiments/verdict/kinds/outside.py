"""The way to the machine's outside: a gateway that stands still or ends."""

import os
import signal
import socket
import threading
import time

from trial import Trial, Truth, node

BYTES = 30_000_000
FETCH = """
import socket, sys
try:
    s = socket.create_connection(("host", int(sys.argv[1])), 5)
    s.settimeout(8)
    got = 0
    while True:
        part = s.recv(1 << 16)
        if not part:
            break
        got += len(part)
    print(got)
except OSError as error:
    print(error)
"""


def fetched(chance, provoke):
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=give, args=(server,), daemon=True).start()
    text = f"""
ipv6: false
nodes:
{node("a", FETCH, server.getsockname()[1])}  internet: {{}}
links: [{{between: [a, internet], latency: 10ms, rate: 100mbit}}]
"""
    with Trial(text, "--allow-host") as trial:
        trial.wait_for_begin()
        time.sleep(chance.uniform(0.2, 1.5))
        provoke(trial)
        report = trial.finish()
        server.close()
        seen = trial.output("a").strip()
        return report, Truth(None if seen == str(BYTES) else True, f"fetched {seen} of {BYTES}")


def give(server):
    try:
        connection, _ = server.accept()
        with connection:
            connection.sendall(bytes(BYTES))
    except OSError:
        pass


def gateway_killed(chance):
    """The gateway's process is killed under a transfer: its connections end, which no link has asked for."""

    def kill(trial):
        for child in trial.children("wt-gateway"):
            os.kill(child, signal.SIGKILL)

    return fetched(chance, kill)


def gateway_stopped(chance):
    """It is stopped for a while under a transfer."""
    return fetched(chance, lambda trial: trial.stop_for(trial.children("wt-gateway"), chance.uniform(0.05, 1)))


def gateway_left_alone(chance):
    """Nothing happens to it."""
    return fetched(chance, lambda _trial: None)


KINDS = [gateway_left_alone, gateway_stopped, gateway_killed]
