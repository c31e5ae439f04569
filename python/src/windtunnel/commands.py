"""What the program does without a live run, and the list of all its verbs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional, Union, cast

from windtunnel import errors, program
from windtunnel.command import Argv, Completed, words

if TYPE_CHECKING:
    PathLike = Union[str, "os.PathLike[str]"]

verbs: dict[str, str] = {
    "run": "Network.run",
    "link": "across",
    "check": "Network.check",
    "init": "init",
    "generate": "generate",
    "import": "import_file",
    "exec": "Node.exec",
    "shell": "Node.shell",
    "ps": "Run.ps",
    "ls": "runs",
    "links": "Run.links",
    "top": "Run.snapshot",
    "set": "Link.set",
    "down": "Link.down",
    "up": "Link.up",
    "do": "Run.do",
    "service": "Run.service",
    "record": "Run.record",
    "limit": "limit",
    "reserve": "reserve",
    "capture": "Run.capture",
    "records": "Run.records",
    "stop": "Run.stop",
    "explain": "Run.explain",
    "schema": "schema",
    "keygen": "keygen",
    "agent": "agent",
    "hosts": "hosts",
    "attach": "attach_cluster",
    "images": "images",
    "doctor": "doctor",
    "completions": "completions",
    "manual": "manual",
    "report": "Run.report_html",
    "plot": "Run.plot",
    "web": "Run.web",
    "edit": "edit",
}
"""Every verb of the program, and what does the same here. `Node.set` is the other half of `set`,
`record_command` that of `record`, `Run.reservations` that of `reserve`."""


def across(
    command: Argv,
    *,
    input: Union[str, bytes, None] = None,
    timeout: Optional[float] = None,
    check: bool = False,
    **options: Any,
) -> Completed:
    """Runs a command across one emulated link, without a scenario:
    `across("ping -c 3 server", latency="40ms", loss="1%")`. `options` are those of
    `windtunnel link`: `rate`, `queue`, `up`, `down`, `server`, `preset`, `strict` …"""
    argv = words(command)
    line = program.arguments("link", *argv, **options)
    return _completed(line, argv, input, timeout, check)


def limit(
    command: Argv,
    *,
    input: Union[str, bytes, None] = None,
    timeout: Optional[float] = None,
    check: bool = False,
    **options: Any,
) -> Completed:
    """Runs a command on the machine's own network with no more than this: `send`, `receive`,
    `cpu`, `memory`, `pids`, `open_files`, `connect`, `deny_path`, `per`, `group`."""
    argv = words(command)
    line = program.arguments("limit", *argv, **options)
    return _completed(line, argv, input, timeout, check)


def limits() -> list[dict[str, Any]]:
    """The limits of this user under which commands run."""
    return cast("list[dict[str, Any]]", program.ask("limit list")["limits"])


def set_limit(id: str, **options: Any) -> None:
    """Changes a limit while its command runs."""
    program.ask("limit set", id, **options)


def record_command(
    command: Argv,
    *,
    input: Union[str, bytes, None] = None,
    timeout: Optional[float] = None,
    check: bool = False,
    **options: Any,
) -> Completed:
    """Runs a command on the machine's own network as it is, and records what it does; `out` is
    the folder for the records."""
    argv = words(command)
    line = program.arguments("record", *argv, **options)
    return _completed(line, argv, input, timeout, check)


def init(
    file: PathLike = "windtunnel.yaml",
    *,
    template: str = "client-server",
    no_schema: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Writes a first scenario file for one of ten common cases, and its schema beside it."""
    answer = program.ask("init", file, template=template, no_schema=no_schema, force=force)
    return cast("dict[str, Any]", answer)


def generate(shape: str, **options: Any) -> str:
    """The scenario of a star, a ring, a tree, a random graph …: `generate("ring", nodes=5)`."""
    return program.output("generate", shape, **options)


def import_file(path: PathLike, **options: Any) -> str:
    """The scenario of a network that another tool's file describes."""
    return program.output("import", path, **options)


def schema() -> dict[str, Any]:
    """The JSON Schema of the scenario file."""
    return cast("dict[str, Any]", program.ask("schema"))


def reserve() -> dict[str, Any]:
    """What live runs have reserved of this machine, and what is free."""
    return cast("dict[str, Any]", program.ask("reserve"))


def doctor() -> dict[str, Any]:
    """What this machine allows and denies, and how to change it. It does not raise where
    something is denied: the answer says so."""
    line = program.arguments("doctor", json=True)
    done = subprocess.run(line, capture_output=True, text=True, env=program.plain())
    if done.returncode not in (0, 4):
        raise program.failure(done.returncode, done.stdout, done.stderr)
    import json

    return cast("dict[str, Any]", json.loads(done.stdout))


def images(*, clear: bool = False) -> dict[str, Any]:
    """The layers of images in the cache; `clear` removes those that no run uses."""
    return cast("dict[str, Any]", program.ask("images", clear=clear))


def keygen(path: Optional[PathLike] = None) -> dict[str, Any]:
    """Makes the key of a cluster."""
    return cast("dict[str, Any]", program.ask("keygen", path))


def hosts(host: Optional[str] = None, **options: Any) -> dict[str, Any]:
    """The machines of a cluster."""
    return cast("dict[str, Any]", program.ask("hosts", host, **options))


def agent(**options: Any) -> subprocess.Popen[bytes]:
    """Makes this machine part of a cluster, until the returned process is ended."""
    return subprocess.Popen(program.arguments("agent", **options))


def attach_cluster(run: Optional[int] = None, **options: Any) -> dict[str, Any]:
    """Follows a run over several machines to its end, and returns its report."""
    return cast("dict[str, Any]", program.ask("attach", run, **options))


def completions(shell: str) -> str:
    """The completions of a shell."""
    return program.output("completions", shell)


def manual() -> str:
    """The manual page."""
    return program.output("manual")


def edit(path: PathLike, **options: Any) -> subprocess.Popen[str]:
    """Serves the map of a scenario file on loopback, until the returned process is ended; its
    address is the first line that the process writes."""
    from windtunnel import page

    page.need("edit")
    line = program.arguments("edit", path, **options)
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=program.plain())


def _completed(
    line: Sequence[str],
    argv: Sequence[str],
    input: Union[str, bytes, None],
    timeout: Optional[float],
    check: bool,
) -> Completed:
    given = input.encode() if isinstance(input, str) else input
    source = {"stdin": subprocess.DEVNULL} if given is None else {"input": given}
    try:
        ran: Any = subprocess.run(line, capture_output=True, timeout=timeout, **source)
    except subprocess.TimeoutExpired as late:
        text = f"{' '.join(argv)} runs after {timeout} s"
        raise errors.TimeoutExpired(text, late.stdout, late.stderr) from None
    done = Completed(argv, ran.returncode, ran.stdout, ran.stderr)
    return done.check() if check else done
