"""Run folders in which a program of the run, or a stranger, has put something else."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

import windtunnel
from windtunnel import below, control

SECRET = "of the user alone"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that could be a run's, and a file beside it that is the user's own."""
    (tmp_path / "secret").write_text(SECRET + "\n")
    run = tmp_path / "run"
    (run / "nodes" / "a").mkdir(parents=True)
    (run / "nodes" / "a" / "stdout").write_text("hello\n")
    (run / "run.json").write_text('{"links": [], "programs": []}')
    (run / "plan.json").write_text('{"name": "x"}')
    (run / "events.jsonl").write_text('{"event": "one", "at_ns": 1}\n{"event": "cut')
    (run / "links.csv").write_text("link,offered_packets\nnear,3\n")
    return run


def read_all(results: windtunnel.Results) -> list[object]:
    """Everything that this package reads itself."""
    readers = (
        lambda: results.report,
        lambda: results.plan,
        lambda: results.table("links"),
        lambda: results.table("events"),
        lambda: list(results.events()),
        lambda: results.output("a"),
    )
    seen: list[object] = []
    for read in readers:
        try:
            seen.append(read())
        except windtunnel.StrangeFile as error:
            seen.append(error)
    return seen


FILES = ("run.json", "plan.json", "links.csv", "events.jsonl", "nodes/a/stdout")


def test_what_a_run_leaves_is_read(folder: Path):
    report, plan, links, events, _, output = read_all(windtunnel.open(folder))
    assert (report, plan) == ({"links": [], "programs": []}, {"name": "x"})
    assert links == [{"link": "near", "offered_packets": 3}]
    assert events == [{"event": "one", "at_ns": 1}]
    assert output == "hello\n"


@pytest.mark.parametrize("name", FILES)
def test_links_are_not_followed(folder: Path, name: str):
    (folder / name).unlink()
    (folder / name).symlink_to(folder.parent / "secret")
    seen = read_all(windtunnel.open(folder))
    strange = [it for it in seen if isinstance(it, windtunnel.StrangeFile)]
    assert strange and all("is a link" in str(it) and name in str(it) for it in strange)
    assert not any(SECRET in str(it) for it in seen)


@pytest.mark.parametrize("name", FILES)
def test_pipes_do_not_hang(folder: Path, name: str):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    strange = [it for it in read_all(windtunnel.open(folder)) if isinstance(it, Exception)]
    assert strange and all("is no regular file" in str(it) for it in strange)


def test_a_folder_on_the_way_may_not_be_a_link_either(folder: Path, tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "stdout").write_text(SECRET)
    (folder / "nodes" / "b").symlink_to(tmp_path / "elsewhere")
    results = windtunnel.open(folder)
    with pytest.raises(windtunnel.StrangeFile, match="is a link"):
        results.output("b")
    with pytest.raises(windtunnel.StrangeFile, match="is a link"):
        results.output("b", "stderr")
    for node in ("..", "../..", "a/../../..", ""):
        with pytest.raises(windtunnel.StrangeFile, match="is not in the run folder"):
            results.output(node, "secret")


def test_a_name_that_is_not_there_lists_those_that_are(folder: Path):
    with pytest.raises(windtunnel.UsageError, match="there are stdout"):
        windtunnel.open(folder).output("a", "stderr")
    with pytest.raises(windtunnel.UsageError, match="it has no programs"):
        windtunnel.open(folder).output("c")


def test_a_file_without_an_end_takes_no_more_memory_than_it_may(folder: Path):
    for name in ("links.csv", "events.jsonl"):
        with open(folder / name, "wb") as file:
            file.truncate(6 << 30)  # one hole
    results = windtunnel.open(folder)
    with pytest.raises(windtunnel.StrangeFile, match="more than 256 MiB"):
        results.table("links")
    with pytest.raises(windtunnel.StrangeFile, match="a line of more than 1 MiB"):
        results.table("events")
    with pytest.raises(windtunnel.StrangeFile, match="a line of more than 1 MiB"):
        list(results.events())


def test_a_link_to_a_socket_is_no_live_run(folder: Path, tmp_path: Path):
    other = tmp_path / "other.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(other))
        server.listen()
        server.setblocking(False)
        (folder / control.NAME).symlink_to(other)
        assert not control.is_live(str(folder))
        with pytest.raises(BlockingIOError):
            server.accept()


def test_bounds_are_those_of_the_program():
    assert (below.MOST, below.LINE_MOST) == (256 << 20, 1 << 20)
