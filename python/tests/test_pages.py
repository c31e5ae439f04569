"""Pages and pictures of runs, by a program that has the verbs for them: a script in front of the
real one, which writes what it was asked."""

from __future__ import annotations

from pathlib import Path

import pytest

import windtunnel
from windtunnel import page, program

FRONT = """#!/bin/sh
case "$1" in
--help)
    printf 'Commands:\\n  report  one\\n  plot    two\\n          more of it\\n'
    printf '  web     three\\n  edit    four\\n\\nOptions:\\n  -h\\n' ;;
report | plot)
    for word; do case "$word" in --output=*) output=${word#--output=} ;; esac; done
    echo "<p title=\\"it's\\">$*</p>" > "$output" ;;
web | edit)
    echo "http://127.0.0.1:7/?token=$*"
    exec cat ;;
*) exec REAL "$@" ;;
esac
"""


@pytest.fixture
def front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "front"
    file.write_text(FRONT.replace("REAL", program.path()))
    file.chmod(0o755)
    monkeypatch.setenv("WINDTUNNEL", str(file))


@pytest.fixture
def results(front: None, namespaces: None, tmp_path: Path) -> windtunnel.Results:
    net = windtunnel.Network("shown")
    net.node("a", run="true")
    with net.run(out=tmp_path / "run", max_lateness="1s") as run:
        run.wait()
    return windtunnel.open(run.folder)


def test_verbs_are_those_of_the_help(front: None):
    assert page.verbs() == ["report", "plot", "web", "edit"]


def test_a_report_and_a_comparison_are_files(results: windtunnel.Results, tmp_path: Path):
    results.report_html(tmp_path / "a.html", max_size="1MB")
    words = f"report --output={tmp_path}/a.html --max-size=1MB -- {results.folder}"
    assert words in (tmp_path / "a.html").read_text()
    windtunnel.compare([results, "other"], tmp_path / "b.html")
    assert f"-- {results.folder} other" in (tmp_path / "b.html").read_text()


def test_a_plot_names_what_it_shows(results: windtunnel.Results, tmp_path: Path):
    results.plot(tmp_path / "p.svg", ["throughput", "queue"], link=["x", "y"], title="a b")
    words = f"--what=throughput,queue --link=x --link=y --output={tmp_path}/p.svg --title=a b"
    assert words in (tmp_path / "p.svg").read_text()


def test_a_notebook_has_the_report_in_a_frame(results: windtunnel.Results):
    shown = results._repr_html_()
    assert "FAITHFUL, PASSED" in shown
    assert 'sandbox="allow-scripts"' in shown
    assert 'srcdoc="&lt;p title=&quot;it&#39;s&quot;&gt;report' in shown


def test_pages_are_served_until_their_process_ends(results: windtunnel.Results):
    for served in (results.web(listen="[::1]:0"), windtunnel.edit("net.yaml")):
        with served:
            assert served.stdout is not None
            assert served.stdout.readline().startswith("http://127.0.0.1:7/?token=")
            served.terminate()


def test_a_failed_test_shows_where_its_report_is(front: None, plugin: pytest.Pytester):
    plugin.makepyfile(
        """
        import pytest, windtunnel

        @pytest.fixture
        def windtunnel_network():
            net = windtunnel.Network("shown")
            net.node("a", run="false")
            return net

        def test_it(run):
            run.wait()
        """
    )
    done = plugin.runpytest_subprocess("-p", "no:cacheprovider")
    done.assert_outcomes(failed=1)
    [path] = [it.split(": ")[1] for it in done.outlines if it.startswith("report: ")]
    assert Path(path).name == "report.html"
    assert Path(path).exists()
