"""Networks in code, and the file that they come to."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from conftest import ROOT

import windtunnel
from windtunnel import keys, network, yaml

METHODS = {
    "": (windtunnel.Network.__init__, "NetworkKeys"),
    "Node": (windtunnel.Network.node, "NodeKeys"),
    "Lan": (windtunnel.Network.lan, "LanKeys"),
    "Link": (windtunnel.Network.link, "LinkKeys"),
    "Service": (windtunnel.Network.service, "ServiceKeys"),
    "Reservation": (windtunnel.Network.reserve, "ReservationKeys"),
    "Event": (windtunnel.Network.event, "EventKeys"),
    "Expect": (windtunnel.Network.expect, "ExpectKeys"),
    "Route": (windtunnel.Network.route, "RouteKeys"),
}
OTHERWISE = {"nodes", "routers", "lans", "links", "services", "events", "expect", "reserve"}
OTHERWISE |= {"routes", "defaults"}


def test_each_key_of_the_schema_can_be_said_by_a_keyword():
    schema = windtunnel.schema()
    maps = {"": schema, **schema["definitions"]}
    for name, (method, title) in METHODS.items():
        there = set(maps[name]["properties"]) - (OTHERWISE if name == "" else set())
        words = set(inspect.signature(method).parameters) | set(
            getattr(keys, title).__annotations__
        )
        # `between` is the two first arguments of a link.
        said = set(network._file_keys(dict.fromkeys(words, 1))) | {"between"}
        assert there <= said, f"{name}: {there - said}"
    for key in OTHERWISE:
        assert hasattr(windtunnel.Network, key.rstrip("s") if key != "defaults" else key)


def test_the_types_of_keys_are_those_of_the_schema():
    tool = ROOT / "python/tools/keys.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_types_of_keys_can_be_evaluated():
    hints = get_type_hints(keys.NodeKeys)
    assert {"cpu", "receive_queue", "open_files"} <= set(hints)


def test_a_network_is_the_file_that_says_the_same():
    net = windtunnel.Network("five", duration="10s", allow_unreachable=True)
    client = net.node("client", run=["sh", "-c", "sleep 1; exit 3"], env={"A_B": "yes", "N": 1})
    net.node("web", count=2, open_files=100)
    net.router("left", "right")
    net.lan("office", address="192.168.7.0/24")
    net.link(client, "left", latency="2ms", up={"rate": "1mbit"})
    net.link("left", "right", name="middle", jitter={"spread": "2ms", "distribution": "normal"})
    net.service("www", replicas=["web"], ports="80/tcp", fail_over="new")
    net.event("1s", partition=[["client", "left"], ["right"]])
    net.event("2s", flap={"link": "middle", "every": "1s", "down": "100ms"}, for_="5s")
    net.expect(node=client, exit=3)
    net.route(from_="client", to="web-1", via="left")
    net.defaults(link={"mtu": 1400}, node={"receive_queue": "10p"})
    assert net.to_yaml() == (
        "name: five\n"
        "duration: 10s\n"
        "allow-unreachable: true\n"
        "nodes:\n"
        '  client: {run: [sh, "-c", "sleep 1; exit 3"], env: {A_B: "yes", "N": 1}}\n'
        "  web: {count: 2, open-files: 100}\n"
        "routers: [left, right]\n"
        "lans:\n"
        "  office: {address: 192.168.7.0/24}\n"
        "links:\n"
        "  - {between: [client, left], latency: 2ms, up: {rate: 1mbit}}\n"
        "  - {between: [left, right], name: middle, "
        "jitter: {spread: 2ms, distribution: normal}}\n"
        "services:\n"
        "  www: {replicas: [web], ports: 80/tcp, fail-over: new}\n"
        "events:\n"
        "  - {at: 1s, partition: [[client, left], [right]]}\n"
        "  - {at: 2s, flap: {link: middle, every: 1s, down: 100ms}, for: 5s}\n"
        "expect:\n"
        "  - {node: client, exit: 3}\n"
        "routes:\n"
        "  - {from: client, to: web-1, via: left}\n"
        "defaults: {node: {receive-queue: 10p}, link: {mtu: 1400}}\n"
    )


TEXTS = ["", "a b", "yes", "No", "null", "~", "1", "1.5", "0x1f", "1e3", ".5", "-1", "20ms", "a: b"]
TEXTS += [
    "{x}",
    "[x]",
    "#",
    "a #b",
    "'",
    '"',
    "\\",
    "\n",
    "\t",
    "é",
    "*a",
    "&a",
    "!a",
    "%",
    "-",
    "?",
]
TEXTS += ["2026-01-01", "1:30", "10.0.0.1", "fd00::1", "on", "y", "@", "`", "=", "<<", "a,b", " a"]


def test_texts_stay_texts_whatever_they_look_like(tmp_path: Path, namespaces: None):
    net = windtunnel.Network("texts")
    program = "import json, os; print(json.dumps([os.environ[f'T{i}'] for i in range(%d)]))"
    env = {f"T{at}": text for at, text in enumerate(TEXTS)}
    net.node("a", run=[sys.executable, "-c", program % len(TEXTS)], env=env)
    with net.run(out=tmp_path / "run") as run:
        run.wait(30)
    assert json.loads(run.output("a")) == TEXTS


def test_what_no_file_holds_is_refused_where_it_is_said():
    net = windtunnel.Network()
    net.node("a", cwd=Path("/tmp"), env={"x": object()})  # type: ignore[typeddict-item]
    with pytest.raises(windtunnel.UsageError, match="a scenario holds no object"):
        net.to_yaml()


def test_numbers_and_nothing_are_as_they_are():
    assert yaml.flow({"a": [1, 2.5, True, None, (1,)]}) == "{a: [1, 2.5, true, null, [1]]}"


def test_a_name_that_is_there_is_refused():
    net = windtunnel.Network()
    net.node("a")
    with pytest.raises(windtunnel.UsageError, match="a is there already"):
        net.node("a")


def test_check_gives_the_paths(two: windtunnel.Network):
    found = two.check()
    assert [(it["from"], it["to"], it["latency"]) for it in found["paths"]] == [
        ("paris", "tokyo", "10ms"),
        ("tokyo", "paris", "10ms"),
    ]


def test_a_mistake_in_code_has_the_place_of_the_call(tmp_path: Path):
    net = windtunnel.Network("bad")
    net.node("a")
    net.node("b")
    net.link("a", "b", latency="5")
    line = _line_of('net.link("a", "b", latency="5")')
    with pytest.raises(windtunnel.ScenarioError) as caught:
        net.check()
    error = caught.value
    assert (error.file, error.line, error.column) == (__file__, line, 1)
    assert error.message and "latency: `5` has no unit" in str(error)
    with pytest.raises(windtunnel.ScenarioError, match=f"{Path(__file__).name}:{line}:1: latency"):
        net.run(out=tmp_path / "run")


def test_a_mistake_in_a_file_has_line_column_and_hint(tmp_path: Path):
    file = tmp_path / "net.yaml"
    file.write_text("nodes: {a: {}, b: {}}\nlinks:\n  - {between: [a, c], latency: 1ms}\n")
    with pytest.raises(windtunnel.ScenarioError) as caught:
        windtunnel.load(file).check()
    error = caught.value
    assert (error.file, error.line, error.column) == (str(file), 3, 19)
    assert error.hint
    assert len(error.mistakes) >= 1


def test_a_file_stays_whole_and_relative_paths_start_at_it(tmp_path: Path, namespaces: None):
    (tmp_path / "greet.sh").write_text("echo hello from $WINDTUNNEL_NODE\n")
    text = "# a comment\nnodes: {a: {run: sh greet.sh}}\n"
    (tmp_path / "net.yaml").write_text(text)
    net = windtunnel.load(tmp_path / "net.yaml")
    assert net.to_yaml() == text
    with net.run(out=tmp_path / "run") as run:
        assert run.wait(30).passed
    assert run.output("a") == "hello from a\n"


def test_a_dict_becomes_a_network_to_which_more_is_added():
    document = {"name": "x", "nodes": {"a": None}, "lans": ["office"], "routers": ["r"]}
    net = windtunnel.Network.of_dict(document)
    net.node("b")
    net.lan("home")
    net.link("a", "office")
    assert net.to_dict()["nodes"] == {"a": None, "b": {}}
    assert net.to_dict()["lans"] == {"office": None, "home": {}}
    assert document["nodes"] == {"a": None}


def test_a_network_shows_its_map(two: windtunnel.Network):
    picture = two._repr_html_()
    assert picture.startswith("<svg") and picture == two._repr_html_()
    assert ">paris<" in picture and ">ocean 10ms 20mbit<" in picture
    two.node("rome", count=3)
    assert ">rome ×3<" in two._repr_html_()


def test_options_of_a_run_are_those_of_the_program():
    from windtunnel import launch, program

    text = program.output("run", help=True)
    words = set(re.findall(r"^ {2,6}(?:-\w, )?(--[a-z-]+)", text, re.MULTILINE))
    # A run in a block is one run; its output and its folder are the package's affair.
    ours = {"--out", "--json", "--quiet", "--help", "--repeat"}
    module = ast.parse(inspect.getsource(launch))
    options: Any = next(
        it for it in ast.walk(module) if isinstance(it, ast.ClassDef) and it.name == "RunOptions"
    )
    there = {f"--{it.target.id.replace('_', '-')}" for it in options.body[1:]}
    # `--report` comes with the program's reports.
    assert words - ours - {"--report"} == there - {"--report"}


def _line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(at for at, line in enumerate(lines, 1) if line.strip() == text)
