"""What the tests share: the program, networks, and whether this machine allows runs.

The program is that of WINDTUNNEL, else that of this repository's target folder.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

import windtunnel

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "python/src"


def pytest_configure(config: pytest.Config) -> None:
    if "WINDTUNNEL" not in os.environ:
        for kind in ("release", "debug"):
            program = ROOT / "target" / kind / "windtunnel"
            if program.exists():
                os.environ["WINDTUNNEL"] = str(program)
                break
    # Options of the program must be those that tests give.
    for key in [it for it in os.environ if it.startswith("WINDTUNNEL_")]:
        del os.environ[key]


def missing(what: str, hint: str) -> None:
    """Skips the test; with CI set, fails it."""
    text = f"{what}\nhint: {hint}"
    if os.environ.get("CI"):
        pytest.fail(text, pytrace=False)
    pytest.skip(text)


@pytest.fixture(scope="session")
def _denied() -> list[str]:
    try:
        found = windtunnel.doctor()
    except windtunnel.ProgramNotFound as error:
        return [str(error)]
    checks = [it for it in found["checks"] if not it["ok"]]
    return [] if found["ok"] else [f"{it['name']} {it['detail']}" for it in checks]


@pytest.fixture(scope="session")
def namespaces(_denied: list[str]) -> None:
    """For tests that need runs."""
    if _denied:
        missing(f"this machine allows no runs: {'; '.join(_denied)}", "see `windtunnel doctor`")


@pytest.fixture
def two() -> windtunnel.Network:
    """Two nodes, one of which serves HTTP, and a link `ocean`."""
    net = windtunnel.Network("two", duration="30s")
    net.node("paris")
    serve = f"{sys.executable} -m http.server --bind :: 80"
    net.node("tokyo", run=serve, daemon=True, ready="tcp:80")
    net.link("paris", "tokyo", name="ocean", latency="10ms", rate="20mbit")
    return net


@pytest.fixture
def plugin(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project whose pytest has the plugin by its entry point, as after an installation."""
    installed = pytester.mkdir("site") / "windtunnel-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: windtunnel\nVersion: 0.1.0\n")
    entry = "[pytest11]\nwindtunnel = windtunnel.pytest_plugin\n"
    (installed / "entry_points.txt").write_text(entry)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCE), str(installed.parent)]))
    return pytester


@pytest.fixture
def has_ping() -> None:
    if shutil.which("ping") is None:
        missing("ping is not installed", "apt install iputils-ping")
