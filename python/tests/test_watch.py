"""Waiting for files and processes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from windtunnel import watch
from windtunnel.watch import CREATED, Deadline, Watch, process_descriptor, until_ready


def test_a_new_file_is_noticed_once(tmp_path: Path):
    with Watch(tmp_path, CREATED) as it:
        assert until_ready(it.fileno(), deadline=Deadline(0)) == []
        (tmp_path / "file").touch()
        assert until_ready(it.fileno()) == [it.fileno()]
        it.clear()
        assert until_ready(it.fileno(), deadline=Deadline(0)) == []
    with pytest.raises(FileNotFoundError):
        Watch(tmp_path / "none", CREATED)


@pytest.mark.parametrize("is_known", [True, False])
def test_the_end_of_a_child_is_noticed(is_known: bool, monkeypatch: pytest.MonkeyPatch):
    """Also by a Python that lacks `os.pidfd_open`."""
    if not is_known:
        monkeypatch.delattr(watch.os, "pidfd_open", raising=False)
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    ended = process_descriptor(child.pid)
    assert not os.get_inheritable(ended)
    assert until_ready(ended, deadline=Deadline(0)) == []
    child.communicate()
    assert until_ready(ended) == [ended]
    os.close(ended)
