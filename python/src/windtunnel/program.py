"""The program `windtunnel`: where it is, and what it answers.

It is looked for in the environment variable `WINDTUNNEL`, then where the wheel has installed it,
then on `PATH`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from windtunnel import errors
from windtunnel._version import __version__

Word = Union[str, int, float, bool, "os.PathLike[str]", None]

_checked: dict[str, str] = {}


def path() -> str:
    """The program's path, if it is of this package's release."""
    found = _find()
    if found not in _checked:
        _checked[found] = _release(found)
    theirs = _checked[found]
    if theirs.split(".")[:2] != __version__.split(".")[:2]:
        raise errors.ProgramNotFound(
            f"{found} is windtunnel {theirs}, and this package is of {__version__}",
            "install both of one release, or set WINDTUNNEL to another program",
        )
    return found


def ask(
    verb: str,
    *words: Word,
    input: Optional[str] = None,
    cwd: Optional[str] = None,
    **options: Any,
) -> Any:
    """What a verb answers as JSON; `options` become flags, as in `max_lateness="5ms"`."""
    text = output(verb, *words, input=input, cwd=cwd, json=True, **options)
    try:
        return json.loads(text)
    except ValueError:
        raise errors.InternalError(f"`windtunnel {verb}` wrote no JSON: {text[:200]!r}") from None


def output(
    verb: str,
    *words: Word,
    input: Optional[str] = None,
    cwd: Optional[str] = None,
    **options: Any,
) -> str:
    """What a verb writes to standard output."""
    done = subprocess.run(
        arguments(verb, *words, **options),
        input=input,
        cwd=cwd,
        stdin=None if input is not None else subprocess.DEVNULL,
        capture_output=True,
        env=plain(),
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode != 0:
        raise failure(done.returncode, done.stdout, done.stderr)
    return done.stdout


def lines(verb: str, *words: Word, **options: Any) -> Iterator[str]:
    """The lines that a verb writes, as they come; closing the iterator ends the verb."""
    child = subprocess.Popen(
        arguments(verb, *words, **options),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=plain(),
        encoding="utf-8",
        errors="replace",
    )
    assert child.stdout is not None
    assert child.stderr is not None
    with child:
        try:
            yield from child.stdout
        except GeneratorExit:
            child.terminate()
            raise
        talk = child.stderr.read()
    if child.returncode != 0:
        raise failure(child.returncode, "", talk)


def plain() -> dict[str, str]:
    """The environment without what has programs write colours into a pipe, as notebooks do."""
    coloured = ("CLICOLOR_FORCE", "FORCE_COLOR")
    kept = {key: value for key, value in os.environ.items() if key not in coloured}
    return {**kept, "NO_COLOR": "1"}


def arguments(verb: str, *words: Word, **options: Any) -> list[str]:
    """The command line of a verb. Words go behind `--`, so that none is taken as an option."""
    line = [path(), *verb.split()]
    for name, value in options.items():
        line += _option(name, value)
    said = [str(word) for word in words if word is not None]
    return [*line, "--", *said] if said else line


def failure(code: int, stdout: str, stderr: str) -> errors.WindtunnelError:
    """The exception for a verb that has failed: `--json` writes it as an object."""
    for text in (stdout, stderr):
        at = text.find("{")
        if at < 0:
            continue
        try:
            record, _ = json.JSONDecoder().raw_decode(text[at:])
        except ValueError:
            continue
        if isinstance(record, dict) and "error" in record:
            return errors.of_failure(record)
    message, _, hint = (stderr or stdout).strip().partition("\nhint: ")
    message = message[len("error: ") :] if message.startswith("error: ") else message
    record = {"error": message or f"windtunnel exited with {code}", "hint": hint or None}
    return errors.of_failure({**record, "code": code})


def _option(name: str, value: Any) -> list[str]:
    flag = f"--{name.rstrip('_').replace('_', '-')}"
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    if isinstance(value, Mapping):
        return [f"{flag}={json.dumps(value)}"]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [f"{flag}={one}" for one in value]
    return [f"{flag}={value}"]


def _find() -> str:
    named = os.environ.get("WINDTUNNEL")
    if named:
        if os.access(named, os.X_OK) and os.path.isfile(named):
            return os.path.abspath(named)
        raise errors.ProgramNotFound(
            f"WINDTUNNEL names `{named}`, which is no program", "set it to the path of windtunnel"
        )
    for place in _places():
        file = os.path.join(place, "windtunnel")
        if os.access(file, os.X_OK) and os.path.isfile(file):
            return file
    raise errors.ProgramNotFound(
        "the program windtunnel was not found",
        "install the wheel that carries it, put it on PATH, or set WINDTUNNEL to its path",
    )


def _places() -> Iterator[str]:
    """Folders of scripts: of this environment, of the user, beside a folder that `pip --target`
    was given; then those of `PATH`."""
    import sysconfig

    yield sysconfig.get_path("scripts")
    yield sysconfig.get_path("scripts", scheme=f"{os.name}_user")
    yield os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")
    yield os.path.dirname(sys.executable)
    yield from os.environ.get("PATH", os.defpath).split(os.pathsep)


def _release(program: str) -> str:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True)
    except OSError as error:
        raise errors.ProgramNotFound(f"cannot run {program}: {error.strerror}") from error
    name, _, version = done.stdout.strip().partition(" ")
    if name != "windtunnel" or not version:
        raise errors.ProgramNotFound(
            f"{program} is not windtunnel: `--version` printed {done.stdout.strip()!r}"
        )
    return version


def text_of(value: Any) -> str:
    """A value as the file has it: numbers and texts as they are, maps and lists as JSON, which is
    YAML, too."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return json.dumps(value)
    return str(value)
