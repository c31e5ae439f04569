"""Tables of a run folder, as lists of dicts and as frames of pandas or Polars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from windtunnel import below, errors, events, program

if TYPE_CHECKING:
    import pandas
    import polars

Rows = list[dict[str, Any]]

FILES = {
    "links": "links.csv",
    "limits": "limits.csv",
    "bounds": "bounds.csv",
    "echoes": "echoes.csv",
    "paths": "paths.csv",
    "lateness": "lateness.csv",
}
"""Tables that are files of the run folder; some are there only if something asks for them."""

NAMES = (*FILES, "events", "flows", "records", "programs", "expectations", "lanes")


def rows(folder: str, table: str, report: Any) -> Rows:
    """The rows of a table. `lanes`, `programs` and `expectations` are those of the report, `flows`
    and `records` those of recorded evidence."""
    if table in FILES:
        return _csv(folder, FILES[table])
    if table == "events":
        return [dict(event) for event in events.read(folder)]
    if table == "flows":
        return [_flat(flow) for flow in program.ask("records stats", folder)["flows"]]
    if table == "records":
        import json

        return [_flat(json.loads(it)) for it in program.lines("records show", folder, json=True)]
    if table in ("programs", "expectations"):
        return [dict(row) for row in report().get(table, [])]
    if table == "lanes":
        return [_flat(row, but=("asked", "phases")) for row in report()["links"]]
    raise errors.UsageError(f"no table is called `{table}`", f"there are {', '.join(NAMES)}")


def frame(rows: Rows, kind: str) -> Union[pandas.DataFrame, polars.DataFrame]:
    """Rows as a frame; a column has `None` where a row has no such field."""
    columns: dict[str, list[Any]] = {key: [] for row in rows for key in row}
    for row in rows:
        for key, column in columns.items():
            column.append(row.get(key))
    if kind == "pandas":
        import pandas

        return pandas.DataFrame(columns)
    if kind == "polars":
        import polars

        return polars.DataFrame(columns, strict=False)
    raise errors.UsageError(f"no frame is called `{kind}`", "there are pandas and polars")


def _csv(folder: str, name: str) -> Rows:
    import csv

    try:
        text = below.read(folder, name).decode()
    except FileNotFoundError:
        return []
    # A last line that has no end was cut when the run was killed.
    whole = text[: text.rfind("\n") + 1]
    head, *lines = csv.reader(whole.splitlines())
    columns = [_column([line[at] for line in lines]) for at in range(len(head))]
    return [dict(zip(head, values)) for values in zip(*columns)]


def _column(texts: Sequence[str]) -> list[Any]:
    """A column's values: all are whole numbers, numbers or texts; an empty one is `None`."""
    for kind in (int, float):
        try:
            return [_value(kind, text) for text in texts]
        except ValueError:
            continue
    return [text or None for text in texts]


def _value(kind: Any, text: str) -> Optional[Any]:
    return kind(text) if text else None


def _flat(row: dict[str, Any], prefix: str = "", but: Sequence[str] = ()) -> dict[str, Any]:
    """A row whose maps have become columns: `forward.packets`."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if key in but:
            continue
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat
