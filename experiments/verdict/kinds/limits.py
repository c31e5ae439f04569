"""Limits that hold nothing, seen in /proc and by what a program achieved."""

import os
import socket
import subprocess
import sys
import threading

from trial import Trial, Truth, node

LINK = """
links: [{between: [a, b], latency: 1ms}]
"""
# Computes for so many seconds, and says what processor time it had of them.
COMPUTE = """
import sys, time
%s
begin, used = time.monotonic(), time.process_time()
while time.monotonic() - begin < float(sys.argv[1]):
    pass
print((time.process_time() - used) / (time.monotonic() - begin))
"""
LEAVE = """
import os
# Back to the root of every hierarchy, as root of the machine may.
for line in open("/proc/self/cgroup"):
    number, controllers, path = line.strip().split(":", 2)
    root = "/sys/fs/cgroup" + ("/" + controllers.removeprefix("name=") if controllers else "")
    try:
        open(os.path.join(root, "cgroup.procs"), "w").write(str(os.getpid()))
    except OSError:
        pass
"""


def share(trial, asked, report):
    try:
        had = float(trial.output("a").split()[-1])
    except (OSError, IndexError, ValueError):
        return report, Truth(None, "the program said nothing")
    broken = True if had > 1.5 * asked + 0.03 else False if had <= 1.05 * asked else None
    return report, Truth(broken, f"{had:.1%} of a processor, asked {asked:.0%}")


def scenario(keys, code, *words):
    return f"ipv6: false\nnodes:\n{node('a', code, *words, keys=keys)}  b: {{}}\n{LINK}"


def cpu_held(chance):
    """A program computes under a limit."""
    asked = chance.choice([0.1, 0.2, 0.5])
    with Trial(scenario(f"cpu: {asked:.0%}", COMPUTE % "", 3)) as trial:
        return share(trial, asked, trial.finish())


def cpu_left(chance):
    """The program leaves its control group before it computes."""
    asked = chance.choice([0.1, 0.2])
    with Trial(scenario(f"cpu: {asked:.0%}", COMPUTE % LEAVE, 3)) as trial:
        return share(trial, asked, trial.finish())


def cpu_left_by_a_child(_chance):
    """A grandchild of the program does, in a session of its own."""
    asked = 0.1
    code = "import subprocess, sys\ncode = sys.argv[2]\n" \
        "subprocess.run([sys.executable, '-c', code, sys.argv[1]], start_new_session=True)\n"
    with Trial(scenario(f"cpu: {asked:.0%}", code, 3, COMPUTE % LEAVE)) as trial:
        return share(trial, asked, trial.finish())


MEMORY = """
import os, time
%s
held = bytearray(%d << 20)
for page in range(0, len(held), 4096):
    held[page] = 1
time.sleep(1.5)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmRSS"].split()[0]) << 10)
"""


def memory(leave):
    with Trial(scenario("memory: 50MB", MEMORY % (leave, 150))) as trial:
        report = trial.finish()
        try:
            had = int(trial.output("a").split()[-1])
        except (OSError, IndexError, ValueError):
            return report, Truth(None, "the program was ended")
        return report, Truth(had > 75e6, f"{had / 1e6:.0f} MB of 50")


def memory_left(_chance):
    """The program leaves its group, and takes three times its memory."""
    return memory(LEAVE)


def memory_held(_chance):
    """The program takes three times its memory: it is ended for it, or swaps."""
    return memory("")


PROCESSES = """
import os, time
%s
children = []
for _ in range(200):
    try:
        child = os.fork()
    except OSError:
        break
    if child == 0:
        time.sleep(1.5)
        os._exit(0)
    children.append(child)
print(len(children) + 1, flush=True)
for child in children:
    os.waitpid(child, 0)
"""


def pids_left(_chance):
    """The program leaves its group, and makes 200 processes."""
    with Trial(scenario("pids: 5", PROCESSES % LEAVE)) as trial:
        report = trial.finish()
        try:
            had = int(trial.output("a").split()[-1])
        except (OSError, IndexError, ValueError):
            return report, Truth(None, "the program was ended")
        return report, Truth(had > 7, f"{had} processes of 5")


# A child does something for so long outside its group, and has ended before anything looks at processes again.
BRIEFLY = """
import subprocess, sys, time
time.sleep(float(sys.argv[1]))
subprocess.run([sys.executable, "-c", sys.argv[2], *sys.argv[3:]])
time.sleep(1.2)
"""


def briefly(chance, keys, code, *words):
    return Trial(scenario(keys, BRIEFLY, chance.choice([0, 0.3, 1.1]), code, *words))


def cpu_left_briefly(chance):
    """A child leaves, computes for a quarter of a second, and ends."""
    with briefly(chance, "cpu: 20%", COMPUTE % LEAVE, 0.25) as trial:
        return share(trial, 0.2, trial.finish())


def memory_left_briefly(chance):
    """A child leaves, takes three times the memory, and ends."""
    code = MEMORY.replace("sleep(1.5)", "sleep(0.05)") % (LEAVE, 150)
    with briefly(chance, "memory: 50MB", code) as trial:
        report = trial.finish()
        try:
            had = int(trial.output("a").split()[-1])
        except (OSError, IndexError, ValueError):
            return report, Truth(None, "the program was ended")
        return report, Truth(had > 75e6, f"{had / 1e6:.0f} MB of 50")


def pids_left_briefly(chance):
    """A child leaves, makes 200 processes, and all end."""
    with briefly(chance, "pids: 5", PROCESSES.replace("sleep(1.5)", "sleep(0.2)") % LEAVE) as trial:
        report = trial.finish()
        try:
            had = int(trial.output("a").split()[-1])
        except (OSError, IndexError, ValueError):
            return report, Truth(None, "the program was ended")
        return report, Truth(had > 7, f"{had} processes of 5")


def held_briefly(chance):
    """Nothing leaves: hundreds of processes that end at once, some of which are not waited for."""
    code = "import os, subprocess, time\n" \
        "until = time.monotonic() + 3\n" \
        "while time.monotonic() < until:\n" \
        "    subprocess.run(['sh', '-c', '/bin/true; /bin/true & :'])\n"
    keys = chance.choice(["memory: 300MB", "pids: 60", "cpu: 30%", "cpu: 50%\nmemory: 300MB\npids: 60"])
    with Trial(scenario(keys, code)) as trial:
        report = trial.finish()
        return report, Truth(False, f"nothing left its group ({keys!r})")


SENDS = """
import os, socket, subprocess, sys, threading, time
code = '''
import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
begin, sent, piece = time.monotonic(), 0, bytes(16384)
while time.monotonic() - begin < 2:
    sent += s.send(piece)
print(sent / (time.monotonic() - begin), flush=True)
'''
environment = %s
sys.exit(subprocess.run([sys.executable, "-c", code, sys.argv[1]], env=environment).returncode)
"""
ASKED = 100_000


def sent(environment):
    """What a command could send to a server on loopback under `windtunnel limit`, and whether that said `NOT LIMITED`."""
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=take, args=(server,), daemon=True).start()
    command = [os.environ["WINDTUNNEL"], "limit", "--send", "100KB/s", "--", sys.executable, "-c", SENDS % environment,
               str(server.getsockname()[1])]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    server.close()
    try:
        had = float(done.stdout.split()[-1])
    except (IndexError, ValueError):
        return None, Truth(None, f"the program said nothing: {done.stderr.strip()}")
    # As a report: `limit` has none of its own.
    held = "NOT LIMITED" not in done.stderr
    report = {"verdict": {"faithful": held, "exit_code": 0, "text": done.stderr.strip(), "warnings": []}}
    # What 5 ms and one piece bring at once is in the promise.
    return report, Truth(True if had > 2 * ASKED else False, f"{had / 1e3:.0f} KB/s of {ASKED / 1e3:.0f}")


def take(server):
    try:
        connection, _ = server.accept()
        while connection.recv(1 << 20):
            pass
    except OSError:
        pass


def sent_plainly(_chance):
    """A child of the limited command sends."""
    return sent("None")


def sent_without_environment(_chance):
    """A child with an empty environment does."""
    return sent("{}")


def sent_with_another_library(_chance):
    """A child with another LD_PRELOAD does."""
    return sent("{**os.environ, 'LD_PRELOAD': 'libm.so.6'}")


def sent_with_no_library(_chance):
    """A child with an empty LD_PRELOAD does."""
    return sent("{**os.environ, 'LD_PRELOAD': ''}")


KINDS = [cpu_held, cpu_left, cpu_left_by_a_child, memory_held, memory_left, pids_left, cpu_left_briefly,
         memory_left_briefly, pids_left_briefly, held_briefly, sent_plainly, sent_without_environment, sent_with_another_library, sent_with_no_library]
