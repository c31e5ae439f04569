"""What can go wrong: one root, and a class for each thing that a caller may want to catch.

The program's exit codes are mapped by its documented table (docs/reference/exit-codes.md):
1 `RunError`, 2 `UsageError`, 3 `ScenarioError`, 4 `MachineError`, 5 `InternalError`.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional


class WindtunnelError(Exception):
    """Any error of windtunnel. `hint` says what to do about it, where that is known."""

    def __init__(self, message: str, hint: Optional[str] = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class ProgramNotFound(WindtunnelError):
    """The program `windtunnel` is not there, or is of another release than this package."""


class UsageError(WindtunnelError):
    """An argument is wrong, or names a run, node or link that does not exist."""


class StrangeFile(UsageError):
    """A file of a run folder is not what a run leaves: a link, a pipe, or larger than any."""


class MachineError(WindtunnelError):
    """This machine does not allow what is needed; `windtunnel.doctor()` shows the reason."""


class InternalError(WindtunnelError):
    """A fault of windtunnel itself. Please report it."""


class Mistake(NamedTuple):
    """A mistake in a scenario. For a network built in code, `file` and `line` are those of the
    call that said it, and `column` is 1."""

    file: str
    line: int
    column: int
    message: str
    hint: Optional[str]
    snippet: str

    def __str__(self) -> str:
        text = f"{self.file}:{self.line}:{self.column}: {self.message}"
        text += f"\n{self.snippet}" if self.snippet else ""
        return text if self.hint is None else f"{text}\nhint: {self.hint}"


class ScenarioError(WindtunnelError):
    """The scenario has mistakes, cannot be read, or does not fit machines of a cluster.

    `file`, `line` and `column` are those of the first of `mistakes`.
    """

    def __init__(
        self,
        message: str,
        hint: Optional[str] = None,
        mistakes: Sequence[Mistake] = (),
        reasons: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(message, hint)
        self.mistakes = list(mistakes)
        self.reasons = [dict(reason) for reason in reasons]
        first = self.mistakes[0] if self.mistakes else None
        self.file = first.file if first else None
        self.line = first.line if first else None
        self.column = first.column if first else None
        if first and hint is None:
            self.hint = first.hint

    def __str__(self) -> str:
        if not self.mistakes:
            return super().__str__()
        return "\n".join(str(mistake) for mistake in self.mistakes)


class RunError(WindtunnelError):
    """A run was not as it should be. `folder` is its run folder, `reasons` says why."""

    def __init__(self, message: str, folder: str, reasons: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.folder = folder
        self.reasons = list(reasons)

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"  {it}" for it in self.reasons), f"  ({self.folder})"])


class NotFaithful(RunError):
    """Packets left later than the bound allows: the emulation is not to be believed.

    `disturbed`: for no other reason than that the machine did not keep up, so that another
    attempt may be faithful.
    """

    disturbed: bool = False


class RunFailed(RunError):
    """A program or an expectation failed."""


class ProgramFailed(RunFailed):
    """A program ended as it should not have."""


class ExpectationFailed(RunFailed):
    """An expectation was not met."""


class NoReport(WindtunnelError):
    """A run folder has no report (yet)."""


class NotSupported(WindtunnelError):
    """The program does not have the verb that this needs."""


class ControlError(WindtunnelError):
    """A live run refused a request, or cannot be asked."""


class NoRun(ControlError):
    """No run lives in the folder (any more)."""


class CommandNotRun(ControlError):
    """A command could not be started in a node. `returncode` is 127 if it is not found there, 126
    if it cannot be executed."""

    def __init__(self, message: str, returncode: int) -> None:
        super().__init__(message)
        self.returncode = returncode


class CommandFailed(WindtunnelError):
    """A command of `exec(…, check=True)` exited with another code than 0."""

    def __init__(self, argv: Sequence[str], returncode: int, stdout: Any, stderr: Any) -> None:
        super().__init__(f"{' '.join(argv)} exited with {returncode}")
        self.argv = list(argv)
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr

    def __str__(self) -> str:
        written = self.stderr or self.stdout
        if isinstance(written, bytes):
            written = written.decode(errors="replace")
        return f"{self.message}:\n{written.rstrip()}" if written else self.message


class TimeoutExpired(WindtunnelError, builtins.TimeoutError):
    """Something lasted longer than its `timeout`. `stdout` and `stderr` are what a command had
    written until then."""

    def __init__(self, message: str, stdout: Any = None, stderr: Any = None) -> None:
        super().__init__(message)
        self.stdout = stdout
        self.stderr = stderr


class NotFaithfulWarning(UserWarning):
    """A run ended NOT FAITHFUL, and its caller has not asked for an exception (`check=True`)."""


def of_failure(record: Mapping[str, Any]) -> WindtunnelError:
    """The exception for a failure as `--json` prints it."""
    message, hint, code = str(record["error"]), record["hint"], record["code"]
    mistakes = [
        Mistake(it["file"], it["line"], it["column"], it["message"], it["hint"], it["snippet"])
        for it in record.get("mistakes", [])
    ]
    if mistakes or code == 3:
        return ScenarioError(message, hint, mistakes, record.get("reasons", []))
    if code == 2 and message.startswith("no live run in "):
        return NoRun(message, hint)
    return _CLASSES.get(code, WindtunnelError)(message, hint)


_CLASSES: dict[int, type[WindtunnelError]] = {
    2: UsageError,
    4: MachineError,
    5: InternalError,
}
