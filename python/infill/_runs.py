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

from ._process import InfillError, end, needed

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


def shows(progress: bool | None) -> bool:
    """Whether progress is shown: as asked for, else in a terminal and in a notebook."""
    if sys.stderr is None or progress is not None:
        return bool(progress) and sys.stderr is not None
    return sys.stderr.isatty() or "ipykernel.zmqshell" in sys.modules  # as tqdm.auto tells a notebook


class Line:
    """A line on standard error that changes."""

    def __init__(self) -> None:
        self._text = ""

    def write(self, text: str) -> None:
        print("\r" + text.ljust(len(self._text)), end="", file=sys.stderr, flush=True)
        self._text = text

    def end(self, text: str = "") -> None:
        """Leave a text, or the last one, if anything was written."""
        if self._text and text:
            self.write(text)
        if self._text:
            print(file=sys.stderr, flush=True)
        self._text = ""


def run(command: Sequence[str], source: str, target: str, shown: bool, told: bool) -> list[str]:
    """Run the command from path to path. Return its warnings; an error is an InfillError.

    If shown is true, its progress is one line on standard error that changes. If told is
    true, too, all else that it says is printed.
    """
    lines: list[str] = []
    bar = Line()
    words = [*command, *["--progress=500ms"] * shown, "--out", target, "--", source]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stderr is not None
        try:
            for text in process.stderr:
                at = re.match(r"infill: (\d+ of \d+(?:$|,| \().*)", text)
                if at is None:
                    lines.append(text.rstrip("\n"))
                if at is not None and shown:
                    bar.write(at[1])
                elif told:
                    bar.end()
                    print(text, end="", file=sys.stderr, flush=True)
            code = process.wait()
        except BaseException:
            end(process)
            raise
        finally:
            bar.end()
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
    if type(source).__module__.startswith("polars.") and type(source).__name__ == "LazyFrame":
        source = source.collect()
    _check(source, output, options)
    if _is_path(source) and not _is_parquet(source):
        return output, run([*program, *flags(options)], os.fspath(source), os.fspath(output), shown, shown)
    table = _table(source)
    _check_columns(table, options)
    with tempfile.TemporaryDirectory() as folder:
        if _is_path(output) and not _is_parquet(output):
            path = _write(table, folder, False)
            return output, run([*program, *flags(options)], path, os.fspath(output), shown, shown)
        path = _write(table, folder, True)
        wanted = options.pop("columns", None)
        wanted = [wanted] if isinstance(wanted, str) else wanted if wanted is None else list(wanted)
        target = os.path.join(folder, "fills.csv") if output is None else os.path.realpath(output)
        warned = run([*program, *flags({**options, "to": "csv"})], path, target, shown, shown and output is not None)
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
    made = (_of_pandas if _is_pandas(table) else _of_polars)(table, options.get("column", "template"), target, failed)
    if wanted is None:
        return made
    for name in wanted:
        if name not in made.columns:
            raise InfillError(f"columns: the result has no column {name!r}: its columns are {', '.join(map(repr, made.columns))}{again}")
    return made[wanted + ["error"] * ("error" not in wanted)]  # no row that failed without its reason


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def _is_parquet(value: Any) -> bool:
    return _is_path(value) and os.fspath(value).lower().endswith(".parquet")


def _is_pandas(table: Any) -> bool:
    """Whether a table is one of pandas, or else of polars; another is refused."""
    kind = type(table).__module__.partition(".")[0]
    if kind not in ("pandas", "polars") or type(table).__name__ != "DataFrame":
        raise InfillError(f"{type(table).__name__} is no path, nor a table of pandas or polars")
    return kind == "pandas"


def _table(source: Any) -> Any:
    """Return the table that was given, or that of a Parquet file."""
    if not _is_path(source):
        return source
    pandas = needed("pandas")

    try:
        return pandas.read_parquet(source)
    except (OSError, ValueError) as error:  # pyarrow's errors of a broken file are of these
        raise InfillError(f"{source}: it is missing, or no Parquet: {error}") from None


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
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "columns"):
        raise InfillError(f"a cell holds a table ({type(value).__name__}): give a text, a number or a list")
    if value != value:
        return None
    return value if isinstance(value, (str, int, float)) else str(value)


def _head(target: str) -> list[str]:
    """Return the names of the columns of the command's CSV."""
    with open(target, newline="", encoding="utf-8") as file:
        return next(csv.reader(file), [])


def _of_pandas(table: Any, key: str, target: str, failed: Mapping[int, str]) -> Any:
    pandas = needed("pandas")

    kinds = {"text": "string", "integer": "Int64", "unsigned": "UInt64", "number": "float64", "boolean": "boolean"}
    declared = _declared(target)
    cells = pandas.read_csv(target, dtype=str, keep_default_na=False, na_values=[""])
    cells[_ROW] = cells[_ROW].astype(int)
    wrong = pandas.DataFrame({_ROW: pandas.Series(list(failed), dtype=int)})
    found = pandas.concat([cells, wrong], ignore_index=True).sort_values(_ROW, kind="stable").reset_index(drop=True)
    rows = found[_ROW]

    def typed(name: str) -> Any:
        if name == "error":
            return rows.map(failed).astype("string")
        of = found[name] if name in found else pandas.Series([None] * len(found), dtype=object)
        kind = declared[name]
        if kind == "boolean":
            of = of.map({"true": True, "false": False})
        if kind in ("integer", "unsigned"):  # by whole numbers, as a float has 53 bits
            of = pandas.Series([pandas.NA if pandas.isna(cell) else int(cell) for cell in of], dtype=kinds[kind])
        return of.astype(kinds[kind])

    copied = table.iloc[rows].reset_index(drop=True)
    columns = _columns(declared, list(table.columns), key)
    return pandas.DataFrame({name: typed(of) if own else copied[of] for name, (own, of) in columns.items()})


def _of_polars(table: Any, key: str, target: str, failed: Mapping[int, str]) -> Any:
    polars = needed("polars")

    kinds = {"text": polars.String, "integer": polars.Int64, "unsigned": polars.UInt64, "number": polars.Float64, "boolean": polars.Boolean}
    declared = _declared(target)
    cells = polars.read_csv(target, infer_schema=False).with_columns(polars.col(_ROW).cast(polars.Int64))
    wrong = polars.DataFrame({_ROW: list(failed)}, schema={_ROW: polars.Int64})
    found = polars.concat([cells, wrong], how="diagonal").sort(_ROW, maintain_order=True)
    rows = found[_ROW].to_list()

    def typed(name: str) -> Any:
        if name == "error":
            return polars.Series(name, [failed.get(row) for row in rows], polars.String)
        if name not in found.columns:
            return polars.Series(name, [None] * len(found), kinds[declared[name]])
        if declared[name] == "boolean":
            return found[name] == "true"
        return found[name].cast(kinds[declared[name]])

    copied = table[rows]
    columns = _columns(declared, table.columns, key)
    return polars.DataFrame({name: typed(of) if own else copied[of] for name, (own, of) in columns.items()})


def _declared(target: str) -> dict[str, str]:
    """Return the columns of the result with their types, as the command declares them beside its output."""
    return {column["name"]: column["type"] for column in _receipt(target)["table"] if column["name"] != _ROW}


def _columns(declared: Mapping[str, str], names: Sequence[Any], key: str) -> dict[str, tuple[bool, Any]]:
    """Return the columns of a table of results: for each, whether it is the result's own, and its name in its table.

    The table's columns are behind the result's, in their order, and the template's is among
    these. The column error is not the command's: one of the table makes room for it, under the
    first such name that is free.
    """
    (text,) = (name for name in names if str(name) == key)
    others = iter([name for name in names if str(name) != key])
    free = "error"
    while free in declared:
        free = "input_" + free
    own: dict[str, tuple[bool, Any]] = {}
    copied: dict[str, tuple[bool, Any]] = {}
    for name, kind in declared.items():
        shown = free if name == "error" else name
        if kind == "copied":
            copied[shown] = (False, next(others))
        else:
            own[shown] = (False, text) if kind == "template" else (True, name)
    return {**own, "error": (True, "error"), **copied}
