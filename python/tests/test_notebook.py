"""A notebook shows networks and runs."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from conftest import SOURCE
from nbclient import NotebookClient

from windtunnel import page

CELLS = [
    """
import windtunnel
net = windtunnel.Network("shown")
net.node("paris", run="ping -c 2 -i 0.2 tokyo")
net.node("tokyo")
net.link("paris", "tokyo", name="ocean", latency="5ms")
net
""",
    """
async with net.run_async(out="run", max_lateness="1s") as run:
    await run.wait.aio()
run
""",
    "run.links_frame().tail(1)",
]


@pytest.mark.filterwarnings("ignore")  # those of the notebook's own machinery
def test_a_notebook_shows_the_map_and_the_report(
    namespaces: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(it) for it in CELLS])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    client = NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [cell.outputs[-1].data["text/html"] for cell in notebook.cells]
    assert shown[0].startswith("<svg") and ">paris<" in shown[0]
    assert "FAITHFUL, PASSED" in shown[1]
    assert ("<iframe" if "report" in page.verbs() else "has no `report`") in shown[1]
    assert "<table" in shown[2]
    assert os.path.exists(tmp_path / "run/run.json")
