"""What a type checker makes of programs that use the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

RIGHT = """
import windtunnel

net = windtunnel.Network("x", duration="5s")
web = net.node("web", run="true", cpu="25%", env={"A": 1}, ready={"tcp": 80, "timeout": "5s"})
ocean = net.link(web, "r", latency="1ms", jitter={"spread": "1ms", "distribution": "normal"})
net.event("1s", flap={"link": ocean, "every": "1s", "down": "100ms"}, for_="3s")


async def main() -> None:
    async with net.run_async(seed=1) as run:
        done = await run[web].exec.aio("true", check=True)
        reveal_type(done.stdout)
        reveal_type(run[web])
        reveal_type(run[ocean].set)
        reveal_type(run.links_frame("polars"))
        async for event in run.events():
            reveal_type(event.at)


with net.run(seed=1) as live:
    live[ocean].set(latency="2ms", direction="up")
    reveal_type(live.ps()["nodes"][0]["node"])
    reveal_type(live.verdict.passed)
"""

WRONG = """
import windtunnel

net = windtunnel.Network("x", dration="5s")
web = net.node("web", cpus="25%")
net.link(web, "r", latency=5)
net.link(web, "r", jitter={"spred": "1ms"})
with net.run(sed=1) as run:
    run[web].exec("true", chek=True)
    run[web].set(latency="5ms")
windtunnel.Netwrok
"""


def mypy(folder: Path, text: str) -> list[str]:
    file = folder / "user.py"
    file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(file)],
        cwd=folder,
        env={"MYPYPATH": str(ROOT / "python/src"), "PATH": "", "MYPY_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
    )
    assert not done.stderr
    return [it for it in done.stdout.splitlines() if it.startswith("user.py")]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("types")


def test_types_of_a_right_program_are_exact(cache: Path):
    notes = mypy(cache, RIGHT)
    assert [it.split(": ", 2)[1] for it in notes] == ["note"] * 7, notes
    types = [it.split('"')[1] for it in notes]
    for found, wanted in zip(
        types,
        [
            "str",
            "windtunnel.node.Node",
            "windtunnel.aio.Call[",
            "polars.dataframe.frame.DataFrame",
            "float",
            "str",
            "bool",
        ],
    ):
        assert wanted in found, (found, wanted)


def test_wrong_words_are_found_without_running(cache: Path):
    lines = [int(it.split(":")[1]) for it in mypy(cache, WRONG)]
    assert sorted(set(lines)) == [4, 5, 6, 7, 8, 9, 10, 11]
