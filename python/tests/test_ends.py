"""How runs begin and end, and what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from conftest import SOURCE

import windtunnel
from windtunnel import control

pytestmark = pytest.mark.usefixtures("namespaces")


def one(run: object = None, **properties: object) -> windtunnel.Network:
    net = windtunnel.Network("one", duration="60s")
    net.node("a", run=run, **properties)  # type: ignore[arg-type]
    return net


def test_a_run_ends_with_its_block(two: windtunnel.Network, tmp_path: Path):
    with two.run(seed=7, out=tmp_path / "run", max_lateness="1s") as run:
        assert run.is_live
    assert not run.is_live
    assert run.report["seed"] == 7 and run.report["name"] == "two"
    assert run.verdict and run.verdict.passed and run.verdict.text.startswith("FAITHFUL, PASSED")
    with pytest.raises(windtunnel.NoRun):
        run.ps()
    assert windtunnel.open(run.folder).verdict.text == run.verdict.text


def test_an_exception_ends_the_run_and_is_not_replaced(two: windtunnel.Network, tmp_path: Path):
    two.expect(node="tokyo", log="never")
    with pytest.raises(ZeroDivisionError), two.run(out=tmp_path / "run", check=True) as run:
        _ = 1 / 0
    assert not control.is_live(run.folder)
    assert (tmp_path / "run/run.json").exists()


def test_a_run_that_ends_by_itself_is_waited_for(tmp_path: Path):
    net = one([sys.executable, "-c", "import time; time.sleep(0.2)"])
    with net.run(out=tmp_path / "run", max_lateness="1s") as run:
        with pytest.raises(windtunnel.TimeoutExpired, match="goes on after"):
            run.wait(timeout=0.01)
        assert run.wait().passed
    assert run.report["ended"] == "every program has exited"


def test_a_run_that_is_shorter_than_its_start_is_over(tmp_path: Path):
    with one("true").run(out=tmp_path / "run") as run:
        assert run.wait().passed
    assert [it["exit"] for it in run.table("programs")] == [0]


def test_a_run_without_a_folder_makes_one_with_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with one("true").run() as first, one("true").run() as second:
        first.wait()
        second.wait()
    assert first.folder != second.folder
    assert Path("runs/latest").resolve() == Path(second.folder)
    bad = one(cwd="a", ready="tcp:x")
    with pytest.raises(windtunnel.ScenarioError):
        bad.run()
    assert len(os.listdir("runs")) == 3


def test_what_failed_is_an_exception_of_its_kind(tmp_path: Path):
    failing = one(["sh", "-c", "exit 3"])
    with failing.run(out=tmp_path / "program", check=False) as run:
        run.wait()
    with pytest.raises(windtunnel.ProgramFailed, match="exited with 3") as caught:
        run.check()
    assert caught.value.folder == run.folder
    expecting = one("echo hello")
    expecting.expect(node="a", log="goodbye")
    for check in (None, True):
        with pytest.raises(windtunnel.ExpectationFailed, match="goodbye") as failed:
            with expecting.run(out=tmp_path / f"expectation-{check}", check=check) as run:
                run.wait()
        assert isinstance(failed.value, windtunnel.RunError)
        assert failed.value.reasons


def test_a_run_that_was_late_is_not_to_be_believed(two: windtunnel.Network, tmp_path: Path):
    """With a bound of a nanosecond, every packet is late."""
    with pytest.warns(windtunnel.NotFaithfulWarning, match="NOT FAITHFUL"):
        with two.run(out=tmp_path / "late", max_lateness="1ns") as run:
            run["paris"].exec("ping -c 1 tokyo", check=True)
    assert not run.verdict and run.verdict.disturbed
    with pytest.raises(windtunnel.NotFaithful, match="left more than 1ns late") as caught:
        run.check()
    assert caught.value.disturbed
    with pytest.raises(windtunnel.NotFaithful), warnings.catch_warnings():
        warnings.simplefilter("error")
        with two.run(out=tmp_path / "again", max_lateness="1ns", check=True) as run:
            run["paris"].exec("ping -c 1 tokyo", check=True)


def test_a_folder_in_use_is_refused(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(windtunnel.WindtunnelError, match="is not empty") as caught:
        one("true").run(out=tmp_path)
    assert caught.value.hint is not None


SCRIPT = """
import signal, sys, windtunnel
# A shell has its background jobs ignore the first one.
signal.signal(signal.SIGINT, signal.default_int_handler)
net = windtunnel.Network("left")
net.node("a", run="sleep 600")
with net.run(out=sys.argv[1]) as run:
    print(run._child.pid, flush=True)
    run.wait()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_process_that_is_ended(number: signal.Signals, tmp_path: Path):
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "run")],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    pid = int(child.stdout.readline())
    run = control.Connection(tmp_path / "run")
    ended = os.pidfd_open(pid)
    child.send_signal(number)
    child.communicate()
    # The connection lives as long as the run, and the process a little longer.
    run.until_closed()
    from windtunnel.watch import until_ready

    assert until_ready(ended) == [ended]
    os.close(ended)
    assert (tmp_path / "run/run.json").exists()


def test_a_run_can_show_what_happens(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    with one("echo hello").run(out=tmp_path / "run", show=True) as run:
        run.wait()
    shown = capfd.readouterr().err
    assert "the run begins" in shown
    assert "a | hello" in shown


def test_stop_need_not_wait(tmp_path: Path):
    with one("sleep 600").run(out=tmp_path / "run") as run:
        run.stop(wait=False)
        assert run.wait() is not None


def test_an_attached_run_goes_on_and_can_be_waited_for(tmp_path: Path):
    with one("sleep 600").run(out=tmp_path / "run") as run:
        with windtunnel.attach(run.folder) as other:
            assert other.is_live
            with pytest.raises(windtunnel.TimeoutExpired):
                other.wait(timeout=0.01)
        assert run.is_live
        with windtunnel.attach(run.folder) as other:
            other.stop()
            assert other.verdict.text == run.verdict.text
