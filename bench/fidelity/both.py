"""both.py TRAFFIC STREAMS PROBE FILE: a sink of TCP streams and a hearer of datagrams in one node.

Says `ready` when both listen.
"""

import subprocess
import sys
from pathlib import Path

here = str(Path(__file__).resolve().parent)
traffic, streams, probe, file = sys.argv[1:]
hearer = subprocess.Popen(
    [sys.executable, probe, "hear", "5005", file], stdout=subprocess.PIPE, text=True
)
sink = subprocess.Popen(
    [sys.executable, f"{here}/ready.py", traffic, "sink", "5000", streams],
    stdout=subprocess.PIPE,
    text=True,
)
hearer.stdout.readline()
sink.stdout.readline()
print("ready", flush=True)
print(sink.communicate()[0], end="")
hearer.communicate()
