#!/usr/bin/env python3
"""Whether a wheel works where nothing else is: a new environment, nothing set, no PATH.

    tools/wheel.py WHEEL

Installs it into a virtual environment, and has that environment's Python run a network.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

CODE = """
import windtunnel
from windtunnel import program

assert program.path().startswith({place!r}), program.path()
net = windtunnel.Network("wheel")
net.node("a")
net.node("b")
net.link("a", "b", name="ocean", latency="10ms")
with net.run(out="run", max_lateness="1s") as run:
    run["ocean"].set(latency="20ms")
    print(run["a"].exec(["/bin/sh", "-c", "echo $WINDTUNNEL_NODE"], check=True).stdout, end="")
print(run.verdict)
assert run.verdict.passed
"""


def main(wheel: str) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "-py3-none-" in wheel, f"{wheel} is for one Python only"
    for wanted in ("windtunnel/__init__.py", "windtunnel/py.typed", "/scripts/windtunnel"):
        assert any(it.endswith(wanted) for it in names), f"{wheel} lacks {wanted}"
    with tempfile.TemporaryDirectory(prefix="windtunnel-wheel-") as folder:
        place = Path(folder, "environment")
        venv.create(place, with_pip=True)
        python = str(place / "bin/python")
        words = [python, "-m", "pip", "install", "--quiet", "--no-index", os.path.abspath(wheel)]
        subprocess.run(words, check=True)
        code = CODE.format(place=str(place))
        subprocess.run([python, "-c", code], cwd=folder, env={"HOME": folder}, check=True)


if __name__ == "__main__":
    main(sys.argv[1])
