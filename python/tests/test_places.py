"""The blocks of docs/how-to/where-the-data-lives.md, each where its library is."""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys

import pytest

from infill import Infill

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "how-to" / "where-the-data-lives.md"
BLOCKS = {
    re.search(r"(?:import|from) (\w+)", block).group(1): block
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
}
TEXTS = [f"{n} men [MASK] the house." for n in "two three four five six seven eight nine ten".split()]


def loopback():
    """Whether a process can reach itself, which a namespace without a network forbids."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        try:
            socket.create_connection(server.getsockname(), 1).close()
        except OSError:
            return False
        return True


def test_page_has_all():
    assert list(BLOCKS) == ["pandas", "polars", "duckdb", "datasets", "dask", "ray", "pyspark"]


@pytest.mark.parametrize("library", BLOCKS)
def test_place(tmp_path, library):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pytest.importorskip(library)
    if library in ("ray", "pyspark") and not loopback():
        pytest.skip("it needs the loopback")
    if library == "pyspark" and not shutil.which("java"):
        pytest.skip("no Java here")
    pandas.DataFrame({"id": range(len(TEXTS)), "text": TEXTS}).to_parquet(tmp_path / "texts.parquet")
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "HF_HOME": str(tmp_path / "hf")}
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS[library]], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    table = pandas.read_parquet(tmp_path / "fills.parquet").sort_values("id")
    with Infill() as m:
        want = [r[0].text for r in m.fill(TEXTS, top=1)]
    assert list(table["id"]) == list(range(len(TEXTS))) and list(table["text"]) == TEXTS
    assert list(table["fill"]) == want
