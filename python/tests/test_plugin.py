"""The plugin in a real pytest, in a process of its own, with and without xdist."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.usefixtures("namespaces")

NETWORK = """
duration: 30s
nodes: {paris: {}, tokyo: {}}
links: [{between: [paris, tokyo], name: ocean, latency: 5ms}]
"""

BUILT = """
import pytest, windtunnel

@pytest.fixture
def windtunnel_network():
    net = windtunnel.Network("built")
    net.node("paris")
    net.node("tokyo")
    net.link("paris", "tokyo", name="ocean", latency="5ms")
    return net
"""

LATE = 'max_lateness="1ns"'
"""With a bound of a nanosecond, a run in which a packet passes is late."""


def run(plugin: pytest.Pytester, text: str, *arguments: str) -> pytest.RunResult:
    plugin.makepyfile(text)
    return plugin.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


@pytest.fixture
def project(plugin: pytest.Pytester) -> pytest.Pytester:
    Path("net.yaml").write_text(NETWORK)
    return plugin


def test_a_test_has_a_live_run_of_the_file_beside_it(project: pytest.Pytester):
    done = run(
        project,
        """
        import pytest

        @pytest.mark.windtunnel("net.yaml", seed=9, max_lateness="1s")
        def test_it(run):
            assert run.ps()["name"] == "net"
            run["paris"].exec("ping -c 1 tokyo", check=True)
            assert run.plan["seed"] == 9
        """,
    )
    done.assert_outcomes(passed=1)
    assert done.ret == 0


def test_networks_are_built_in_code(project: pytest.Pytester):
    text = BUILT + (
        "def test_fixture(run):\n"
        "    assert run.name == 'built'\n"
        "def test_factory(windtunnel_runs, windtunnel_network):\n"
        "    first = windtunnel_runs.start(windtunnel_network, seed=1)\n"
        "    second = windtunnel_runs.start(windtunnel_network, seed=2)\n"
        "    assert first.is_live and second.is_live and first.folder != second.folder\n"
    )
    done = run(project, text, "-v")
    done.assert_outcomes(passed=2)


def test_what_the_run_did_wrong_is_the_failure_of_the_test(project: pytest.Pytester):
    text = BUILT.replace("    return net", "    net.node('wrong', run='false')\n    return net")
    text = text.replace('Network("built")', 'Network("built", allow_unreachable=True)') + (
        "@pytest.mark.windtunnel(max_lateness='1s')\ndef test_it(run):\n    run.wait()\n"
    )
    done = run(project, text)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        ["*FAITHFUL, FAILED*", "*wrong*exited with 1*", "*windtunnel run built*", "run folder: *"]
    )
    assert done.ret == 1


def test_an_expectation_decides(project: pytest.Pytester):
    Path("net.yaml").write_text(
        NETWORK.replace("paris: {}", "paris: {run: echo hello}")
        + "expect: [{node: paris, log: goodbye}]\n"
    )
    done = run(
        project,
        """
        import pytest

        @pytest.mark.windtunnel("net.yaml", max_lateness="1s")
        def test_it(run):
            run.wait()
        """,
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*goodbye*"])
    folder = next(it.split(": ")[1] for it in done.outlines if it.startswith("run folder: "))
    assert (Path(folder) / "run.json").exists()


LATE_TEST = f"""
import pytest

@pytest.mark.windtunnel("net.yaml", {LATE})
def test_late(run):
    run["paris"].exec("ping -c 1 tokyo", check=True)

@pytest.mark.windtunnel("net.yaml", max_lateness="1s")
def test_in_time(run):
    run["paris"].exec("ping -c 1 tokyo", check=True)
"""


def test_not_faithful_is_an_outcome_of_its_own(project: pytest.Pytester):
    done = run(project, LATE_TEST, "--junitxml=results.xml", "-v")
    assert done.ret == 1
    done.stdout.fnmatch_lines(
        [
            "*::test_late NOT FAITHFUL*",
            "*::test_in_time PASSED*",
            "*= NOT FAITHFUL =*",
            "NOT FAITHFUL, PASSED: *left more than 1ns late*",
            "*windtunnel run net*",
            "run folder: *",
            "*= 1 passed, 1 unfaithful in *",
        ]
    )
    done.stdout.no_fnmatch_line("*= FAILURES =*")
    cases = {it.get("name"): it for it in ElementTree.parse("results.xml").iter("testcase")}
    failure = cases["test_late"].find("failure")
    assert failure is not None
    assert failure.get("type") == "windtunnel.NotFaithful"
    assert failure.get("message", "").startswith("NOT FAITHFUL")
    assert cases["test_in_time"].find("failure") is None
    said = [it.get("value", "") for it in cases["test_in_time"].iter("property")]
    assert said and said[0].startswith("FAITHFUL, PASSED")


def test_its_letter_is_u(project: pytest.Pytester):
    done = run(project, LATE_TEST)
    done.stdout.re_match_lines([r".*\.py U\. .*"])


def test_not_faithful_can_be_allowed(project: pytest.Pytester):
    done = run(project, LATE_TEST, "--windtunnel-allow-unfaithful", "--junitxml=results.xml")
    assert done.ret == 0
    done.stdout.fnmatch_lines(["*1 passed, 1 unfaithful*"])
    assert not list(ElementTree.parse("results.xml").iter("failure"))


def test_an_assertion_that_fails_stays_a_failure(project: pytest.Pytester):
    text = LATE_TEST + '    assert 0, "mine"\n'
    text = text.replace('"1s"', '"1ns"')
    done = run(project, text, "--windtunnel-allow-unfaithful", "-k", "in_time")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*AssertionError: mine*", "*NOT FAITHFUL, PASSED*"])


REPEATED = """
import os, pytest

@pytest.fixture(scope="module")
def once():
    with open("once", "a") as file:
        file.write("x")
    yield
    with open("closed", "a") as file:
        file.write("x")

@pytest.fixture
def windtunnel_network():
    import windtunnel
    net = windtunnel.load("net.yaml")
    count = len(open("count").read()) if os.path.exists("count") else 0
    with open("count", "a") as file:
        file.write("x")
    # The bound of the first attempts cannot be kept.
    start = net.run
    net.run = lambda **options: start(
        **{**options, "max_lateness": "1ns" if count < LATE_ATTEMPTS else "1s"})
    return net

@pytest.mark.windtunnel(attempts=3)
def test_it(run, once, tmp_path):
    run["paris"].exec("ping -c 1 tokyo", check=True)
    assert not OWN

def test_after(once):
    pass
"""


@pytest.mark.parametrize(
    ("late", "own", "attempts", "outcome"),
    [
        (2, 0, 3, "2 passed"),
        (3, 0, 3, "1 passed, 1 unfaithful"),
        (0, 1, 1, "1 failed, 1 passed"),
        (1, 1, 2, "1 failed, 1 passed"),
    ],
)
def test_a_disturbed_run_is_repeated_and_no_other(
    project: pytest.Pytester, late: int, own: int, attempts: int, outcome: str
):
    text = REPEATED.replace("LATE_ATTEMPTS", str(late)).replace("OWN", str(own))
    done = run(project, text)
    done.stdout.fnmatch_lines([f"*= {outcome} in *"])
    assert len(Path("count").read_text()) == attempts
    # Fixtures of the module stay over attempts.
    assert (Path("once").read_text(), Path("closed").read_text()) == ("x", "x")


def test_a_test_without_a_network_says_what_is_missing(project: pytest.Pytester):
    done = run(project, "def test_it(run):\n    pass\n")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*the test has no network*", "*hint: mark it with*"])


def test_a_mistake_in_the_file_is_an_error_with_its_place(project: pytest.Pytester):
    Path("net.yaml").write_text("nodes: {a: {cpu: fast}}\n")
    done = run(
        project,
        """
        import pytest

        @pytest.mark.windtunnel("net.yaml")
        def test_it(run):
            pass
        """,
    )
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*net.yaml:1:18: cpu:*"])


MANY = f"""
import pytest

@pytest.mark.parametrize("number", range(4))
@pytest.mark.windtunnel("net.yaml", max_lateness="1s")
def test_it(run, number):
    run["paris"].exec("ping -c 1 tokyo", check=True)

@pytest.mark.windtunnel("net.yaml", {LATE})
def test_late(run):
    run["paris"].exec("ping -c 1 tokyo", check=True)
"""


def test_workers_of_xdist_have_runs_of_their_own(project: pytest.Pytester):
    done = run(project, MANY, "-n", "2", "--junitxml=results.xml")
    done.stdout.fnmatch_lines(["*= NOT FAITHFUL =*", "*= 4 passed, 1 unfaithful in *"])
    assert done.ret == 1
    failures = list(ElementTree.parse("results.xml").iter("failure"))
    assert [it.get("type") for it in failures] == ["windtunnel.NotFaithful"]


def test_runs_of_several_workers_can_be_one_at_a_time(project: pytest.Pytester):
    text = f"""
    import fcntl, pytest, windtunnel

    @pytest.mark.parametrize("number", range(4))
    @pytest.mark.windtunnel("net.yaml", max_lateness="1s")
    def test_it(run, number):
        # Of two runs at a time, one would find this taken.
        with open({str(Path("taken").resolve())!r}, "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            run["paris"].exec("ping -c 2 -i 0.2 tokyo", check=True)
    """
    done = run(project, text, "-n", "2", "--windtunnel-serial")
    done.assert_outcomes(passed=4)


def test_run_folders_are_kept_where_they_are_wanted(project: pytest.Pytester):
    done = run(project, MANY, "--windtunnel-runs", "kept", "-k", "test_it")
    done.assert_outcomes(passed=4)
    kept = sorted(str(it.parent) for it in Path("kept").rglob("run.json"))
    assert len(kept) == 4
    assert "test_it-0-" in kept[0]


def test_the_plugin_names_its_options_and_marker(project: pytest.Pytester):
    done = run(project, "", "--help")
    done.stdout.fnmatch_lines(["*--windtunnel-allow-unfaithful*", "*--windtunnel-serial*"])
    done = run(project, "", "--markers")
    done.stdout.fnmatch_lines(["@pytest.mark.windtunnel(file, attempts=1, ?*options):*"])
