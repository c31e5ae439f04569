"""What the file plans happens late, and something else than windtunnel's own record says when."""

import sys
import time

from trial import Trial, Truth, node

# Writes its time (CLOCK_REALTIME) twice a millisecond until it ends.
TICKS = """
import sys, time
out = open(sys.argv[1], "wb", buffering=0)
while True:
    out.write(b"%020d\\n" % time.time_ns())
    time.sleep(0.0005)
"""
# The begin of the run, by a program that is started at 0: what it takes to start makes all else look early, never late.
BEGIN = "sh -c 'date +%s%N >FOLDER/begin'"
BOUND_MS = 1.0


def lasted(trial, name, planned_ms):
    """How long after the begin the last tick was written, beside what was planned."""
    begin = int((trial.folder / "begin").read_text())
    last = int((trial.folder / name).read_bytes()[-21:-1])
    return (last - begin) / 1e6 - planned_ms


def judged(report, late_ms, slack_ms):
    if late_ms > BOUND_MS + slack_ms:
        return report, Truth(True, f"{late_ms:.1f} ms late")
    return report, Truth(None, f"{late_ms:.1f} ms late")


def scenario(at_ms, event, more=""):
    return f"""
ipv6: false
duration: {at_ms + 700}ms
allow-unreachable: true
nodes:
  begin: {{run: "{BEGIN}"}}
{node("a", TICKS, "FOLDER/a")}{more}
links: [{{between: [a, begin], latency: 1ms}}]
events:
  - {{at: {at_ms}ms, {event}}}
"""


def kill_while_stopped(chance):
    """A planned kill falls into a time in which the run's process is stopped."""
    at = chance.randrange(400, 900)
    with Trial(scenario(at, "node: a, do: kill")) as trial:
        trial.wait_for_begin()
        time.sleep(at / 1000 - 0.05)
        trial.stop_for([trial.process.pid], chance.uniform(0.1, 0.8))
        return judged(trial.finish(), lasted(trial, "a", at), 20)


def main_thread_stopped(chance):
    """The same, but packets go on: only the thread that does events is stopped, by a tracer."""
    at = chance.randrange(400, 900)
    with Trial(scenario(at, "node: a, do: kill")) as trial:
        trial.wait_for_begin()
        time.sleep(at / 1000 - 0.2)
        trial.beside([sys.executable, "-c", HOLD, str(trial.process.pid), str(chance.uniform(0.3, 0.8))])
        report = trial.finish()
        return judged(report, lasted(trial, "a", at), 20)


# Stops one thread by ptrace, and lets it go on after a while.
HOLD = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
thread, seconds = int(sys.argv[1]), float(sys.argv[2])
SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
libc.ptrace(SEIZE, thread, None, None)
libc.ptrace(INTERRUPT, thread, None, None)
os.waitpid(thread, WALL)
time.sleep(seconds)
libc.ptrace(DETACH, thread, None, None)
"""


def init_stopped(chance):
    """The init of the node is stopped when its program is to be killed."""
    at = chance.randrange(400, 900)
    with Trial(scenario(at, "node: a, do: kill")) as trial:
        trial.wait_for_begin()
        time.sleep(at / 1000 - 0.05)
        trial.stop_for(trial.children("wt:a"), chance.uniform(0.1, 0.4))
        return judged(trial.finish(), lasted(trial, "a", at), 20)


def start_late(chance):
    """A program whose start is planned, while the run's process is stopped."""
    at = chance.randrange(300, 800)
    more = f"""  late:
    start: {at}ms
    run: "sh -c 'date +%s%N >FOLDER/late'"
"""
    text = scenario(5000, "node: a, do: kill", more).replace("duration: 5700ms", f"duration: {at + 900}ms")
    text = text.replace("links: [", "links: [{between: [late, begin], latency: 1ms}, ").replace("at: 5000ms", f"at: {at + 800}ms")
    with Trial(text) as trial:
        trial.wait_for_begin()
        time.sleep(at / 1000 - 0.05)
        trial.stop_for([trial.process.pid], chance.uniform(0.2, 0.7))
        report = trial.finish()
        late = int((trial.folder / "late").read_text()) - int((trial.folder / "begin").read_text())
        return judged(report, late / 1e6 - at, 20)


def change_late(chance):
    """A link gets another latency; echo requests at a fixed pace see when."""
    at = chance.randrange(500, 900)
    text = f"""
ipv6: false
allow-unreachable: true
nodes:
  begin: {{run: "{BEGIN}"}}
{node("b", ECHO, keys="daemon: true" + chr(10) + "ready: log:ready")}{node("a", ASK, "FOLDER/seen", keys="after: [b]")}
links:
  - {{between: [a, b], latency: 1ms, name: changed}}
  - {{between: [begin, b], latency: 1ms}}
events:
  - {{at: {at}ms, link: changed, set: {{latency: 30ms}}}}
"""
    with Trial(text) as trial:
        trial.wait_for_begin()
        time.sleep(at / 1000 - 0.2)
        trial.beside([sys.executable, "-c", HOLD, str(trial.process.pid), str(chance.uniform(0.3, 0.7))])
        report = trial.finish()
        begin = int((trial.folder / "begin").read_text())
        # The first request that was sent after the change, and the last before: both by their round trips.
        rows = [tuple(map(int, line.split())) for line in (trial.folder / "seen").read_text().splitlines()]
        last_short = max((sent for sent, came in rows if came - sent < 20_000_000), default=begin)
        return judged(report, (last_short - begin) / 1e6 - at, 20)


ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 9))
print("ready", flush=True)
while True:
    data, peer = s.recvfrom(100)
    s.sendto(data, peer)
"""
ASK = """
import socket, sys, threading, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("b", 9))
s.settimeout(0.5)
rows = []
def answers():
    while True:
        try:
            sent = int(s.recv(100))
        except OSError:
            return
        rows.append((sent, time.time_ns()))
thread = threading.Thread(target=answers)
thread.start()
end = time.monotonic() + 1.8
while time.monotonic() < end:
    s.send(str(time.time_ns()).encode())
    time.sleep(0.002)
thread.join()
open(sys.argv[1], "w").writelines(f"{sent} {came}\\n" for sent, came in rows)
"""


def group_killed(_chance):
    """Forty nodes are killed at one time: from the first death to the last."""
    count = 40
    members = "".join(node(f"m{n}", TICKS, f"FOLDER/m{n}") for n in range(count))
    names = ", ".join(f"m{n}" for n in range(count))
    text = f"""
ipv6: false
duration: 2500ms
lans: [lan]
allow-unreachable: true
nodes:
  begin: {{run: "{BEGIN}"}}
{members.replace("time.sleep(0.0005)", "time.sleep(0.005)")}
links:
  - {{between: [begin, lan]}}
{"".join(f"  - {{between: [m{n}, lan]}}{chr(10)}" for n in range(count))}
events:
  - {{at: 1800ms, node: [{names}], do: kill}}
"""
    with Trial(text) as trial:
        report = trial.finish()
        deaths = [lasted(trial, f"m{n}", 1800) for n in range(count)]
        # They write every 5 ms.
        return judged(report, max(deaths) - min(deaths), 10)


KINDS = [kill_while_stopped, main_thread_stopped, init_stopped, start_late, change_late, group_killed]
