"""The report of a run as a page, and what a notebook shows of a run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from windtunnel import drawing, errors, program
from windtunnel.drawing import escaped

if TYPE_CHECKING:
    from windtunnel.results import Results

HEIGHT_PX = 720


def verbs() -> list[str]:
    """The verbs that the program has, as its help lists them."""
    lines = iter(program.output("--help").splitlines())
    found = []
    for line in lines:
        if line.startswith("Commands:"):
            break
    for line in lines:
        if not line.strip():
            break
        # Continued descriptions are indented further.
        if line[:2] == "  " and line[2:3].strip():
            found.append(line.split()[0])
    return found


def need(verb: str) -> None:
    """Raises `NotSupported` if the program has no such verb."""
    if verb not in verbs():
        raise errors.NotSupported(f"{program.path()} has no `{verb}`", "use a newer windtunnel")


def write(folders: Sequence[str], path: str, options: Mapping[str, Any]) -> None:
    """Writes the report of runs as one HTML file."""
    need("report")
    program.output("report", *folders, output=path, **options)


def serve(folder: str, options: Mapping[str, Any]) -> subprocess.Popen[str]:
    """Serves the page of a run."""
    need("web")
    line = program.arguments("web", folder, **options)
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=program.plain())


def cell(results: Results) -> str:
    """What a notebook shows of a run: its verdict, and its report."""
    try:
        verdict = results.verdict
    except errors.NoReport:
        return f"<p>The run in <code>{escaped(results.folder)}</code> goes on.</p>"
    head = _banner(verdict.text, "#1a7f37" if verdict else "#b35900")
    try:
        return head + _frame(results.folder)
    except errors.NotSupported as error:
        why = escaped(str(error)).replace("\n", "<br>")
        return f"{head}{drawing.of_plan(results.plan)}<p>No report: {why}</p>"


def _banner(text: str, colour: str) -> str:
    style = f"border-left:4px solid {colour};padding:2px 8px;margin:0 0 8px"
    return f'<p style="{style}"><b>{escaped(text)}</b></p>'


def _frame(folder: str) -> str:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="windtunnel-") as place:
        path = os.path.join(place, "report.html")
        write([folder], path, {})
        with open(path, encoding="utf-8") as file:
            document = escaped(file.read())
    style = f"width:100%;height:{HEIGHT_PX}px;border:1px solid #8886"
    # Without access to the notebook's page.
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{document}"></iframe>'
