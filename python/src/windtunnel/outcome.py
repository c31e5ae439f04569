"""The runs of a test, and what is to be made of them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import warnings
from typing import IO, TYPE_CHECKING, Any, Optional, Union

from windtunnel import errors
from windtunnel.report import Verdict
from windtunnel.scenario import Scenario

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from windtunnel.launch import RunOptions
    from windtunnel.run import Run


class Judgement:
    """What became of the runs of a test: the worst of them counts."""

    def __init__(self, ended: list[tuple[Run, Union[Verdict, errors.WindtunnelError]]]) -> None:
        self._ended = ended
        self.error: Optional[errors.WindtunnelError] = None
        for _, outcome in ended:
            try:
                if isinstance(outcome, errors.WindtunnelError):
                    raise outcome
                outcome.check()
            except errors.WindtunnelError as error:
                # What failed is worse than what is not to be believed.
                if self.error is None or isinstance(self.error, errors.NotFaithful):
                    self.error = error

    @property
    def is_disturbed(self) -> bool:
        """Whether another attempt may be better."""
        return any(isinstance(it, Verdict) and it.disturbed for _, it in self._ended)

    @property
    def text(self) -> str:
        """The verdicts."""
        return "; ".join(str(outcome) for _, outcome in self._ended)

    def is_test_failed(self, raised: Any) -> bool:
        """Whether the exception of a test's call is the test's own, and not this judgement's."""
        return raised is None or str(self.error) not in str(raised.value)

    def sections(self) -> list[tuple[str, str]]:
        """What is shown of each run with a failure: its verdict, its folder, its report."""
        return [
            (f"windtunnel run {run.name}", "\n".join(_lines(run, outcome)))
            for run, outcome in self._ended
        ]


def _ended(run: Run) -> Union[Verdict, errors.WindtunnelError]:
    """How a run has ended: its verdict, or why there is none."""
    try:
        run.__exit__(None, None, None)
        return run.verdict
    except errors.WindtunnelError as error:
        return error


def _lines(run: Run, outcome: Union[Verdict, errors.WindtunnelError]) -> list[str]:
    lines = [str(outcome), f"run folder: {run.folder}"]
    path = os.path.join(run.folder, "report.html")
    if isinstance(outcome, Verdict) and not outcome:
        # The program may have no `report`; the folder has everything.
        with contextlib.suppress(errors.WindtunnelError):
            if not os.path.exists(path):
                run.report_html(path)
            lines.append(f"report: {path}")
    return lines


class Runs:
    """The runs that a test starts."""

    def __init__(self, folder: str, lock: Optional[str], attempt: int = 1) -> None:
        self._folder = folder
        self._lock_path = lock
        self._lock: Optional[IO[bytes]] = None
        self._attempt = attempt
        self._runs: list[Run] = []
        self._ended: Optional[Judgement] = None

    def start(self, scenario: Scenario, /, **options: Unpack[RunOptions]) -> Run:
        """A live run of a scenario; it is ended and judged after the test."""
        return self.begin(scenario, dict(options))

    def begin(self, scenario: Scenario, options: dict[str, Any]) -> Run:
        """The same with options in a dict."""
        self._acquire()
        number = len(self._runs) + 1
        name = f"run-{self._attempt}" + (f"-{number}" if number > 1 else "")
        out = _new(os.path.join(self._folder, name))
        try:
            # What is wrong is the test's outcome, and not an exception at the end of a block.
            run = scenario.run(out=out, **{"check": False, **options})
        except BaseException:
            if not self._runs:
                self._release()
            raise
        self._runs.append(run)
        return run

    def again(self) -> Runs:
        """Those of the next attempt."""
        return Runs(self._folder, self._lock_path, self._attempt + 1)

    def end(self) -> Optional[Judgement]:
        """Ends all and judges them; `None` if there are none."""
        if self._ended is not None or not self._runs:
            self._release()
            return self._ended
        with warnings.catch_warnings():
            # It is an outcome here.
            warnings.simplefilter("ignore", errors.NotFaithfulWarning)
            self._ended = Judgement([(run, _ended(run)) for run in self._runs])
        self._release()
        return self._ended

    def _acquire(self) -> None:
        if self._lock_path is None or self._lock is not None:
            return
        # One run at a time, and not one test: it is held until the runs have ended.
        self._lock = open(self._lock_path, "ab")  # noqa: SIM115
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _new(path: str) -> str:
    """A folder that is not there yet."""
    number, folder = 1, path
    while os.path.exists(folder):
        number += 1
        folder = f"{path}~{number}"
    return folder
