"""Calls that wait can be awaited: `run["web"].exec(…)` blocks, `await run["web"].exec.aio(…)`
does not. Both are the same function; the second runs it in a thread of its own.

If the awaiting task is cancelled, what the function waits for is interrupted (a command in a node
is ended, for example), and the task goes on once the thread has.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, TypeVar, overload

R = TypeVar("R")
S = TypeVar("S")
if TYPE_CHECKING:
    import asyncio

    from typing_extensions import Concatenate, ParamSpec, Self

    P = ParamSpec("P")
else:  # Python 3.9 has no ParamSpec, and at run time it means nothing here.
    P = TypeVar("P")


class Call(Generic[P, R]):
    """A function that blocks when it is called, and has `aio` to be awaited."""

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The same, to be awaited."""
        return await in_thread(lambda: self._function(*args, **kwargs))


class waits(Generic[S, P, R]):  # noqa: N801
    """Marks a method that waits: it becomes a `Call`."""

    def __init__(self, function: Callable[Concatenate[S, P], R]) -> None:
        self._function = function
        functools.update_wrapper(self, function)  # type: ignore[arg-type]

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Self: ...

    @overload
    def __get__(self, instance: S, owner: type[Any]) -> Call[P, R]: ...

    def __get__(self, instance: Optional[S], owner: type[Any]) -> Any:
        if instance is None:
            return self
        return Call(self._function.__get__(instance, owner))


class _Interrupt:
    """What is to be done if the task is cancelled that awaits a thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actions: list[Callable[[], None]] = []
        self._is_set = False

    def set(self) -> None:
        with self._lock:
            self._is_set = True
            actions = list(self._actions)
        for action in actions:
            action()

    def add(self, action: Callable[[], None]) -> None:
        with self._lock:
            self._actions.append(action)
            now = self._is_set
        if now:
            action()

    def remove(self, action: Callable[[], None]) -> None:
        with self._lock:
            self._actions.remove(action)


_INTERRUPT: contextvars.ContextVar[Optional[_Interrupt]] = contextvars.ContextVar(
    "windtunnel-interrupt", default=None
)


@contextlib.contextmanager
def interruptible(action: Callable[[], None]) -> Iterator[None]:
    """Has `action`, which may come from another thread, interrupt what happens inside."""
    interrupt = _INTERRUPT.get()
    if interrupt is None:
        yield
        return
    interrupt.add(action)
    try:
        yield
    finally:
        interrupt.remove(action)


async def in_thread(function: Callable[[], R]) -> R:
    """Awaits a function that runs in a thread of its own: those that wait for long must not take
    the places of a pool."""
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()
    interrupt = _Interrupt()
    context = contextvars.copy_context()
    context.run(_INTERRUPT.set, interrupt)

    def work() -> None:
        conclude = functools.partial(_conclude, future, *_outcome(context, function))
        # A loop that is closed has none that awaits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(conclude)

    threading.Thread(target=work, name="windtunnel", daemon=True).start()
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        interrupt.set()
        await asyncio.wait([future])
        # An exception is what the interruption made of the call. A result that came all the same
        # belongs to no caller: a run is ended, for example.
        abandon = None if future.exception() else getattr(future.result(), "_abandon", None)
        if abandon is not None:
            await in_thread(abandon)
        raise


def _outcome(
    context: contextvars.Context, function: Callable[[], R]
) -> tuple[Optional[R], Optional[BaseException]]:
    try:
        return context.run(function), None
    except StopIteration:  # a future takes all but this
        return None, RuntimeError("the end of an iteration")
    except BaseException as raised:  # the awaiting task gets it
        return None, raised


def _conclude(
    future: asyncio.Future[R], result: Optional[R], error: Optional[BaseException]
) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)  # type: ignore[arg-type]
