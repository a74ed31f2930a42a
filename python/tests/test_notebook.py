"""Infill in a real notebook, whose kernel needs the loopback."""

import pytest

SETUP = """
import os, pathlib, signal, threading, time
import pandas
from infill import Infill

m = Infill()
lists = [["red", "green"], ["old", "new"]]
table = pandas.DataFrame({
    "template": [f"the {n} [MASK] houses were [MASK]" for n in range(2000)],
    "slot": [{"1": lists[n % 2]} for n in range(2000)],
})

def interrupt():
    part = pathlib.Path("out.csv.parts/00001-of-00001.jsonl")
    while not (part.exists() and part.read_bytes().count(b"\\n") > 300):
        time.sleep(0.05)
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGINT)
"""


def test_progress(tmp_path):
    """Files, tables and lists show their progress by default, and a run goes on after an interrupt."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    cells = [
        SETUP,
        "threading.Thread(target=interrupt).start(); m.run(table, 'out.csv', top=1)",
        "m.run(table, 'out.csv', top=1, resume=True)",
        "m.run(table[:600], top=1)['blank_1'].tolist()",
        "m.run(table[:600], top=1, progress=False)['blank_1'].tolist()",
        "[r[0].values[0] for r in m.fill(table.to_dict('records'), top=1)][:600]",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.cells[1].metadata["tags"] = ["raises-exception"]
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = ["".join(o["text"] for o in cell.outputs if o.get("name") == "stderr") for cell in notebook.cells]
    values = [o["data"]["text/plain"] for cell in notebook.cells[3:] for o in cell.outputs if "data" in o]
    assert notebook.cells[1].outputs[-1]["ename"] == "KeyboardInterrupt" and " of 2000" in shown[1]
    assert "\r2000 of 2000" in shown[2] and "2000 texts, " in shown[2] and " done before" in shown[2]
    assert "\r600 of 600" in shown[3] and "infill" not in shown[3] and shown[4] == ""
    assert "\r2000 of 2000" in shown[5]
    assert len(values) == 3 and values[0] == values[1] == values[2]
