"""Where the program is found, and what its failures become."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import windtunnel
from windtunnel import errors, page, program


def fake(folder: Path, text: str) -> Path:
    file = folder / "windtunnel"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def test_the_variable_comes_first_and_path_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one = fake(tmp_path / "one", "echo windtunnel 0.1.7")
    two = fake(tmp_path / "two", "echo windtunnel 0.1.7")
    monkeypatch.setattr(program, "_places", lambda: iter([str(tmp_path / "two")]))
    monkeypatch.setenv("WINDTUNNEL", str(one))
    assert program.path() == str(one)
    monkeypatch.delenv("WINDTUNNEL")
    assert program.path() == str(two)


def test_path_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = fake(tmp_path, "echo windtunnel 0.1.0")
    monkeypatch.delenv("WINDTUNNEL")
    monkeypatch.setenv("PATH", str(tmp_path))
    places = list(program._places())
    assert places[-1] == str(tmp_path)
    assert os.path.dirname(sys.executable) in places
    monkeypatch.setattr(program, "_places", lambda: iter(places[-1:]))
    assert program.path() == str(file)


def test_another_release_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WINDTUNNEL", str(fake(tmp_path, "echo windtunnel 7.3.0")))
    with pytest.raises(windtunnel.ProgramNotFound, match=r"is windtunnel 7\.3\.0, and this"):
        program.path()


def test_another_program_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WINDTUNNEL", str(fake(tmp_path, "echo smoke 1.0")))
    with pytest.raises(windtunnel.ProgramNotFound, match="is not windtunnel"):
        program.path()
    monkeypatch.setenv("WINDTUNNEL", str(tmp_path / "none"))
    with pytest.raises(windtunnel.ProgramNotFound, match="which is no program"):
        program.path()


def test_without_a_program_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("WINDTUNNEL")
    monkeypatch.setattr(program, "_places", lambda: iter(["/nonexistent"]))
    with pytest.raises(windtunnel.ProgramNotFound, match="set WINDTUNNEL to its path"):
        windtunnel.schema()


def test_the_release_is_that_of_the_crates():
    text = (ROOT / "Cargo.toml").read_text()
    assert f'version = "{windtunnel.__version__}"' in text
    assert f'version = "{windtunnel.__version__}"' in (ROOT / "pyproject.toml").read_text()


def test_each_documented_exit_code_has_its_exception():
    text = (ROOT / "docs/reference/exit-codes.md").read_text()
    codes = [int(code) for code in re.findall(r"^\| (\d) \|", text, re.MULTILINE)]
    assert codes == [0, 1, 2, 3, 4, 5]
    record = {"error": "why", "hint": "do", "mistakes": [], "more": 0, "reasons": []}
    kinds = {code: type(errors.of_failure({**record, "code": code})) for code in codes[2:]}
    assert kinds == {
        2: windtunnel.UsageError,
        3: windtunnel.ScenarioError,
        4: windtunnel.MachineError,
        5: windtunnel.InternalError,
    }
    for kind in kinds.values():
        assert issubclass(kind, windtunnel.WindtunnelError)


def test_a_failure_without_json_is_read_as_text():
    error = program.failure(2, "", "error: no such thing\nhint: take another\n")
    assert isinstance(error, windtunnel.UsageError)
    assert (error.message, error.hint) == ("no such thing", "take another")
    assert str(error) == "no such thing\nhint: take another"


def test_each_verb_of_the_program_has_something_here():
    there = set(page.verbs())
    assert len(there) > 30
    missing = there - set(windtunnel.verbs)
    assert not missing, f"{missing}: add them to `verbs` in commands.py, with what does the same"
    # Verbs that the program gets with its reports.
    assert set(windtunnel.verbs) - there <= {"report", "plot", "web", "edit"}


def test_verbs_are_found_where_colours_are_forced(monkeypatch: pytest.MonkeyPatch):
    there = page.verbs()
    for name in ("CLICOLOR_FORCE", "FORCE_COLOR"):
        monkeypatch.setenv(name, "1")
    assert page.verbs() == there


@pytest.mark.parametrize("verb", windtunnel.verbs)
def test_what_a_verb_is_here_exists(verb: str):
    owner, _, name = windtunnel.verbs[verb].rpartition(".")
    place = getattr(windtunnel, owner) if owner else windtunnel
    assert hasattr(place, name)


def test_words_are_never_taken_as_options():
    line = program.arguments("exec", "web", "-v", run="x", env=["A=1", "B=2"], json=True, cwd=None)
    assert line[1:] == ["exec", "--run=x", "--env=A=1", "--env=B=2", "--json", "--", "web", "-v"]


def test_verbs_without_a_run_answer():
    assert "nodes" in windtunnel.schema()["properties"]
    assert "routers:" in windtunnel.generate("ring", nodes=3)
    assert windtunnel.limits() == []
    assert "complete" in windtunnel.completions("bash")
    assert windtunnel.manual().startswith(".")
    assert windtunnel.doctor()["checks"]
    with pytest.raises(windtunnel.UsageError):
        windtunnel.generate("ring", fanout=3)


def test_a_file_of_another_tool_is_imported(tmp_path: Path):
    (tmp_path / "edges.csv").write_text("from,to,latency\na,b,5ms\n")
    assert "links:" in windtunnel.import_file(tmp_path / "edges.csv")


def test_names_are_found_when_they_are_used_first():
    assert set(windtunnel.__all__) <= set(dir(windtunnel))
    for name in windtunnel.__all__:
        assert getattr(windtunnel, name) is not None
    with pytest.raises(AttributeError, match="has no `nothing`"):
        windtunnel.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_a_first_file_is_written_checked_and_not_overwritten(tmp_path: Path):
    written = windtunnel.init(tmp_path / "net.yaml", template="raft")
    assert written["template"] == "raft"
    assert Path(written["schema"]).is_file()
    assert windtunnel.load(tmp_path / "net.yaml").check()["nodes"] == 6, "five members, a client"
    with pytest.raises(windtunnel.UsageError, match="is there already"):
        windtunnel.init(tmp_path / "net.yaml")
