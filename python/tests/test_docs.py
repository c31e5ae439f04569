"""The code of the documents runs."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.usefixtures("namespaces")


def blocks(page: str, language: str) -> list[tuple[int, str]]:
    """Line numbers and texts of the fenced blocks of a page."""
    text = (ROOT / page).read_text()
    found = re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text[: it.start(1)].count("\n"), it[1]) for it in found]


def test_the_tutorial_runs_from_its_first_block_to_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    code = blocks("docs/python.md", "python")
    assert len(code) > 8
    page = str(ROOT / "docs/python.md")
    names: dict[str, object] = {"__name__": "tutorial"}
    with warnings.catch_warnings():
        # How busy the machine is, is not what is tested.
        warnings.filterwarnings("ignore", message="NOT FAITHFUL")
        for line, text in code:
            # Mistakes in the page have its lines.
            exec(compile("\n" * line + text, page, "exec"), names)
    said = capsys.readouterr().out
    assert f"{page} {_line_of(page, 'bad.link(')}" in said
    assert "hello\n" in said
    assert "1 received" in said


def test_the_files_of_the_page_on_pytest_pass(plugin: pytest.Pytester):
    for language, pattern in (("yaml", r"net\.yaml"), ("python", r"test_\w+\.py")):
        text = (ROOT / "docs/pytest.md").read_text()
        found = re.findall(
            rf"^`({pattern})`:\n\n```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
        )
        assert found
        for name, content in found:
            Path(name).write_text(content)
    # How busy the machine is, is not what is tested.
    done = plugin.runpytest_subprocess("--windtunnel-allow-unfaithful", "-p", "no:cacheprovider")
    assert done.ret == 0
    done.stdout.fnmatch_lines(["collected 7 items"])


def _line_of(page: str, begin: str) -> int:
    lines = Path(page).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.startswith(begin))
