"""pytest: a live run for a test, whose verdict decides as the test's assertions do.

    @pytest.mark.windtunnel("net.yaml", seed=1, attempts=3)
    def test_it_survives_a_cut(run):
        with run["ocean"].down():
            ...

docs/pytest.md says what the fixtures, the marker and the options do.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, Optional

import pytest

from windtunnel import errors
from windtunnel.outcome import Judgement, Runs
from windtunnel.scenario import File, Scenario

if TYPE_CHECKING:
    from windtunnel.run import Run

_RUNS = pytest.StashKey[Runs]()
_JUDGEMENT = pytest.StashKey[Judgement]()

UNFAITHFUL = "unfaithful"
"""The category of reports, beside pytest's own."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("windtunnel", "tests on emulated networks")
    group.addoption(
        "--windtunnel-allow-unfaithful",
        action="store_true",
        help="let tests pass whose run was NOT FAITHFUL and had no other fault",
    )
    group.addoption(
        "--windtunnel-serial",
        action="store_true",
        help="have one run at a time, over all workers of xdist",
    )
    group.addoption(
        "--windtunnel-runs",
        metavar="DIR",
        help="keep run folders here instead of below the tests' temporary folders",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker, and the category in JUnit files."""
    config.addinivalue_line(
        "markers",
        "windtunnel(file, attempts=1, **options): the fixture `run` is a live run of this file; "
        "options are those of `Scenario.run`",
    )
    if config.pluginmanager.hasplugin("junitxml"):
        config.pluginmanager.register(_Junit(config), "windtunnel-junit")


@pytest.fixture
def windtunnel_network(request: pytest.FixtureRequest) -> Scenario:
    """The scenario of the fixture `run`: the file that the marker names. A module that builds its
    networks in code has a fixture of this name instead."""
    marker = request.node.get_closest_marker("windtunnel")
    if marker is None or not marker.args:
        pytest.fail(
            "the test has no network\nhint: mark it with "
            '@pytest.mark.windtunnel("net.yaml"), or define a fixture `windtunnel_network`',
            pytrace=False,
        )
    given = marker.args[0]
    return given if isinstance(given, Scenario) else File(request.path.parent / given)


@pytest.fixture
def run(request: pytest.FixtureRequest, windtunnel_network: Scenario) -> Iterator[Run]:
    """A live run of `windtunnel_network`. After the test it is ended and judged."""
    runs = _runs(request.node)
    options = _options(request.node)
    yield runs.begin(windtunnel_network, options)
    runs.end()


@pytest.fixture
def windtunnel_runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """For tests that build their networks themselves: `windtunnel_runs.start(net, seed=1)` is a
    live run, which is ended and judged after the test."""
    runs = _runs(request.node)
    yield runs
    runs.end()


def _runs(item: pytest.Item) -> Runs:
    if _RUNS not in item.stash:
        item.stash[_RUNS] = Runs(_folder(item), _lock(item.config))
    return item.stash[_RUNS]


def _options(item: pytest.Item) -> dict[str, Any]:
    marker = item.get_closest_marker("windtunnel")
    options = dict(marker.kwargs) if marker else {}
    options.pop("attempts", None)
    return options


def _attempts(item: pytest.Item) -> int:
    marker = item.get_closest_marker("windtunnel")
    return int(marker.kwargs.get("attempts", 1)) if marker else 1


def _folder(item: pytest.Item) -> str:
    """Where runs of a test are: a name of its own for each test and worker."""
    named = item.config.getoption("--windtunnel-runs")
    if named is None:
        factory: pytest.TempPathFactory = item.config._tmp_path_factory  # type: ignore[attr-defined]
        return str(factory.mktemp("windtunnel", numbered=True))
    words = item.nodeid.replace("::", "-").replace("/", "-")
    name = "".join(it if it.isalnum() or it in "-_." else "-" for it in words)
    folder = os.path.join(item.config.invocation_params.dir, named, name)
    os.makedirs(folder, exist_ok=True)
    return folder


def _lock(config: pytest.Config) -> Optional[str]:
    """The file that runs are one at a time by, if they are to be."""
    if not config.getoption("--windtunnel-serial"):
        return None
    factory: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    base = factory.getbasetemp()
    is_worker = hasattr(config, "workerinput")
    return str((base.parent if is_worker else base) / "windtunnel.lock")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """The runs of a test are judged as part of its call: what they did wrong is its failure."""
    failed = True
    try:
        result = yield
        failed = False
    finally:
        runs = pyfuncitem.stash.get(_RUNS, None)
        judgement = runs.end() if runs is not None else None
        if judgement is not None:
            pyfuncitem.stash[_JUDGEMENT] = judgement
            # In the JUnit file. Of several attempts, the last counts.
            others = [it for it in pyfuncitem.user_properties if it[0] != "windtunnel"]
            pyfuncitem.user_properties[:] = [*others, ("windtunnel", judgement.text)]
            for title, text in judgement.sections():
                pyfuncitem.add_report_section("call", title, text)
        # A failed assertion of the test says more than the run does.
        if judgement is not None and judgement.error is not None and not failed:
            _raise(judgement, pyfuncitem.config)
    return result


def _raise(judgement: Judgement, config: pytest.Config) -> None:
    error = judgement.error
    assert error is not None
    is_allowed = config.getoption("--windtunnel-allow-unfaithful")
    if isinstance(error, errors.NotFaithful) and is_allowed:
        return
    pytest.fail(str(error), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Marks the report of a test whose run is not to be believed, and that has no other fault."""
    report = yield
    judgement = item.stash.get(_JUDGEMENT, None)
    if call.when == "call" and judgement is not None:
        is_own = report.passed or not judgement.is_test_failed(call.excinfo)
        if isinstance(judgement.error, errors.NotFaithful) and is_own:
            # The attribute travels from xdist's workers with the report.
            report.windtunnel = UNFAITHFUL  # type: ignore[attr-defined]
            report.windtunnel_text = str(judgement.error)  # type: ignore[attr-defined]
    return report


def pytest_runtest_protocol(item: pytest.Item, nextitem: Optional[pytest.Item]) -> Optional[bool]:
    """Repeats a test whose run was disturbed, and for no other reason."""
    attempts = _attempts(item)
    if attempts < 2:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for left in reversed(range(attempts)):
        reports = _attempt(item, nextitem, is_last=left == 0)
        if reports is not None:
            break
    for report in reports or []:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _attempt(
    item: pytest.Item, nextitem: Optional[pytest.Item], is_last: bool
) -> Optional[list[pytest.TestReport]]:
    """The reports of an attempt; `None` if the next one counts."""
    from _pytest.runner import call_and_report

    with contextlib.suppress(AttributeError):
        item._initrequest()  # type: ignore[attr-defined]
    former = item.stash.get(_RUNS, None)
    if former is not None:
        item.stash[_RUNS] = former.again()
    if _JUDGEMENT in item.stash:
        del item.stash[_JUDGEMENT]
    reports = [call_and_report(item, "setup", log=False)]
    if reports[0].passed and not item.config.getoption("setuponly", False):
        reports.append(call_and_report(item, "call", log=False))
    judgement = item.stash.get(_JUDGEMENT, None)
    is_repeated = not is_last and judgement is not None and judgement.is_disturbed
    # Fixtures of the module and the session stay for the next attempt: the next to be set up is
    # again something of the item's parent.
    following = item.parent if is_repeated else nextitem
    reports.append(call_and_report(item, "teardown", log=False, nextitem=following))
    return None if is_repeated else reports


def pytest_report_teststatus(report: Any) -> Any:
    """A letter and a word of its own."""
    if getattr(report, "windtunnel", None) == UNFAITHFUL and report.when == "call":
        return UNFAITHFUL, "U", ("NOT FAITHFUL", {"yellow": True, "bold": True})
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Shows what was not faithful, as pytest shows failures."""
    reports = terminalreporter.getreports(UNFAITHFUL)
    if not reports:
        return
    terminalreporter.write_sep("=", "NOT FAITHFUL", yellow=True, bold=True)
    for report in reports:
        terminalreporter.write_sep("_", report.head_line or report.nodeid, yellow=True)
        terminalreporter.write_line(report.windtunnel_text)
        for title, text in report.sections:
            if "windtunnel run" in title:
                terminalreporter.write_sep("-", title)
                terminalreporter.write_line(text)


class _Junit:
    """A category of its own in the JUnit file: failures of type `windtunnel.NotFaithful`."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        from _pytest.junitxml import xml_key

        xml = self._config.stash.get(xml_key, None)
        if xml is None or getattr(report, "windtunnel", None) != UNFAITHFUL or not report.failed:
            return
        for node in xml.node_reporter(report).nodes:
            if node.tag == "failure":
                node.set("type", "windtunnel.NotFaithful")
                node.set("message", report.windtunnel_text)
