"""What a run leaves: its report, rows, frames and pages."""

from __future__ import annotations

import html
import subprocess
import sys
import typing
from pathlib import Path

import pytest
from conftest import SOURCE

import windtunnel
from windtunnel import page, report, tables

pytestmark = pytest.mark.usefixtures("namespaces")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, namespaces: None) -> windtunnel.Results:
    net = windtunnel.Network("done", duration="20s")
    net.node("client", run="ping -c 3 -i 0.2 server", pids=100)
    net.node("server")
    net.router("hub")
    net.link("client", "hub", name="near", latency="5ms")
    net.link("hub", "server", name="far", latency="10ms", rate="10mbit")
    net.event("200ms", link="far", set={"latency": "20ms"})
    net.expect(node="client", exit=0)
    folder = tmp_path_factory.mktemp("done") / "run"
    with net.run(out=folder, record="engine,tcp", max_lateness="1s") as run:
        run.wait(60)
    return windtunnel.open(folder)


def test_the_report_has_typed_fields(results: windtunnel.Results):
    def known(kind: type, value: dict[str, object]) -> None:
        assert set(value) <= set(kind.__annotations__), set(value) - set(kind.__annotations__)

    done = results.report
    known(report.Report, done)
    known(report.VerdictFields, done["verdict"])
    known(report.LinkReport, done["links"][0])
    known(report.Achieved, done["links"][0]["achieved"])
    known(report.Program, done["programs"][0])
    known(report.Expectation, done["expectations"][0])
    known(report.Summary, done["lateness"])
    assert results.verdict.passed and results.name == "done"


def test_rows_have_numbers_and_texts(results: windtunnel.Results):
    links = results.table("links")
    assert {it["link"] for it in links} == {"near", "far"}
    assert all(type(it["offered_packets"]) is int for it in links)
    assert sum(it["delivered_packets"] for it in links if it["direction"] == "client-hub") == 3
    assert results.table("lanes")[0]["achieved.latency_mean_ns"] >= 5_000_000
    assert [it["exit"] for it in results.table("programs")] == [0]
    assert [it["met"] for it in results.table("expectations")] == [True]
    assert any(it["event"] == "link-set" for it in results.table("events"))
    assert {it["from"].partition(":")[0] for it in results.table("flows")} <= {"client", "server"}
    assert results.table("bounds")[0]["limit"] == "pids"
    assert results.table("paths") == []
    with pytest.raises(windtunnel.UsageError, match="no table is called `cables`"):
        results.table("cables")


@pytest.mark.parametrize("table", tables.NAMES)
def test_each_table_is_a_frame_of_both_libraries(results: windtunnel.Results, table: str):
    rows = results.table(table)
    assert len(results.frame(table)) == len(rows)
    assert len(results.frame(table, "polars")) == len(rows)


def test_frames_keep_types(results: windtunnel.Results):
    assert str(results.links_frame()["queue_packets"].dtype) == "int64"
    assert results.links_frame("polars")["time_s"].max() > 0.3
    assert results.events_frame()["event"].iloc[0] == "run-began"
    assert "forward.packets" in results.flows_frame().columns
    with pytest.raises(windtunnel.UsageError, match="there are pandas and polars"):
        results.frame("links", "arrow")  # type: ignore[call-overload]


def test_a_line_that_was_cut_is_left_out(tmp_path: Path):
    (tmp_path / "links.csv").write_text("time_s,link,note\n0.1,a,\n0.2,b,x\n0.3,c")
    assert windtunnel.open(tmp_path).table("links") == [
        {"time_s": 0.1, "link": "a", "note": None},
        {"time_s": 0.2, "link": "b", "note": "x"},
    ]
    (tmp_path / "events.jsonl").write_text('{"event":"run-began","at_ns":1}\n{"event":')
    assert [it.at_ns for it in windtunnel.open(tmp_path).events()] == [1]


def test_output_and_records_are_read(results: windtunnel.Results, tmp_path: Path):
    assert "3 received" in results.output("client")
    assert results.output("client", "stderr") == ""
    assert results.records.stats()["run"] == "done"
    kinds = {it["kind"] for it in results.records.show(layer="engine", link="far")}
    assert "offered" in kinds
    results.records.export("jsonl", tmp_path / "out.jsonl", layer="engine")
    assert (tmp_path / "out.jsonl").stat().st_size > 0
    with pytest.raises(windtunnel.WindtunnelError):
        results.records.export("jsonl", tmp_path / "out.jsonl")
    assert "requests_in_all" in results.explain(slowest=1)


def test_a_notebook_shows_the_verdict_and_the_report_or_why_not(results: windtunnel.Results):
    shown = results._repr_html_()
    assert html.escape(results.verdict.text) in shown
    if "report" in page.verbs():
        assert "<iframe" in shown
    else:
        assert "has no `report`" in shown
        assert "<svg" in shown and ">client<" in shown


def test_pages_are_written_or_it_is_said_why_not(results: windtunnel.Results, tmp_path: Path):
    path = tmp_path / "report.html"
    there = page.verbs()
    for verb, act in {
        "report": lambda: results.report_html(path),
        "plot": lambda: results.plot(tmp_path / "p.svg", ["throughput", "queue"], link="far"),
    }.items():
        if verb in there:
            act()
        else:
            with pytest.raises(windtunnel.NotSupported, match=f"has no `{verb}`"):
                act()
    if "report" in there:
        windtunnel.compare([results, results.folder], tmp_path / "compared.html")
        assert path.stat().st_size > 0 and (tmp_path / "compared.html").stat().st_size > 0


def test_frames_need_their_library_only_when_they_are_made():
    code = (
        "import sys, windtunnel; windtunnel.Network, windtunnel.Run, windtunnel.open\n"
        "print(sorted({'pandas', 'polars', 'asyncio', 'ctypes', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_the_types_of_answers_can_be_evaluated():
    from windtunnel import status

    assert typing.get_type_hints(status.Snapshot)["links"] == list[status.LaneStatus]
