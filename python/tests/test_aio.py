"""Calls that are awaited, and events as they come."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import pytest

import windtunnel
from windtunnel import control, launch
from windtunnel.aio import in_thread
from windtunnel.watch import CREATED, Watch, until_ready

pytestmark = pytest.mark.usefixtures("namespaces")


def test_many_commands_are_awaited_at_a_time(two: windtunnel.Network, tmp_path: Path):
    async def main() -> None:
        async with two.run_async(out=tmp_path / "run", max_lateness="1s") as run:
            words = [f"echo {number}" for number in range(20)]
            done = await asyncio.gather(*(run["paris"].exec.aio(word) for word in words))
            assert [it.stdout for it in done] == [f"{number}\n" for number in range(20)]
            await run["ocean"].set.aio(latency="30ms")
            assert (await run.links.aio())[0]["properties"]["latency"] == "30ms"
            async with await run["ocean"].down.aio():
                assert run["ocean"].status()[0]["state"] == "down"
            assert run["ocean"].status()[0]["state"] == "up"
        assert not run.is_live

    asyncio.run(main())


def test_errors_are_those_of_the_call(two: windtunnel.Network, tmp_path: Path):
    async def main() -> None:
        async with two.run_async(out=tmp_path / "run", max_lateness="1s") as run:
            with pytest.raises(windtunnel.CommandFailed):
                await run["paris"].exec.aio("false", check=True)
        with pytest.raises(windtunnel.ProgramFailed):
            failing = windtunnel.Network("failing")
            failing.node("a", run="false")
            async with failing.run_async(out=tmp_path / "failing", check=True) as run:
                await run.wait.aio()

    asyncio.run(main())


def test_a_cancelled_command_is_ended(two: windtunnel.Network, tmp_path: Path):
    hold = "import fcntl, signal; file = open('lock', 'w'); fcntl.flock(file, fcntl.LOCK_EX)\n"
    (tmp_path / "there").mkdir()

    async def main() -> None:
        async with two.run_async(out=tmp_path / "run", max_lateness="1s") as run:
            code = f"{hold}open('there/up', 'w'); signal.pause()"
            command = run["paris"].exec.aio([sys.executable, "-c", code], cwd=tmp_path)
            with Watch(tmp_path / "there", CREATED) as watch:
                task = asyncio.create_task(command)
                await in_thread(lambda: until_ready(watch.fileno()))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # The lock is free once it has ended.
            after = [sys.executable, "-c", hold]
            await run["paris"].exec.aio(after, cwd=tmp_path, timeout=20, check=True)

    asyncio.run(main())


def test_a_cancelled_start_leaves_no_run(two: windtunnel.Network, tmp_path: Path):
    async def main() -> None:
        task = asyncio.create_task(two.run.aio(out=tmp_path / "run"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert str(tmp_path / "run") not in [run.folder for run in windtunnel.runs()]


def test_a_run_that_began_too_late_for_its_task_is_ended(
    two: windtunnel.Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    begun, go = threading.Event(), threading.Event()
    start = launch.start

    def start_and_wait(*arguments: object) -> launch.Child:
        child = start(*arguments)  # type: ignore[arg-type]
        begun.set()
        go.wait()
        return child

    monkeypatch.setattr(launch, "start", start_and_wait)

    async def main() -> None:
        task = asyncio.create_task(two.run.aio(out=tmp_path / "run"))
        await in_thread(begun.wait)
        task.cancel()
        await asyncio.sleep(0)  # the task is cancelled now
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert (tmp_path / "run/run.json").exists()
    assert not control.is_live(tmp_path / "run")


def test_events_come_while_they_happen_until_the_end(two: windtunnel.Network, tmp_path: Path):
    with two.run(out=tmp_path / "run", max_lateness="1s") as run:
        events = run.events()
        kinds = []
        for event in events:
            kinds.append(event.kind)
            if event.kind == "program-ready":
                run["ocean"].set(latency="20ms")
            if event.kind == "link-set":
                assert event["link"] == "ocean" and event.at == event.at_ns / 1e9 > 0
                assert event.intended_ns is None or event.intended_ns <= event.at_ns
                run.stop(wait=False)
        assert kinds[0] == "run-began" and "run-ended" in kinds[-2:]
        assert kinds.count("link-set") == 2
        assert list(events) == []
    assert [it.kind for it in windtunnel.open(run.folder).events()][: len(kinds)] == kinds


def test_events_of_a_task_end_with_it(two: windtunnel.Network, tmp_path: Path):
    async def main() -> None:
        async with two.run_async(out=tmp_path / "run", max_lateness="1s") as run:
            seen = []

            async def follow() -> None:
                async for event in run.events():
                    seen.append(event.kind)
                    ready.set()

            ready = asyncio.Event()
            task = asyncio.create_task(follow())
            await ready.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert seen[0] == "run-began"

    asyncio.run(main())


def test_a_closed_iterator_is_at_its_end(two: windtunnel.Network, tmp_path: Path):
    with two.run(out=tmp_path / "run", max_lateness="1s") as run, run.events() as events:
        assert next(events).kind == "run-began"
        events.close()
        assert list(events) == []
