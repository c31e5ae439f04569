"""The runs of a test, and what is to be made of them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import warnings
from typing import IO, TYPE_CHECKING, Any, Optional

from windtunnel import errors
from windtunnel.report import Verdict
from windtunnel.scenario import Scenario

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from windtunnel.launch import RunOptions
    from windtunnel.run import Run


class Judgement:
    """What became of the runs of a test: the worst of them counts."""

    def __init__(self, runs: list[Run]) -> None:
        self._verdicts: list[tuple[Run, Optional[Verdict]]] = []
        self.error: Optional[errors.WindtunnelError] = None
        for run in runs:
            try:
                verdict = run.verdict
                self._verdicts.append((run, verdict))
                verdict.check()
            except errors.WindtunnelError as error:
                self._take(error)
                if isinstance(error, errors.NoReport):
                    self._verdicts.append((run, None))

    @property
    def is_disturbed(self) -> bool:
        """Whether another attempt may be better."""
        return any(it is not None and it.disturbed for _, it in self._verdicts)

    @property
    def text(self) -> str:
        """The verdicts."""
        return "; ".join(str(verdict or "no report") for _, verdict in self._verdicts)

    def is_test_failed(self, raised: Any) -> bool:
        """Whether the exception of a test's call is the test's own, and not this judgement's."""
        return raised is None or str(self.error) not in str(raised.value)

    def sections(self) -> list[tuple[str, str]]:
        """What is shown of each run with a failure: its verdict, its folder, its report."""
        return [
            (f"windtunnel run {run.name}", "\n".join(_lines(run, verdict)))
            for run, verdict in self._verdicts
        ]

    def _take(self, error: errors.WindtunnelError) -> None:
        is_worse = isinstance(self.error, errors.NotFaithful)
        if self.error is None or is_worse:
            self.error = error


def _lines(run: Run, verdict: Optional[Verdict]) -> list[str]:
    lines = [str(verdict or "the run has left no report"), f"run folder: {run.folder}"]
    path = os.path.join(run.folder, "report.html")
    if verdict is not None and not verdict:
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
            run = scenario.run(out=out, **options)
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
            for run in self._runs:
                # One that has failed has no report, which is judged.
                with contextlib.suppress(errors.WindtunnelError):
                    run.__exit__(None, None, None)
        self._release()
        self._ended = Judgement(self._runs)
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
