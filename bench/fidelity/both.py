"""both.py TRAFFIC STREAMS PROBE FILE: sinks of TCP streams and of datagrams in one node.

Prints `ready` when both listen.
"""

import subprocess
import sys
from pathlib import Path

here = str(Path(__file__).resolve().parent)
traffic, streams, probe, file = sys.argv[1:]
receiver = subprocess.Popen(
    [sys.executable, probe, "receive", "5005", file], stdout=subprocess.PIPE, text=True
)
sink = subprocess.Popen(
    [sys.executable, f"{here}/ready.py", traffic, "sink", "5000", streams],
    stdout=subprocess.PIPE,
    text=True,
)
receiver.stdout.readline()
sink.stdout.readline()
print("ready", flush=True)
print(sink.communicate()[0], end="")
receiver.communicate()
