"""Runs over files and tables, by the command `infill run`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._process import InfillError

# The column by which rows of the result find theirs of the table.
_ROW = "infill_row"


def flags(options: Mapping[str, Any]) -> list[str]:
    """Return options as the command line has them."""
    found = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            found.append(flag)
        elif isinstance(value, Mapping):
            found += [f"{flag}={number}={_list(words)}" for number, words in value.items()]
        else:
            found.append(f"{flag}={_list(value)}")
    return found


def _list(value: Any) -> str:
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    quoted = [str(v) for v in value]
    return ",".join('"' + v.replace('"', '""') + '"' if any(c in v for c in ',"\n=') else v for v in quoted)


def run(command: Sequence[str], source: str, target: str, shown: bool) -> list[str]:
    """Run the command from path to path. Return its warnings; an error is an InfillError."""
    process = subprocess.Popen([*command, "--out", target, "--", source], stderr=subprocess.PIPE, text=True, encoding="utf-8")
    lines: list[str] = []
    assert process.stderr is not None
    try:
        for line in process.stderr:
            lines.append(line.rstrip("\n"))
            if shown:
                print(line, end="", file=sys.stderr, flush=True)
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if code not in (0, 3):
        raise InfillError("\n".join(line.removeprefix("infill: ") for line in lines[-2:]) or f"the program ended with {code}")
    return [line.removeprefix("infill: warning: ") for line in lines if line.startswith("infill: warning: ")]


def of_table(command: Sequence[str], table: Any, key: str, columns: Any) -> tuple[Any, list[str]]:
    """Fill the templates of a table of pandas or polars, and return a table of the same kind.

    It has a row for each fill, with the columns of the result before those of the table. A row
    that could not be filled stays, with a column error.
    """
    kind = type(table).__module__.partition(".")[0]
    if kind not in ("pandas", "polars"):
        raise InfillError(f"{type(table).__name__} is no path, nor a table of pandas or polars")
    if key not in map(str, table.columns):
        raise InfillError(f"the table has no column {key!r}: its columns are {', '.join(map(repr, table.columns))}")
    records = table.to_dict("records") if kind == "pandas" else table.to_dicts()
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "table.jsonl"), os.path.join(folder, "fills.csv")
        with open(source, "w", encoding="utf-8") as file:
            for i, record in enumerate(records):
                line = {str(name): _plain(value) for name, value in record.items()}
                file.write(json.dumps({**line, _ROW: i}, ensure_ascii=False) + "\n")
        warned = run(command, source, target, False)
        failed = {}
        if os.path.exists(target + ".rejects.jsonl"):
            with open(target + ".rejects.jsonl", encoding="utf-8") as file:
                failed = {line["line"] - 1: line["error"] for line in map(json.loads, file)}
        if failed:
            warned = [w for w in warned if ".rejects.jsonl" not in w] + [f"rows that could not be filled: {len(failed)}; the column error says why"]
        made = (_pandas if kind == "pandas" else _polars)(table, key, target, failed)
    if columns is not None:
        wanted = [columns] if isinstance(columns, str) else list(columns)
        missing = [name for name in wanted if name not in made.columns]
        if missing:
            raise InfillError(f"columns: the result has no column {missing[0]!r}: its columns are {', '.join(map(repr, made.columns))}")
        made = made[wanted]
    return made, warned


def table_of(source: Any) -> Any:
    """Return a table, which may be that of a path."""
    if not isinstance(source, (str, os.PathLike)):
        return source
    import pandas  # type: ignore[import-untyped,unused-ignore]

    path = os.fspath(source)
    if path.endswith(".parquet"):
        return pandas.read_parquet(path)
    raise InfillError(f"{path}: name the output, too, or give a table: pandas.read_csv({path!r})")


def written(table: Any, output: Any) -> Any:
    """Write a table to the output, if there is one, and return what the caller gets."""
    if output is None:
        return table
    path = os.fspath(output)
    if path.endswith(".parquet"):
        write = "to_parquet" if hasattr(table, "to_parquet") else "write_parquet"
    elif path.endswith(".csv"):
        write = "to_csv" if hasattr(table, "to_csv") else "write_csv"
    else:
        raise InfillError(f"{path}: a table is written to .parquet or .csv; from a path to a path, any form will do")
    getattr(table, write)(path, **({"index": False} if write.startswith("to_") else {}))
    return output


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; what is missing is null."""
    if hasattr(value, "item"):
        value = value.item()
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value if isinstance(value, (str, int, float, bool, list, dict)) else str(value)


def _pandas(table: Any, key: str, target: str, failed: Mapping[int, str]) -> Any:
    import pandas  # type: ignore[import-untyped,unused-ignore]

    fills = pandas.read_csv(target, keep_default_na=False, na_values=[""])
    whole = fills.select_dtypes("int64").columns
    fills[whole] = fills[whole].astype("Int64")  # which has a place for what is missing
    wrong = pandas.DataFrame({_ROW: list(failed), "error": list(failed.values())})
    found = pandas.concat([fills, wrong], ignore_index=True).sort_values(_ROW, kind="stable")
    own, named = _columns(list(fills.columns), list(table.columns), key)
    beside = table.iloc[found[_ROW].astype(int)].reset_index(drop=True)
    found = found.reset_index(drop=True)
    made = {name: beside[key] if name == key else found[name] for name in own}
    made.update({"error": found["error"]} if failed else {})
    return pandas.DataFrame({**made, **{name: beside[of] for of, name in named.items()}})


def _polars(table: Any, key: str, target: str, failed: Mapping[int, str]) -> Any:
    import polars

    fills = polars.read_csv(target, infer_schema_length=None)
    wrong = polars.DataFrame({_ROW: list(failed), "error": list(failed.values())}, schema={_ROW: polars.Int64, "error": polars.String})
    found = polars.concat([fills, wrong], how="diagonal_relaxed").sort(_ROW, maintain_order=True)
    own, named = _columns(fills.columns, table.columns, key)
    beside = table[found[_ROW].to_list()]
    made = {name: beside[key] if name == key else found[name] for name in own}
    made.update({"error": found["error"]} if failed else {})
    return polars.DataFrame({**made, **{name: beside[of] for of, name in named.items()}})


def _columns(head: Sequence[str], names: Sequence[Any], key: str) -> tuple[Sequence[str], dict[Any, str]]:
    """Return the columns of the result, and the name there of each other column of the table.

    The command writes those of the table last, in their order.
    """
    others = [name for name in names if str(name) != key]
    last = len(head) - len(others) - 1
    return head[:last], dict(zip(others, head[last:]))
