"""Live runs: what can be asked of them and done to them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SOURCE

import windtunnel
from windtunnel import program
from windtunnel.run import Run

pytestmark = pytest.mark.usefixtures("namespaces")

HOLD = "import fcntl, signal; file = open('lock', 'w'); fcntl.flock(file, fcntl.LOCK_EX);"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, namespaces: None) -> Iterator[Run]:
    """One run for the tests that only ask, or undo what they do."""
    net = windtunnel.Network("live", duration="60s")
    net.node("paris")
    serve = f"{sys.executable} -u -m http.server --bind :: 80"
    net.node("tokyo", run=serve, daemon=True, ready="tcp:80", count=2)
    net.router("hub")
    net.link("paris", "hub", name="ocean", latency="10ms", rate="20mbit")
    net.link("tokyo", "hub", name="land")
    net.service("www", replicas="tokyo", ports="80/tcp", policy={"weighted": {"tokyo-1": 2}})
    with net.run(out=tmp_path_factory.mktemp("live") / "run", record="standby") as run:
        yield run


def latency(run: Run, direction: int = 0) -> object:
    return run["ocean"].status()[direction]["properties"]["latency"]


def test_a_command_runs_in_its_node(run: Run):
    done = run["paris"].exec(["sh", "-c", "echo $WINDTUNNEL_NODE; echo no >&2; exit 3"])
    assert (done.stdout, done.stderr, done.returncode) == ("paris\n", "no\n", 3)
    assert done.argv[0] == "sh"


def test_a_command_has_input_variables_and_a_folder(run: Run, tmp_path: Path):
    done = run["paris"].exec(
        ["sh", "-c", "pwd; echo $WORD; cat"], input="x" * 300_000, env={"WORD": "a"}, cwd=tmp_path
    )
    assert done.stdout == f"{tmp_path}\na\n" + "x" * 300_000


def test_bytes_that_are_no_text_are_kept(run: Run):
    done = run["paris"].exec("cat", input=b"\xff\x00")
    assert done.stdout_bytes == b"\xff\x00"
    assert done.stdout == "\ufffd\x00"


def test_a_command_that_fails_raises_if_asked(run: Run):
    with pytest.raises(windtunnel.CommandFailed, match=r"sh -c .* exited with 4:\nwhy") as caught:
        run["paris"].exec(["sh", "-c", "echo why >&2; exit 4"], check=True)
    assert (caught.value.returncode, caught.value.stderr) == (4, "why\n")
    with pytest.raises(windtunnel.CommandNotRun) as not_run:
        run["paris"].exec("no-such-command")
    assert not_run.value.returncode == 127


def test_a_command_that_lasts_too_long_is_ended(run: Run):
    code = "import signal, sys, time; print('there', flush=True); time.sleep(60)"
    with pytest.raises(windtunnel.TimeoutExpired) as caught:
        run["paris"].exec([sys.executable, "-c", code], timeout=0.5)
    assert isinstance(caught.value, TimeoutError)
    # What it wrote before is there, if it came so far on a busy machine.
    assert caught.value.stdout in (b"there\n", b"")


def test_a_process_is_talked_to_while_it_runs(run: Run):
    with run["paris"].popen("cat", stdin=windtunnel.PIPE) as cat:
        assert cat.stdin is not None and cat.stdout is not None
        cat.stdin.write(b"one\n")
        assert cat.stdout.readline() == b"one\n"
        assert cat.poll() is None and cat.pid > 0
        cat.terminate()
        assert cat.wait(10) == 128 + signal.SIGTERM
        assert cat.poll() == 143


def test_both_streams_can_be_one(run: Run):
    sh = ["sh", "-c", "echo a; echo b >&2"]
    with run["paris"].popen(sh, stderr=windtunnel.STDOUT) as process:
        assert process.communicate() == (b"a\nb\n", b"")


def test_a_closed_process_is_ended(run: Run, tmp_path: Path):
    hold = HOLD + "print('up', flush=True); signal.pause()"
    with run["paris"].popen([sys.executable, "-c", hold], cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
    # The lock is free once it has ended.
    run["paris"].exec([sys.executable, "-c", HOLD], cwd=tmp_path, timeout=20, check=True)


def test_a_link_changes_at_once_and_both_ways(run: Run):
    run["ocean"].set(latency="35ms", loss="1.5%", rate="5mbit", duplicate="0.1%", corrupt="1ppm")
    properties = run["ocean"].status()[1]["properties"]
    assert (properties["latency"], properties["rate"]) == ("35ms", "5mbit")
    assert properties["loss"] == {"independent": "1.5%"}
    run["ocean"].set(latency="10ms", loss="none", rate="20mbit", duplicate="none", corrupt="none")
    assert [it["link"] for it in run.links(changed=True)] == []


VALUES = [
    {"latency": "1.5ms"},
    {"latency": "2 s"},
    {"rate": "100kbit"},
    {"rate": "1.5MB/s"},
    {"loss": "0.25%"},
    {"loss": "100ppm"},
    {"duplicate": "3ppb"},
    {"corrupt": "1%"},
]


@pytest.mark.parametrize("value", VALUES)
def test_what_the_socket_is_asked_is_what_the_program_asks(run: Run, value: dict[str, str]):
    run["ocean"].set(**value)
    ours = run["ocean"].status()
    run["ocean"].set(latency="10ms", loss="none", rate="20mbit", duplicate="none", corrupt="none")
    pairs = [f"{key}={text}" for key, text in value.items()]
    program.ask("set", "ocean", *pairs, run=run.folder)
    assert run["ocean"].status() == ours
    run["ocean"].set(latency="10ms", loss="none", rate="20mbit", duplicate="none", corrupt="none")


def test_one_direction_changes_alone_with_values_that_are_maps(run: Run):
    jitter = {"spread": "2ms", "distribution": "normal"}
    run["ocean"].set(jitter=jitter, queue="20p", direction="up")
    up, down = (it["properties"] for it in run["ocean"].status())
    assert up["jitter"] == jitter and up["queue"] == {"packets": "20p"}
    assert down["jitter"]["spread"] == "0ns"
    run["ocean"].set(jitter="none", queue="default", direction="paris-hub")
    assert run.links(changed=True) == []


def test_a_wrong_value_is_refused_in_the_words_of_the_file(run: Run):
    with pytest.raises(windtunnel.UsageError, match="latency: `200` has no unit"):
        run["ocean"].set(latency="200")
    with pytest.raises(windtunnel.UsageError, match=r"`9 parsecs`"):
        run["ocean"].set(latency="9 parsecs")
    with pytest.raises(windtunnel.UsageError, match="nothing is to be set at ocean"):
        run["ocean"].set()
    assert run.links(changed=True) == []


def test_a_link_is_down_for_a_block(run: Run):
    with run["ocean"].down():
        assert {it["state"] for it in run["ocean"].status()} == {"down"}
        done = run["paris"].exec("ping -c 1 -W 1 tokyo-1")
        assert done.returncode != 0
    assert {it["state"] for it in run["ocean"].status()} == {"up"}
    run["ocean"].down("up")
    assert [it["state"] for it in run["ocean"].status()] == ["down", "up"]
    run["ocean"].up()


def test_a_partition_ends_with_its_block(run: Run):
    with run.partition(["paris"], ["hub", "tokyo"]) as cut:
        assert [it.kind for it in cut.events] == ["partitioned"]
        assert {it["state"] for it in run["ocean"].status()} == {"parted"}
    assert {it["state"] for it in run["ocean"].status()} == {"up"}
    run.partition(from_="paris", to="hub")
    assert [it["state"] for it in run["ocean"].status()] == ["parted", "up"]
    assert [it.kind for it in run.heal()] == ["healed"]


def test_programs_are_paused_restarted_and_stopped(run: Run):
    node = run["tokyo-2"]
    assert [it["verb"] for it in node.pause()] == ["pause"]
    assert node.status()["programs"][0]["state"] == "paused"
    node.resume()
    first = node.status()["programs"][0]["pid"]
    assert node.restart()[0]["node"] == "tokyo-2"
    events = iter(run.events())
    next(it for it in events if it.kind == "node" and it["verb"] == "restart")
    next(it for it in events if it.kind == "program-started" and it["node"] == "tokyo-2")
    assert node.status()["programs"][0].get("pid") != first
    next(it for it in events if it.kind == "service-registered" and it["replica"] == "tokyo-2")


def test_events_are_in_the_language_of_the_file(run: Run):
    happened = run.do("{link: ocean, down: true}")
    assert {it["direction"] for it in happened} == {"paris-hub", "hub-paris"}
    run.do([{"link": "ocean", "up": True}, {"link": "ocean", "set": {"latency": "11ms"}}])
    assert latency(run) == "11ms"
    run["ocean"].set(latency="10ms")
    with pytest.raises(windtunnel.ScenarioError, match="no link is called `sea`") as caught:
        run.do({"link": "sea", "down": True})
    assert caught.value.hint is not None


def test_limits_change(run: Run):
    run["tokyo-1"].set(pids=300)
    assert run["tokyo-1"].status()["limits"]["pids"] == 300
    assert [it["name"] for it in run.reservations()] == ["tokyo-1"]
    with pytest.raises(windtunnel.UsageError, match="cpu"):
        run["tokyo-1"].set(cpu="fast")


def test_a_service_changes_its_replicas(run: Run):
    service = run.service("www")
    assert [it["replica"] for it in service.show()["replicas"]] == ["tokyo-1", "tokyo-2"]
    service.weight("tokyo-1", 3)
    service.drain("tokyo-2")
    replicas = {it["replica"]: it for it in service.show()["replicas"]}
    assert replicas["tokyo-1"]["weight"] == 3
    assert replicas["tokyo-2"]["state"] == "draining"
    service.drain("tokyo-2", undo=True)
    service.remove("tokyo-2")
    service.add("tokyo-2")
    assert run.services()[0]["service"] == "www"


def test_a_run_shows_what_it_is_and_does(run: Run):
    status = run.ps()
    assert [it["node"] for it in status["nodes"]] == ["paris", "tokyo-1", "tokyo-2"]
    assert run.snapshot()["links"][0]["latency_ns"] == 10_000_000
    assert run["paris"].address == status["nodes"][0]["addresses"][0]
    assert run.is_live and run.name == "live"
    assert "goes on" in run._repr_html_()
    with pytest.raises(windtunnel.NoReport, match="the run goes on"):
        _ = run.verdict


def test_names_that_are_not_there_are_answered_with_those_that_are(run: Run):
    with pytest.raises(KeyError, match="live has paris, tokyo-1, tokyo-2, tokyo, ocean, land-1"):
        run["rome"]
    with pytest.raises(windtunnel.UsageError, match="no link `paris`"):
        run.link("paris")
    with pytest.raises(windtunnel.UsageError, match="no stdout\nhint"):
        run["paris"].output()
    with pytest.raises(windtunnel.UsageError, match="is a group"):
        run["tokyo"].status()


def test_recording_begins_and_stops(run: Run):
    with run.record(layers=["engine"]) as recording:
        run["paris"].exec("ping -c 1 tokyo-1", check=True)
        assert recording.status()["on"]
    assert not run.recording.status()["on"]
    stats = run.records.stats(layer="engine")
    assert [it["layer"] for it in stats["layers"]] == ["engine"]
    assert any(it.get("kind") for it in run.records.show(lines=5))


def test_frames_are_captured(run: Run, tmp_path: Path):
    file = tmp_path / "paris.pcapng"
    with run.capture("paris", file) as capture:
        run["paris"].exec("ping -c 1 tokyo-1", check=True)
        assert capture.stop()["packets"] >= 2
    assert file.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    with pytest.raises(windtunnel.ControlError):
        run.capture("nowhere", tmp_path / "none.pcapng")
    assert not (tmp_path / "none.pcapng").exists()


def test_another_process_can_attach(run: Run):
    code = (
        "import sys, windtunnel\n"
        "with windtunnel.attach(sys.argv[1]) as run:\n"
        "    print(run.name, run.ps()['nodes'][0]['node'])\n"
        "print([run.folder for run in windtunnel.runs()])\n"
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-c", code, run.folder], env=env, capture_output=True, text=True
    )
    assert done.stdout.startswith("live paris\n"), done.stderr
    assert run.folder in done.stdout
    assert run.is_live


def test_a_folder_without_a_run_is_refused(tmp_path: Path):
    with pytest.raises(windtunnel.NoRun, match="no live run in") as caught:
        windtunnel.attach(tmp_path)
    assert isinstance(caught.value, windtunnel.ControlError)


def test_a_run_of_another_version_is_refused(tmp_path: Path):
    import socket
    import threading

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "control.sock"))
    listener.listen()

    def greet() -> None:
        stream, _ = listener.accept()
        with stream:
            stream.sendall(b'{"version":99,"name":"x"}\n')

    thread = threading.Thread(target=greet)
    thread.start()
    with pytest.raises(windtunnel.ControlError, match="speaks version 99, this package version 3"):
        windtunnel.attach(tmp_path)
    thread.join()
    listener.close()
