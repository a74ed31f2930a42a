"""Runs over files and tables, by the command `infill run`."""

from __future__ import annotations

import collections
import csv
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._process import InfillError, end

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
    return ",".join('"' + str(v).replace('"', '""') + '"' for v in value)


def run(command: Sequence[str], source: str, target: str, shown: bool) -> list[str]:
    """Run the command from path to path. Return its warnings; an error is an InfillError."""
    lines: list[str] = []
    words = [*command, "--out", target, "--", source]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                lines.append(line.rstrip("\n"))
                if shown:
                    print(line, end="", file=sys.stderr, flush=True)
            code = process.wait()
        except BaseException:
            end(process)
            raise
    if code not in (0, 3):
        raise InfillError("\n".join(line.removeprefix("infill: ") for line in lines[-2:]) or f"the program ended with {code}")
    return [line.removeprefix("infill: warning: ") for line in lines if line.startswith("infill: warning: ")]


def of_any(program: Sequence[str], source: Any, output: Any, shown: bool, options: dict[str, Any]) -> tuple[Any, list[str]]:
    """Fill a file or a table. Return the path of the output, or a table, and warnings.

    Whatever the ends are, the command runs from a path to a path. A table is written for it as
    JSON lines, and the rows of its CSV become a table again. If the output is Parquet, that CSV
    has the output's name until it is converted: so the command decides as for other outputs
    what it may replace, and goes on with what is done.
    """
    _check(source, output, options)
    if _is_path(source) and not _is_parquet(source):
        return output, run([*program, *flags(options)], os.fspath(source), os.fspath(output), shown)
    table = _table(source)
    _check_columns(table, options)
    with tempfile.TemporaryDirectory() as folder:
        if _is_path(output) and not _is_parquet(output):
            path = _write(table, folder, False)
            return output, run([*program, *flags(options)], path, os.fspath(output), shown)
        path = _write(table, folder, True)
        wanted = options.pop("columns", None)
        wanted = [wanted] if isinstance(wanted, str) else wanted if wanted is None else list(wanted)
        target = os.path.join(folder, "fills.csv") if output is None else os.path.realpath(output)
        warned = run([*program, *flags({**options, "to": "csv"})], path, target, shown and output is not None)
        if not os.path.exists(target):  # a part of a run has no output
            return output, warned
        failed = _failed(target)
        warned = _told(warned, failed)
        if output is None:
            return _read(table, options, target, failed, wanted, ""), warned
        if not _is_made(target):
            again = "; name others, with resume=True"
            _convert(_read(table, options, target, failed, wanted, again), target, wanted)
        elif _receipt(target).get("columns") != wanted:
            raise InfillError(f"{output} is there already, with other columns: --overwrite makes it again")
        return output, warned


def _check(source: Any, output: Any, options: Mapping[str, Any]) -> None:
    """Refuse ends of a run that do not go together, and options that they do not have."""
    if output is not None and not _is_path(output):
        raise InfillError(f"{output!r:.80} is no path: name the file of the output, or none for a table")
    table_out = output is None or _is_parquet(output)
    for name, table in (("from", not _is_path(source) or _is_parquet(source)), ("to", table_out)):
        if table and options.get(name) is not None:
            raise InfillError(f"{name}: a table or Parquet has no other form")
    for name in ("resume", "overwrite", "shard"):
        if output is None and options.get(name):
            raise InfillError(f"{name}: it is for a run into a file: name the output")
    if not _is_path(source):
        _is_pandas(source)
    elif table_out and not _is_parquet(source):
        wanted = "a table" if output is None else "Parquet"
        raise InfillError(f"{source}: {wanted} is made of a table: give {_reader(os.fspath(source))}")
    elif output is not None and os.path.exists(output) and os.path.samefile(source, output):
        raise InfillError(f"{output} would be replaced, and is the input: choose another output")


def _check_columns(table: Any, options: Mapping[str, Any]) -> None:
    names, key = list(map(str, table.columns)), options.get("column", "template")
    if key not in names:
        raise InfillError(f"the table has no column {key!r}: its columns are {', '.join(map(repr, names))}")
    if _ROW in names:
        raise InfillError(f"the table has a column {_ROW!r}, a name that the run needs: give the column another")
    for name, many in collections.Counter(names).items():
        if many > 1:
            raise InfillError(f"the table has {many} columns whose name as text is {name!r}: rename all but one")


def _read(table: Any, options: Mapping[str, Any], target: str, failed: Mapping[int, str], wanted: Any, again: str) -> Any:
    """Return the command's CSV, and the rows that failed, as a table with the columns that are wanted."""
    told = bool(failed) or "error" in map(str, table.columns) or "error" in (wanted or ())
    made = (_of_pandas if _is_pandas(table) else _of_polars)(table, options.get("column", "template"), target, failed, told)
    if wanted is None:
        return made
    for name in wanted:
        if name not in made.columns:
            raise InfillError(f"columns: the result has no column {name!r}: its columns are {', '.join(map(repr, made.columns))}{again}")
    return made[wanted + ["error"] * (bool(failed) and "error" not in wanted)]  # no row that failed without its reason


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def _is_parquet(value: Any) -> bool:
    return _is_path(value) and os.fspath(value).lower().endswith(".parquet")


def _is_pandas(table: Any) -> bool:
    """Whether a table is that of pandas, or else of polars."""
    kind = type(table).__module__.partition(".")[0]
    if kind not in ("pandas", "polars") or not hasattr(table, "columns"):
        raise InfillError(f"{type(table).__name__} is no path, nor a table of pandas or polars")
    return kind == "pandas"


def _table(source: Any) -> Any:
    """Return the table that was given, or that of a Parquet file."""
    if not _is_path(source):
        return source
    import pandas  # type: ignore[import-untyped,unused-ignore]

    return pandas.read_parquet(source)


def _reader(path: str) -> str:
    """Return the line of Python that reads a file as a table."""
    name = path.lower().removesuffix(".gz").removesuffix(".zst")
    for ending, call in (("csv", "read_csv({!r})"), ("tsv", "read_csv({!r}, sep='\\t')"), ("jsonl", "read_json({!r}, lines=True)")):
        if name.endswith("." + ending):
            return "pandas." + call.format(path)
    return "pandas.DataFrame({'template': open(%r)})" % path if name.endswith(".txt") else "one of pandas or polars"


def _write(table: Any, folder: str, numbered: bool) -> str:
    """Write a table as JSON lines, if wanted with a column of their numbers, and return the path.

    A table without rows is a head line of CSV: JSON lines would have no columns.
    """
    records = table.to_dict("records") if _is_pandas(table) else table.to_dicts()
    path = os.path.join(folder, "table.jsonl" if records else "table.csv")
    with open(path, "w", encoding="utf-8", newline="") as file:
        if not records:
            csv.writer(file).writerow([*map(str, table.columns)] + [_ROW] * numbered)
        for i, record in enumerate(records):
            line = {str(name): _plain(value) for name, value in record.items()} | ({_ROW: i} if numbered else {})
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
    return path


def _failed(target: str) -> dict[int, str]:
    """Return the errors of rows by their numbers."""
    if not os.path.exists(target + ".rejects.jsonl"):
        return {}
    with open(target + ".rejects.jsonl", encoding="utf-8") as file:
        return {line["line"] - 1: line["error"] for line in map(json.loads, file)}


def _told(warned: list[str], failed: Mapping[int, str]) -> list[str]:
    """Return warnings that name the column of errors instead of the file of rejects."""
    text = f"rows that could not be filled: {len(failed)}; the column error says why"
    return [text if failed and ".rejects.jsonl" in w else w for w in warned]


def _is_made(target: str) -> bool:
    """Whether the output is Parquet already, and no longer the command's CSV."""
    with open(target, "rb") as file:
        return file.read(4) == b"PAR1"


def _receipt(target: str) -> dict[str, Any]:
    with open(target + ".run.json", encoding="utf-8") as file:
        return dict(json.load(file))


def _convert(made: Any, target: str, columns: Any) -> None:
    """Replace the command's CSV at target by Parquet, in one step."""
    receipt = json.dumps({**_receipt(target), "columns": columns}, indent=2, ensure_ascii=False)
    part = f"{target}.{os.getpid()}.part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(receipt + "\n")
        os.replace(part, target + ".run.json")
        made.to_parquet(part, index=False) if _is_pandas(made) else made.write_parquet(part)
        shutil.copymode(target, part)
        os.replace(part, target)
    finally:
        if os.path.exists(part):
            os.remove(part)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: what is missing is null, and an infinite number is a text, which no option takes."""
    if hasattr(value, "tolist"):  # of numpy: a number, or the list of a cell
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(of) for key, of in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(of) for of in value]
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    return value if isinstance(value, (str, int, float)) else str(value)


def _head(target: str) -> list[str]:
    """Return the names of the columns of the command's CSV."""
    with open(target, newline="", encoding="utf-8") as file:
        return next(csv.reader(file), [])


def _texts(head: Sequence[str]) -> list[str]:
    """Return the columns of the result that are texts, also where they look like numbers."""
    return [name for name in head if name == "text" or name.startswith("blank_")]


def _of_pandas(table: Any, key: str, target: str, failed: Mapping[int, str], told: bool) -> Any:
    import pandas  # type: ignore[import-untyped,unused-ignore]

    head = _head(target)
    words: Any = dict.fromkeys(_texts(head), str)
    fills = pandas.read_csv(target, keep_default_na=False, na_values=[""], dtype=words)
    whole = fills.select_dtypes("int64").columns
    fills[whole] = fills[whole].astype("Int64")  # which has a place for what is missing
    found = pandas.concat([fills, pandas.DataFrame({_ROW: list(failed)})], ignore_index=True) if failed else fills
    found = found.sort_values(_ROW, kind="stable").reset_index(drop=True)
    rows = found[_ROW].astype(int)
    if told:
        found["error"] = rows.map(failed).astype("string")
    sources = {"result": found, "table": table.iloc[rows].reset_index(drop=True)}
    columns = _columns(head, list(table.columns), key, told)
    return pandas.DataFrame({name: sources[source][of] for name, (source, of) in columns.items()})


def _of_polars(table: Any, key: str, target: str, failed: Mapping[int, str], told: bool) -> Any:
    import polars

    head = _head(target)
    fills = polars.read_csv(target, infer_schema_length=None, schema_overrides=dict.fromkeys(_texts(head), polars.String))
    fills = fills.with_columns(polars.col(_ROW).cast(polars.Int64))  # of a table without rows it is text
    wrong = polars.DataFrame({_ROW: list(failed)}, schema={_ROW: polars.Int64})
    found = polars.concat([fills, wrong], how="diagonal").sort(_ROW, maintain_order=True)
    rows = found[_ROW].to_list()
    if told:
        found = found.with_columns(polars.Series("error", [failed.get(row) for row in rows], polars.String))
    sources = {"result": found, "table": table[rows]}
    columns = _columns(head, table.columns, key, told)
    return polars.DataFrame({name: sources[source][of] for name, (source, of) in columns.items()})


def _columns(head: Sequence[str], names: Sequence[Any], key: str, told: bool) -> dict[str, tuple[str, Any]]:
    """Return the columns of a table of results: for each, whether it is the result's or the table's, and its name there.

    The command names them, in the head of its CSV: a result's own columns, and among them the
    template's, which is input_NAME if a result has the name, too. The table's other columns are
    last, in their order, with the number of the row. The column error is not the command's: one
    of the table makes room for it, under the first such name that is free.
    """
    (text,) = (name for name in names if str(name) == key)
    others = [name for name in names if str(name) != key]
    last = len(head) - len(others) - 1
    template = max((name for name in head[:last] if re.fullmatch("(input_)*" + re.escape(key), name)), key=len)
    own = {name: ("table", text) if name == template else ("result", name) for name in head[:last]}
    beside = {name: ("table", of) for name, of in zip(head[last:], others)}
    free = "error"
    while free in head:
        free = "input_" + free
    error = {"error": ("result", "error")} if told else {}
    renamed = [{free if name == "error" else name: of for name, of in part.items()} for part in (own, beside)]
    return {**renamed[0], **error, **renamed[1]}
