"""Tests of the installed wheel: pytest in an environment that has it."""

import copy
import gc
import importlib.metadata
import json
import math
import multiprocessing
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
import warnings
import weakref

import pytest

from infill import Infill, InfillError, pipeline

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def m():
    with Infill() as made:
        yield made


def test_fill(m):
    result = m.fill("He had [MASK] me — [MASK].", top=3, seed=1)
    assert len(result) == 3 and result.proven and 0 < result.left_out_at_most < result[2].probability
    assert [f.probability for f in result] == sorted((f.probability for f in result), reverse=True)
    for fill in result:
        assert tuple(fill.text[a:b] for a, b in fill.spans) == fill.values
    assert "<table>" in result._repr_html_() and result.rows()[0]["blank_2"] == result[0].values[1]
    assert len(result.alone) == 2 and max(result.alone[0].values()) > result[0].probability


def test_long_text(m):
    long = "[MASK] house" + " blue" * 700
    fill = pipeline()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        window = fill(long)
        assert "tokens the model sees the 512 around the blanks" in str(said[0].message) and len(said) == 1
        cut = fill(long, tokenizer_kwargs={"truncation": True})
        assert cut == fill("[MASK] house" + " blue" * 508) and len(said) == 1
        assert cut[0]["sequence"].count("blue") == 508 and window[0]["sequence"].count("blue") == 700
        assert fill(long, tokenizer_kwargs={"truncation": "do_not_truncate"}) == window
        with pytest.raises(InfillError, match="the cut takes a blank off"):
            fill("blue " * 700 + "[MASK]", tokenizer_kwargs={"truncation": True})
        with pytest.raises(ValueError, match="truncation: 3"):
            fill(long, tokenizer_kwargs={"truncation": 3})
    assert "tokens the model sees the 512 around the blanks" in m.fill(long).warnings[0]
    assert m.score("a house .").warnings == ()
    assert "[UNK]" in m.score("a 猫 .").warnings[0]


def test_list_of_templates(m):
    templates = [f"{n} men [MASK] the house." for n in range(2, 302)]
    results = m.fill(templates, top=1)
    assert [r.template for r in results] == templates
    assert results[7][0] == m.fill(templates[7], top=1)[0]


def test_rows(m):
    """A row has options of its own, as a line of JSON has them, and answers come in the order of the rows."""
    lists = [["red", "green"], ["old", "new"]]
    rows = [{"template": "a [MASK] house", "slot": {1: lists[n % 2]}, "id": n} for n in range(300)]
    results = m.fill([*rows, "a [MASK] day"], top=1)
    assert [r.raw.get("id") for r in results] == [*range(300), None]
    for n, result in enumerate(results[:300]):
        assert result[0].values[0] in lists[n % 2] and len(result) == 1
    one = m.fill({"template": "he had [MASK] me", "slot": {"1": ["told"]}, "seed": None, "budget": 1e3}, seed=3)
    assert one[0].text == "he had told me" and results[300][0] == m.fill("a [MASK] day", top=1)[0]
    frame = pytest.importorskip("pandas").DataFrame({"template": ["a [MASK] day"] * 2, "top": [2, None]})
    assert [len(r) for r in m.fill(frame.to_dict("records"))] == [2, 5]
    row = {"template": "a [MASK]", "top": 2}
    for wrong, says in (
        (row, "top: the row has 2 and the call 1: give one of them"),
        ({"template": "a [MASK]", "tpo": 2}, "no such option"),
        ({"text": "a [MASK]"}, "the row has no template: its keys are text"),
        ({"template": ["a [MASK]"]}, r"template: \['a \[MASK\]'\] is no text"),
        ({"template": "a [MASK]", "slot": {1: "a", "1": "b"}}, "slot: a blank is given twice"),
    ):
        with pytest.raises(InfillError, match=says):
            m.fill(wrong, top=1)
        with pytest.raises(InfillError, match="item 1: .*" + says):
            m.fill(["a [MASK]", wrong], top=1)
        kept = m.fill(["a [MASK]", wrong, "the [MASK]"], top=1, errors="keep")
        assert str(kept[1]).startswith("item 1: ") and [len(kept[0]), len(kept[2])] == [1, 1]


def test_options(m):
    listed = m.fill("a [MASK] house", slot={1: ["red", "green"]})
    assert {f.values[0] for f in listed} == {"red", "green"} and abs(sum(f.share for f in listed) - 1) < 1e-9
    assert listed.rows()[0]["share"] == listed[0].share
    alone = m.fill("a [MASK] house", top=3)
    assert [(f.values[0], f.probability) for f in alone] == list(alone.alone[0].items())[:3]
    for spelled in ("a ___ house", "a <mask> house"):
        assert [f.text for f in m.fill(spelled, top=3)] == [f.text for f in alone]
    assert m.fill("a @@ house", top=1, blank="@@")[0].text == alone[0].text
    draws = m.fill("a [MASK] house", samples=5, seed=3)
    assert draws.proven is None and draws.raw["method"] == "draws" and draws[0].share is None
    assert [f.text for f in draws] == [f.text for f in m.fill("a [MASK] house", samples=5, seed=3)]


def test_sampler(m):
    result = m.fill("a [MASK] [MASK] house", sampler="dmala", steps=20, samples=10, seed=3)
    assert result.raw["method"] == "dmala" and result.proven is None and result[0].probability is None
    assert 0 < result[0].share < 1 and result[0].log_likelihood < 0
    with pytest.raises(InfillError, match="sampler"):
        m.fill("a [MASK] house", steps=20)


def test_no_limits(m):
    """The limits of a server for others do not hold here."""
    assert len(m.fill("[MASK] the " * 20 + "end.", top=1, budget=50)[0].values) == 20
    assert len(m.fill_mask("the [MASK] sat", top_k=2000)) == 2000
    assert len(m.fill(["a [MASK]"] * 400, top=1)) == 400


def test_a_module_that_is_not_there(m, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InfillError, match="needs pandas"):
        m.fill("he had [MASK] me").to_pandas()
    with pytest.raises(InfillError, match="needs pandas"):
        m.run("there-is-none.parquet", "out.csv")
    with pytest.raises(InfillError, match="given twice"):
        m.fill("he had [MASK] me", slot={1: ["told"], "1": ["left"]})


def test_errors(m):
    with pytest.raises(InfillError, match="no blank"):
        m.fill("no blank")
    with pytest.raises(InfillError, match="item 1: .*no blank"):
        m.fill(["a [MASK]", "no blank"])
    with pytest.raises(InfillError, match="no such option"):
        m.fill("a [MASK]", tpo=3)
    with pytest.raises(InfillError, match="no-such-model"):
        Infill("no-such-model").fill("a [MASK]")
    with pytest.raises(InfillError, match="does not start"):
        Infill(program=str(HERE / "none")).fill("a [MASK]")
    with pytest.raises(ValueError, match="fill-mask"):
        pipeline("text-generation")


def test_score(m):
    good, bad = m.score(["The keys are here.", "The keys is here."])
    assert good.log_likelihood > bad.log_likelihood and good.pseudo_perplexity < bad.pseudo_perplexity
    assert abs(sum(p for _, p in good.tokens) - good.log_likelihood) < 1e-6
    (pair,) = m.score_pairs([("The keys are here.", "The keys is here.")])
    assert pair.right and pair.difference == good.log_likelihood - bad.log_likelihood


def test_words(m):
    score = m.score("It rained .", context="The sky was grey .")
    assert [word for word, _ in score.words] == ["It", "rained", "."]
    assert abs(sum(p for _, p in score.words) - score.log_likelihood) < 1e-9
    assert score.log_likelihood > m.score("It rained .").log_likelihood
    (entropy,) = m.fill("he had [MASK] me").entropy
    assert 0 < entropy < 15


def test_gaps(m):
    exercise = m.gaps("The café's [gate] was open.", options=4)
    (gap,) = exercise.rows()
    assert exercise.text[gap["start"] : gap["end"]] == gap["key"] == "gate" in gap["options"]
    assert len(set(gap["options"])) == 4 and "door" in gap["rivals"]
    assert 2 ** -gap["bits"] == pytest.approx(gap["probability"])
    assert [g["key"] for g in m.gaps("The gate was open.", words=["gate", "door"]).rows()] == ["gate"]
    written = m.gaps("The [gate|=door|barn] was open.", options=4, apart=8).rows()[0]
    assert written["right"] == ["door"] and {"gate", "door", "barn"} < set(written["options"])
    named = m.gaps("The dog saw Anna.", every=1, names=True, protect=["saw", "~d.g"])
    assert [g["key"] for g in named.rows()] == ["The", "Anna"]
    with pytest.raises(InfillError, match="brackets"):
        m.gaps("The gate was open.")


def test_pandas(m):
    pandas = pytest.importorskip("pandas")
    frame = m.fill("a [MASK] house", top=2).to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == ["text", "probability", "log_likelihood", "blank_1"]


def test_one_wrong(m):
    """A wrong one of many is named, and the others are answered if asked for."""
    texts = ["a [MASK]", "no blank", "the [MASK] sat"]
    kept = m.fill(texts, top=1, errors="keep")
    assert [type(k).__name__ for k in kept] == ["Result", "InfillError", "Result"]
    assert str(kept[1]).startswith("item 1: no blank") and kept[2][0].text == m.fill(texts[2], top=1)[0].text
    with pytest.raises(InfillError, match="item 1: no blank"):
        m.fill(texts, top=1)
    scores = m.score(["a word", ""], errors="keep")
    assert scores[0].log_likelihood < 0 and str(scores[1]).startswith("item 1: ") and "text 1" not in str(scores[1])
    with pytest.raises(InfillError) as caught:
        m.score(["a", ""])
    assert str(caught.value).count("item 1: ") == 1 and "text 1" not in str(caught.value)
    with pytest.raises(ValueError, match="errors"):
        m.fill(texts, errors="ignore")
    assert {f.values[0] for f in m.fill("a [MASK] house", slot=["red", "green"])} == {"red", "green"}


def test_facts(m):
    import infill

    installed = [d.version for d in importlib.metadata.distributions(name="infill")]
    assert infill.__version__ == (installed or ["unknown"])[0]
    assert "model:small-uncased@" in m.fill("a [MASK]", top=1).signature
    with pytest.raises(InfillError) as caught:
        m.fill_mask("they [MASK:1-2] .")
    assert "send it to Infill.fill" in str(caught.value) and "POST" not in str(caught.value)


def test_pipeline_options():
    for options in ({"dtype": "auto"}, {"dtype": "float32"}, {"use_fast": True}):
        assert pipeline("fill-mask", **options)("a [MASK]", top_k=1)[0]["score"] > 0
    with pytest.warns(FutureWarning, match="write dtype"):
        pipeline("fill-mask", torch_dtype="auto")
    with pytest.raises(ValueError, match="float16 is not here"):
        pipeline("fill-mask", dtype="float16")
    with pytest.raises(InfillError, match="infill models pull org/tiny@v1"):
        pipeline("fill-mask", model="org/tiny", revision="v1")
    with pytest.raises(ValueError, match="revision"):
        pipeline("fill-mask", revision="v1")


def test_threads(m):
    answers = {}

    def work(n):
        answers[n] = m.fill(f"{n} men [MASK] it.", top=1)[0].text

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(answers[n].startswith(f"{n} men ") for n in range(16))


def test_program_is_started_again():
    with Infill() as m:
        first = m.fill("a [MASK] house", top=1)[0]
        ended = weakref.ref(m._process._child)
        os.kill(m._process._child._program.pid, signal.SIGKILL)
        assert m.fill("a [MASK] house", top=1)[0] == first
        gc.collect()
        assert ended() is None  # nothing keeps it
        m.close()
        assert m.fill("a [MASK] house", top=1)[0] == first


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork(m):
    first = m.fill("a [MASK] house", top=1)[0]
    child = os.fork()
    if child == 0:
        same = m.fill("a [MASK] house", top=1)[0] == first
        m.close()
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert m.fill("a [MASK] house", top=1)[0] == first


def runs(code, **options):
    done = subprocess.run([sys.executable, "-X", "dev", "-c", code], check=True, capture_output=True, text=True, **options)
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.parametrize(
    "before", ["", "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)", "import sys; sys.stderr = None"]
)
def test_odd_interpreters(before):
    """Without an own child's end, or standard error; and a call after everything else has ended."""
    code = f"""{before}
import atexit, infill
m = infill.Infill()
atexit.register(lambda: print(len(m.fill(["a [MASK]"] * 9))))
m.fill(["a [MASK]"] * 9)
"""
    assert runs(code) == "9"


def test_working_folder(tmp_path):
    shutil.copytree(HERE.parent.parent / "models" / "small-uncased", tmp_path / "folder" / "model")
    code = "import infill, os; m = infill.Infill('folder/model'); os.chdir('/'); print(len(m.fill('a [MASK]', top=3)))"
    assert runs(code, cwd=tmp_path) == "3"


@pytest.mark.skipif(sys.platform != "linux", reason="looks in /proc")
def test_command_is_interrupted():
    command = [sys.executable, "-m", "infill", "--budget", "600s", "-k", "10", LONG]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        while b"--budget" not in (line := pathlib.Path(f"/proc/{running.pid}/cmdline").read_bytes()) or b"-m" in line:
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        assert "Traceback" not in running.communicate()[1]


def test_ends_with_the_interpreter():
    code = "import infill; m = infill.Infill(); m.fill('a [MASK]'); print(m._process._child._program.pid)"
    pid = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_command():
    for command in (["infill"], [sys.executable, "-m", "infill"]):
        done = subprocess.run([*command, "--format", "json", "a [MASK] house"], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)[0]["proven"]


@pytest.mark.parametrize("missing", [math.nan, None, 3, b"a [MASK]"], ids=str)
def test_missing_texts(m, missing):
    """A cell without a text is an error that names its row, and nothing waits for an answer."""
    for ask in (m.fill, m.score, m.fill_mask):
        with pytest.raises(InfillError, match="item 1: .* is no text"):
            ask(["a [MASK]", missing])
        with pytest.raises(InfillError, match="is no text"):
            ask(missing)
    with pytest.raises(InfillError, match="pair 1: .* is no text"):
        m.score_pairs([("a", "b"), ("a", missing)])
    with pytest.raises(InfillError, match="item 1: the row has no template: its keys are label"):
        m.fill(["a [MASK]", {"label": missing}])
    with pytest.raises(InfillError, match="pair 1: .*control character"):
        m.score_pairs([("a", "b"), ("a\0", "b")])


def test_tables(m):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a [MASK]": ["a [MASK]"]})
    for table in (frame, frame.to_numpy(), frame.to_numpy()[0, 0:1].reshape(())):
        with pytest.raises(InfillError, match="nor a list of texts"):
            m.fill(table)
    for ask in (m.score, m.fill_mask):
        with pytest.raises(InfillError, match="nor a list of texts"):
            ask({"a [MASK]": 1})


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_no_numbers(m, number):
    with pytest.raises(InfillError, match="budget: .* cannot be sent"):
        m.fill("a [MASK]", budget=number)
    with pytest.raises(InfillError, match="item 0: slot: .* cannot be sent"):
        m.fill(["a [MASK]", "b [MASK]"], slot={1: ["red", number]})


def test_values_of_numpy_and_pandas(m):
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    texts = ["a [MASK] house", "a [MASK] day"]
    want = m.fill(texts, top=2, slot={1: ["green", "red"]})
    frame = pandas.DataFrame({"t": texts}, index=[7, 3])
    for given in (numpy.array(texts), frame["t"], frame["t"].astype("category"), (t for t in texts), tuple(texts)):
        results = m.fill(given, top=numpy.int64(2), slot={numpy.int32(1): numpy.array(["green", "red"])})
        assert [list(r) for r in results] == [list(r) for r in want]
    for words in ({"red", "green"}, pandas.Series(["green", "red"], [2, 1]), (w for w in ["green", "red"])):
        assert list(m.fill(texts[0], top=2, slot={1: words})) == list(want[0])
    assert list(m.fill(numpy.str_(texts[0]), top=2, slot={1: ["green", "red"]})) == list(want[0])
    assert m.fill(frame["t"][:0]) == [] and m.score([]) == [] and m.score_pairs([]) == []
    with pytest.raises(InfillError, match="item 1: nan is no text"):
        m.fill(pandas.Series(["a [MASK]", math.nan]))


def test_texts_of_all_kinds(m):
    text = "a \U0001f600 \u00e9 \u2028 [MASK]"
    fill = m.fill(text, top=1)[0]
    assert fill.text[: text.index("[")] == text[: text.index("[")]
    assert tuple(fill.text[a:b] for a, b in fill.spans) == fill.values
    with pytest.raises(InfillError, match="item 1: .*surrogate"):
        m.fill(["a [MASK]", "a \ud800 [MASK]"])
    with pytest.raises(InfillError, match="text too long"):
        m.fill("a [MASK] " + "x " * 3_000_000)


def test_budgets(m):
    for budget in ("2s", "7200s", 1e4):
        assert m.fill("a [MASK] and [MASK]", top=1, budget=budget).proven


def test_devices():
    with Infill(device=-1) as m:
        first = m.fill("a [MASK] house", top=1)
    with Infill(device="cpu") as m:
        assert list(m.fill("a [MASK] house", top=1)) == list(first)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"device": "gpu"}, '--device: "gpu" is not one of'),
        ({"device": 4000}, "cuda"),
        ({"threads": "x"}, '--threads: "x" is not a whole number'),
        ({"threads": -3}, "--threads: -3 is not"),
        ({"model": "no-such-model"}, "fetch it with: infill models pull no-such-model"),
        ({"model": HERE}, "config.json"),
    ],
    ids=str,
)
def test_reasons(options, says):
    """What the program says of its options comes through."""
    with pytest.raises(InfillError) as caught:
        Infill(**options).fill("a [MASK]")
    assert says in str(caught.value) and "--help" not in str(caught.value)
    with pytest.raises(InfillError):
        pipeline("fill-mask", **options)
    with pytest.raises(TypeError, match="precision"):
        Infill(**options, precision="int8")


def stub(folder, code):
    """Return a program that answers as the code says: say(text) writes, lines are the requests."""
    path = folder / "stub.py"
    path.write_text(
        f"#!{sys.executable}\nimport json, os, signal, sys\nlines = map(json.loads, sys.stdin)\n"
        "def say(text): os.write(1, text.encode())\n"
        'def answer(line, body, status=200): say(json.dumps({"id": line["id"], "status": status, "body": body}) + "\\n")\n' + code
    )
    path.chmod(0o755)
    return str(path)


SCORE = '[{"text": "a", "log_likelihood": -1, "pseudo_perplexity": 2, "tokens": [], "words": []}]'


@pytest.mark.skipif(sys.platform == "win32", reason="no #! here")
@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("next(lines); say('{\"id\": 1, \"sta'); os.kill(os.getpid(), signal.SIGKILL)", "signal 9"),
        ("next(lines); say('WARNING of a library\\n'); next(lines)", "WARNING of a library"),
        ("next(lines); say('[]\\n'); next(lines)", "no answer"),
        ("next(lines); say('{\"id\": null, \"status\": 400, \"body\": \"no request\"}\\n'); next(lines)", "no request"),
        ("next(lines); sys.exit('infill: out of luck\\nhint: try it later')", "out of luck; try it later"),
        ("next(lines); sys.exit('infill: warning: old\\npanic: index\\n\\ngoroutine 1\\nmain.go:3')", "panic: index"),
        ("sys.exit(7)", "exit code 7"),
    ],
)
def test_broken_answers(tmp_path, code, says):
    """Whoever waits is told, and the next call starts another program."""
    with Infill(program=stub(tmp_path, code)) as m:
        for texts in ("a", ["a"] * 100):
            with pytest.raises(InfillError) as caught:
                m.score(texts)
            assert says in str(caught.value)
        stub(tmp_path, f"for line in lines: answer(line, {SCORE})")
        m.close()
        assert m.score("a").log_likelihood == -1


@pytest.mark.skipif(sys.platform == "win32", reason="no #! here")
def test_torn_once(tmp_path):
    """A program that is killed while it writes is started again, and asked again."""
    code = f"""
line, mark = next(lines), {str(tmp_path / "mark")!r}
if not os.path.exists(mark):
    open(mark, "w").close()
    say(json.dumps({{"id": line["id"], "status": 200, "body": "x" * 5_000_000}})[:-9])
    os.kill(os.getpid(), signal.SIGKILL)
answer(line, {SCORE})
for line in lines: answer(line, {SCORE})
"""
    with Infill(program=stub(tmp_path, code)) as m:
        assert len(m.score(["a"] * 100)) == 100


@pytest.mark.skipif(sys.platform == "win32", reason="no #! here")
def test_own_failures(tmp_path):
    """What a server hides from strangers is told here, however much else the program says."""
    code = """
for line in lines:
    os.write(2, b"infill: warning: noise\\n" * 100_000 + b"infill: warning: CUDA out of memory\\n")
    say(json.dumps({"id": line["id"], "status": 500, "body": {"error": "the server failed"}}) + "\\n")
"""
    with Infill(program=stub(tmp_path, code)) as m, pytest.raises(InfillError) as caught:
        m.score("a")
    assert str(caught.value) == "the server failed: CUDA out of memory"


LONG = "the [MASK] [MASK] [MASK] [MASK] [MASK] [MASK] end"


def gone(pid):
    for _ in range(200):
        if not pathlib.Path(f"/proc/{pid}").exists() or pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return True
        time.sleep(0.1)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks in /proc")
@pytest.mark.parametrize("texts", [LONG, [LONG] * 200], ids=["one", "many"])
def test_interrupt(texts):
    """An interrupt ends the work, and the next call is answered."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs behind a shell's & ignores it
    with Infill() as m:
        first, pid = m.fill("a [MASK] house", top=1)[0], m._process._child._program.pid
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            m.fill(texts, budget="600s", top=10)
        assert gone(pid) and time.monotonic() - began < 60
        assert m.fill("a [MASK] house", top=1)[0] == first


def test_interrupt_spares_the_next_program(monkeypatch):
    """A request that another thread sends again, while the interrupt is at work, is answered."""
    from infill._process import _Child

    fail, again = _Child.fail, []

    def fail_and_send(child, error):
        fail(child, error)
        if child is first and not again:  # a program that is closed ends as interrupted, too
            again.append(m._process.send("/v1/models", None))

    with Infill() as m:
        m.fill("a [MASK]", top=1)
        first = m._process._child
        monkeypatch.setattr(_Child, "fail", fail_and_send)
        m._process.interrupt()
        assert again[0].result().body and first._program.poll() is not None


@pytest.mark.skipif(sys.platform != "linux", reason="looks in /proc")
@pytest.mark.parametrize("number", [1, 200])
def test_killed_parent(number):
    """The program does not outlive whoever asked, whatever is at work."""
    code = (
        "import infill; m = infill.Infill(); m.fill('a [MASK]'); print(m._process._child._program.pid, flush=True); "
        f"m.fill([{LONG!r}] * {number}, budget='600s', top=10)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        time.sleep(0.5)
        parent.kill()
    assert gone(pid)


def test_other_threads():
    """An interrupt or an error of one thread costs the others no answer; closing tells those who wait."""
    with Infill() as m:
        m.fill("a [MASK]")
        answers = []

        def work(**options):
            try:
                answers.append(m.fill(LONG, top=1, **options)[0].text)
            except InfillError as error:
                answers.append(str(error))

        other = threading.Thread(target=work, kwargs={"budget": "2s"})
        other.start()
        with pytest.raises(InfillError, match="item 0: no blank"):
            m.fill(["none"] + [LONG] * 9, budget="600s")
        other.join()
        assert answers[0].startswith("the ")
        other = threading.Thread(target=work, kwargs={"budget": "600s"})
        other.start()
        while m._process._child is None or not m._process._child._waiting:
            time.sleep(0.01)
        m.close()
        other.join()
        assert answers[1] == "closed before the answer came" and m._process._child is None


def test_copies(m):
    first = m.fill("a [MASK] house", top=1)[0]
    for same in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m), pickle.loads(pickle.dumps(pipeline("fill-mask"))).infill):
        with same:
            assert same.fill("a [MASK] house", top=1)[0] == first
            assert same._process._child is not m._process._child
    assert pickle.loads(pickle.dumps(m.fill("a [MASK] house", top=1)))[0] == first


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_pool(m):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(m.score, ["a house", "a day"]) == m.score(["a house", "a day"])


def test_no_warning():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        m = Infill()
        m.fill("a [MASK]")
        m.close()
        m.close()
        Infill().fill("a [MASK]")
        del m
        gc.collect()
    assert not [w for w in caught if w.category is ResourceWarning]
    assert runs("import infill; m = infill.Infill(); m.fill('a [MASK]')") == ""


def expected():
    return json.loads((HERE / "fill_mask.json").read_text())


@pytest.fixture(scope="module")
def pipe():
    return pipeline("fill-mask", device=-1)


@pytest.mark.parametrize("case", expected(), ids=lambda case: f"{str(case['inputs'])[:30]} {case['parameters']}")
def test_pipeline(m, pipe, case):
    """The answers are those of transformers.pipeline, see fill_mask.py."""
    inputs, parameters, answer = case["inputs"], case["parameters"], case["answer"]
    if isinstance(answer, dict):
        assert answer["error"] == "ValueError"
        with pytest.raises(ValueError):
            pipe(inputs, **parameters)
        return
    compare(pipe(inputs, **parameters), answer)
    if not parameters.keys() - {"top_k", "targets"}:
        compare(m.fill_mask(inputs, **parameters), answer)
        compare(pipeline("fill-mask", **parameters)(inputs), answer)


def test_pipeline_reads_its_mask_only(pipe):
    """Other spellings of a blank are text, and so is a backslash."""
    for text in ("a ___ [MASK] <mask>", "a \\[MASK] house", "\\\\[MASK] [MASK:2] \\", "a [MASK] [MASK~x.*]"):
        assert pipe(text, targets="red")[0]["sequence"] == text.replace("[MASK]", "red")
    with pytest.raises(InfillError, match="no blank"):
        pipe("a ___ house")


def test_another_mask():
    """The error of a text without the model's mask names that mask, and not another one."""
    roberta = pipeline("fill-mask", model=HERE.parent.parent / "internal" / "bert" / "testdata" / "roberta")
    mask = roberta.tokenizer.mask_token
    assert mask == "<mask>" and roberta(f"a {mask} house")
    for text in ("a [MASK] house", "a ___ house", "a house"):
        with pytest.raises(InfillError, match="write <mask> where a word is wanted") as caught:
            roberta(text)
        assert "or ___" not in str(caught.value)


def test_targets_of_several_pieces(m, pipe):
    """The first piece is rated, with a warning at the line that asked."""
    for ask in (m.fill_mask, pipe):
        with pytest.warns(UserWarning, match="`toldness` does not exist .* Replacing with `told`") as caught:
            assert [c["token_str"] for c in ask("he had [MASK] me", targets=["toldness", "red"], top_k=1)] == ["told"]
        assert [w.filename for w in caught] == [__file__]


def test_text_of_a_list(m, pipe):
    """A text that is a JSON list is refused where a list could stand; it would be one text with brackets."""
    calls = (
        lambda: m.score('["he had told me", "he had told I"]'),
        lambda: m.fill('["he had [MASK] me"]'),
        lambda: m.fill_mask('["he had [MASK] me"]'),
        lambda: pipe('["he had [MASK] me"]'),
        lambda: m.fill_mask("he had [MASK] me", targets='["told", "red"]'),
        lambda: m.gaps("he had told me", words='["told"]'),
    )
    for call in calls:
        with pytest.raises(InfillError, match="is a JSON list: give the list itself"):
            call()
    assert m.score("[he had told me]").text == "[he had told me]"
    assert m.score("[1]").text == "[1]"
    assert m.fill_mask("he had [MASK] me", targets=",")[0]["token_str"] == ","


def test_errors_are_of_the_call(m):
    """A traceback has the call and the public method, and no other error before."""
    for call in (lambda: m.fill("a"), lambda: m.fill(["a [MASK]", "a"]), lambda: m.score(""), lambda: m.gaps("a")):
        with pytest.raises(InfillError) as caught:
            call()
        assert caught.value.__context__ is None and len(caught.traceback) == 3


def test_pipeline_as_there(pipe):
    text = f"a {pipe.tokenizer.mask_token} house"
    assert pipe.task == "fill-mask" and pipe(text) == pipe([text]) == pipe((text,)) == list(pipe(t for t in [text]))[0]
    assert pipe(text, targets={"red", "old"}, top_k=1) == pipe(text, targets=("old", "red"), top_k=1)
    numpy = pytest.importorskip("numpy")
    assert pipe(numpy.array([text, text]), top_k=numpy.int64(2), targets=numpy.array(["red", "old"])) == [
        pipe(text, targets=["red", "old"])
    ] * 2
    with pytest.raises(InfillError, match="no-such-model"):
        pipeline("fill-mask", "no-such-model")
    with pytest.raises(TypeError, match="max_length"):
        pipe(text, tokenizer_kwargs={"max_length": 8})
    with pytest.raises(TypeError, match="integer"):
        pipe(text, top_k=2.0)
    with pytest.raises(TypeError, match="tops"):
        pipe(text, tops=3)


def compare(got, want):
    if isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            compare(g, w)
        return
    assert got["token"] == want["token"] and got["token_str"] == want["token_str"]
    assert abs(got["score"] - want["score"]) < 1e-4
    # With several blanks the pipeline leaves the marks of begin and end in.
    sequence = want["sequence"].removeprefix("[CLS] ").removesuffix(" [SEP]")
    assert got["sequence"].lower().replace(" ", "") == sequence.lower().replace(" ", "")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("for l in lines: answer(l, {})", "answer cannot be read"),
        ("for l in lines: answer(l, [])", "answer cannot be read"),
        ("for l in lines: answer({'id': l['id'] + 7}, {})\nimport time; time.sleep(99)", "what is no answer"),
        ("next(lines); os.close(1)\nimport time; time.sleep(99)", "closed its output"),
        ("say('{' + next(lines)['path'])\nimport time; time.sleep(99)", "no sign of life for 3 s"),
        ("for l in lines: answer(l, {'error': 'the client left'}, 499)", "the program was told to end"),
    ],
    ids=["no result", "a list", "another id", "closed output", "torn line", "ending"],
)
def test_odd_programs(tmp_path, monkeypatch, code, says):
    """A program that answers oddly, and lives on, holds nobody up."""
    monkeypatch.setattr("infill._process._APART", 0.25)
    began = time.monotonic()
    with Infill(program=stub(tmp_path, code)) as odd:
        with pytest.raises(InfillError, match=says):
            odd.fill("a [MASK]")
    assert time.monotonic() - began < 20


def test_missing_texts_are_kept(m):
    """With errors="keep", a row without a text is an error, and the others have answers."""
    texts = ["a [MASK]", math.nan, None, 3, b"a [MASK]", "no blank", "the [MASK] sat"]
    kept = m.fill(texts, top=1, errors="keep")
    assert [isinstance(k, InfillError) for k in kept] == [False, True, True, True, True, True, False]
    assert str(kept[1]) == "item 1: nan is no text: fill in what is missing, or leave it out"
    assert str(kept[5]).startswith("item 5: no blank") and kept[6][0] == m.fill(texts[6], top=1)[0]
    scores = m.score(["a word", math.nan, "two words"], errors="keep")
    assert scores[0].log_likelihood < 0 and str(scores[1]).startswith("item 1: nan is no text") and scores[2] == m.score("two words")
    assert [str(k)[:8] for k in m.fill([None] * 3, errors="keep")] == ["item 0: ", "item 1: ", "item 2: "]
    with pytest.raises(InfillError, match="nor a list of texts"):
        m.fill(3, errors="keep")
    many = m.score(["a word"] * 300 + [math.nan] + ["a word"] * 300, errors="keep")
    assert [i for i, s in enumerate(many) if isinstance(s, InfillError)] == [300]


def test_columns_with_missing_values(m):
    pandas = pytest.importorskip("pandas")
    column = pandas.Series(["a [MASK] house", None, pandas.NA, math.nan, "a [MASK] day"])
    for given in (column, column.astype("string"), column.to_numpy()):
        kept = m.fill(given, top=1, errors="keep")
        assert [isinstance(k, InfillError) for k in kept] == [False, True, True, True, False]


def test_arguments_of_transformers():
    text = "he had [MASK] me"
    want = pipeline("fill-mask", model="small-uncased")(text)

    class Tokenizer:
        name_or_path = "small-uncased"

    for options in (
        {"framework": "pt"},
        {"device_map": "auto"},
        {"device_map": {"embeddings": "cpu", "head": "cuda:0"}},
        {"trust_remote_code": True},
        {"token": "hf_abc", "processor": object()},
        {"model_kwargs": {"attn_implementation": "sdpa", "low_cpu_mem_usage": True}},
    ):
        with pytest.warns(UserWarning, match="changes nothing here: ") as caught:
            assert pipeline("fill-mask", model="small-uncased", **options)(text) == want
        assert len(caught) == 1 and caught[0].filename == __file__
        for name in options:
            assert name in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in (
            {"framework": None, "trust_remote_code": False, "model_kwargs": {}, "device_map": None},
            {"tokenizer": "small-uncased"},
            {"tokenizer": Tokenizer(), "config": "small-uncased"},
            {"device_map": "cpu"},
            {"device_map": {"": "cpu"}, "model_kwargs": {"dtype": "float32"}},
        ):
            assert pipeline("fill-mask", model="small-uncased", **options)(text) == want
    for kind, options, says in (
        (ValueError, {"tokenizer": "bert-base-uncased"}, "tokenizer: another one"),
        (ValueError, {"tokenizer": object()}, "tokenizer: another one"),
        (ValueError, {"config": "bert-base-uncased"}, "config: another one"),
        (ValueError, {"device_map": "cpu", "device": -1}, "give one of them"),
        (ValueError, {"model_kwargs": {"torch_dtype": "float16"}}, "float16 is not here"),
        (TypeError, {"model_kwargs": {"load_in_8bit": True}}, "model_kwargs: load_in_8bit is not here"),
        (TypeError, {"pipeline_class": object}, "pipeline: pipeline_class is not here"),
        (TypeError, {"precision": "int8"}, "pipeline: precision is not here"),
        (InfillError, {"device_map": "gpu"}, '--device: "gpu" is not one of'),
    ):
        with pytest.raises(kind, match=says):
            pipeline("fill-mask", model="small-uncased", **options)
    with pytest.raises(ValueError, match="tokenizer"):
        pipeline("fill-mask", tokenizer="small-uncased")  # of the default model, whatever that is


def test_parts_of_a_pipeline(pipe):
    """They are the program's own, under transformers' names, and what the program lacks is an error."""
    assert (str(pipe.device), pipe.device.type, pipe.device.index) == ("cpu", "cpu", None) and pipe.model.device == pipe.device
    assert pipe.model.name_or_path == pipe.tokenizer.name_or_path == "small-uncased"
    tokenizer = pipe.tokenizer
    assert tokenizer.mask_token == "[MASK]" and tokenizer.mask_token_id == 103
    assert tokenizer.tokenize("He had [MASK] unbelievable me!") == ["he", "had", "[MASK]", "unbelievable", "me", "!"]
    assert tokenizer.tokenize("tokenize") == ["token", "##ize"] and tokenizer.tokenize("") == []
    assert tokenizer.tokenize("[CLS] a [SEP]") == ["[CLS]", "a", "[SEP]"]
    assert len(tokenizer.tokenize("blue " * 5000)) == 5000
    for part, says in ((pipe, "the pipeline has no config: the program has device, infill, model, "),
                       (pipe.model, "model has no config: the program has device, name_or_path"),
                       (tokenizer, "tokenizer has no config: the program has mask_token, mask_token_id, name_or_path, tokenize")):
        with pytest.raises(AttributeError, match=says):
            part.config
        assert vars(copy.copy(part)) == vars(part)
    with pytest.raises(InfillError, match="text: expected a text"):
        tokenizer.tokenize(3)


def test_pipeline_exception(pipe, monkeypatch):
    """The error of an input is one of transformers' class, where a program has loaded it."""
    import infill

    with pytest.raises(infill.PipelineException, match="no blank") as caught:
        pipe("no mask")
    assert isinstance(caught.value, InfillError) and pickle.loads(pickle.dumps(caught.value)).args == caught.value.args

    class PipelineException(Exception):
        def __init__(self, task, model, reason):
            super().__init__(reason)
            self.task, self.model = task, model

    loaded = types.ModuleType("transformers.pipelines")
    loaded.PipelineException = PipelineException
    monkeypatch.setitem(sys.modules, "transformers.pipelines", loaded)
    for inputs in ("no mask", ["a [MASK]", "no mask"], math.nan):
        with pytest.raises(PipelineException) as caught:
            pipe(inputs)
        assert isinstance(caught.value, infill.PipelineException) and caught.value.task == "fill-mask"
        assert isinstance(pickle.loads(pickle.dumps(caught.value)), infill.PipelineException)
        assert caught.value.__context__ is None
    assert runs("import infill, sys; infill.pipeline('fill-mask')('a [MASK]'); print('transformers' in sys.modules)") == "False"


def test_run_of_paths(m, tmp_path):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text('template,label\nhe had [MASK] me,1\nno blank,2\n', encoding="utf-8")
    with pytest.warns(UserWarning, match="1 wrong line left out"):
        assert m.run(source, target, top=1, columns=["text", "label"], slot={1: ["seen", "left, behind"]}) == target
    rows = target.read_text(encoding="utf-8").splitlines()
    assert rows[0] == "text,label" and rows[1].endswith(" me,1") and len(rows) == 2
    assert (tmp_path / "out.csv.rejects.jsonl").exists() and (tmp_path / "out.csv.run.json").exists()
    with pytest.raises(InfillError, match="is there already"):
        m.run(source, target, top=1)
    with pytest.warns(UserWarning):
        m.run(source, target, top=1, columns=["text", "label"], slot={1: ["seen", "left, behind"]}, resume=True)
    for of, reader in (("in.csv", "read_csv"), ("in.tsv.gz", r"read_csv.*sep='.t'"), ("in.jsonl", "read_json.*lines=True"), ("in.txt", "DataFrame")):
        for output in (None, tmp_path / "out.parquet"):
            with pytest.raises(InfillError, match=f"{of}: (a table|Parquet) is made of a table: give pandas.{reader}"):
                m.run(tmp_path / of, output)
    with pytest.raises(InfillError, match='--top: "x" is not'):
        m.run(source, tmp_path / "never.csv", top="x")


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_run_of_tables(m, kind, tmp_path):
    library = pytest.importorskip(kind)
    table = library.DataFrame({"template": ["he had [MASK] me", "no blank", "a [MASK] house"], "label": [1, 2, 3], "rank": ["x", None, "z"]})
    with pytest.warns(UserWarning, match="rows that could not be filled: 1"):
        made = m.run(table, top=2)
    records = made.to_dict("records") if kind == "pandas" else made.to_dicts()
    assert [r["label"] for r in records] == [1, 1, 2, 3, 3]
    assert [r["rank"] for r in records[3:]] == [1, 2] and [r["input_rank"] for r in records[3:]] == ["z", "z"]
    few = m.run(table[[0]] if kind == "polars" else table.iloc[[0]], top=1, columns=["text", "input_rank"])
    assert list(few.columns) == ["text", "input_rank", "error"] and few["input_rank"][0] == "x"
    with pytest.raises(InfillError, match="no column 'sentence'"):
        m.run(table, column="sentence")
    assert "no blank" in records[2]["error"] and records[2]["template"] == "no blank"
    want = m.fill("a [MASK] house", top=2)
    assert [r["text"] for r in records[3:]] == [f.text for f in want]
    assert abs(records[4]["probability"] - want[1].probability) < 1e-12
    with pytest.raises(InfillError, match="is no path, nor a table"):
        m.run([1])
    with pytest.raises(InfillError, match="is no path: name the file"):
        m.run(table, [1])
    for name in ("resume", "overwrite"):
        with pytest.raises(InfillError, match=f"{name}: it is for a run into a file"):
            m.run(table, **{name: True})
    with pytest.warns(UserWarning, match="the column error says why"):
        few = m.run(table, top=1, columns=["label", "blank_1"])
    assert list(few.columns) == ["label", "blank_1", "error"] and "no blank" in few["error"][1]
    for rows in (slice(1, 2), slice(0, 1)):  # all wrong, and all right
        part = table[rows] if kind == "polars" else table.iloc[rows]
        with pytest.warns(UserWarning) if rows.start else warnings.catch_warnings():
            few = m.run(part, top=1, columns=["error", "text"])
        (record,) = few.to_dict("records") if kind == "pandas" else few.to_dicts()
        assert list(record) == ["error", "text"] and isinstance(record["error" if rows.start else "text"], str)
        assert not isinstance(record["text" if rows.start else "error"], str)
    none = m.run(table[:0] if kind == "polars" else table.iloc[:0], top=1)
    assert len(none) == 0 and {"text", "template", "label", "input_rank"} <= set(none.columns)
    number = library.DataFrame({"template": ["it is [MASK] past"], "error": ["mine"]})
    made = m.run(number, top=1, slot={1: ["7", "8"]})
    assert made["blank_1"][0] in ("7", "8") and made["input_error"][0] == "mine" and "mine" not in map(str, made["error"])
    target = tmp_path / "out.jsonl"
    with pytest.warns(UserWarning, match="out.jsonl.rejects.jsonl"):
        assert m.run(table, target, top=2, columns=["label", "fills"]) == target
    lines = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert [line["label"] for line in lines] == [1, 3] and lines[1]["fills"][0]["text"] == want[0].text


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_run_to_parquet(m, kind, tmp_path):
    library = pytest.importorskip(kind)
    pytest.importorskip("pyarrow")
    table = library.DataFrame({"template": ["he had [MASK] me", "no blank"], "id": [7, 8], "words": [["a", "b"], []]})
    source, target = (tmp_path / name for name in ("in.parquet", "out.parquet"))
    table.to_parquet(source) if kind == "pandas" else table.write_parquet(source)
    for given in (source, table):
        with pytest.warns(UserWarning, match="the column error says why"):
            assert m.run(given, target, top=1, overwrite=given is table) == target
        made = library.read_parquet(target)
        assert made["text"][0] == m.fill("he had [MASK] me", top=1)[0].text and "no blank" in made["error"][1]
        assert list(made["id"]) == [7, 8] and list(made["words"][0]) == ["a", "b"]
        bits = target.read_bytes()
        with pytest.raises(InfillError, match="out.parquet is there already"):
            m.run(given, target, top=1)
        with pytest.warns(UserWarning, match="the column error says why"):
            m.run(given, target, top=1, resume=True)
        with pytest.raises(InfillError, match="top: 1 there, 2 now"):
            m.run(given, target, top=2, resume=True)
        with pytest.raises(InfillError, match="with other columns"):
            m.run(given, target, top=1, columns=["text"], resume=True)
        assert target.read_bytes() == bits
    with pytest.raises(InfillError, match="would be replaced, and is the input"):
        m.run(source, source, overwrite=True)
    with pytest.raises(InfillError, match="to: a table or Parquet"):
        m.run(source, target, overwrite=True, to="csv")
    with pytest.raises(InfillError, match="no column 'never'.*resume=True"), warnings.catch_warnings(action="ignore"):
        m.run(table, target, top=1, columns=["never"], overwrite=True)
    with pytest.warns(UserWarning, match="the column error says why"):
        m.run(table, target, top=1, columns=["id"], resume=True)
    assert list(library.read_parquet(target).columns) == ["id", "error"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in.parquet", "out.parquet", "out.parquet.rejects.jsonl", "out.parquet.run.json"]
    user = tmp_path / "user.parquet"
    shutil.copy(source, user)
    for resume in (False, True):
        with pytest.raises(InfillError, match="user.parquet is there already"):
            m.run(source, user, resume=resume)
    assert user.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("key", ["text", "probability", "method", "blank_1"])
def test_run_names_columns(m, key, tmp_path):
    """A template whose column has the name of a result's is input_NAME everywhere, and the result keeps its own."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    columns = {key: ["he had [MASK] me"], "label": [1]}
    source, target, made = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "out.parquet"
    pandas.DataFrame(columns).to_csv(source, index=False)
    pandas.DataFrame(columns).to_parquet(tmp_path / "in.parquet")
    m.run(source, target, column=key, top=1)
    m.run(tmp_path / "in.parquet", made, column=key, top=1)
    tables = [m.run(library.DataFrame(columns), column=key, top=1) for library in (pandas, polars)]
    want = m.fill("he had [MASK] me", top=1)[0]
    for table in (*tables, pandas.read_csv(target), pandas.read_parquet(made), polars.read_parquet(made)):
        assert (table["text"][0], table["blank_1"][0], table["method"][0]) == (want.text, want.values[0], "search")
        assert table["probability"][0] == pytest.approx(want.probability) and table["label"][0] == 1
        assert table["input_" + key][0] == "he had [MASK] me"
        assert [name for name in table.columns if name != "error"] == list(pandas.read_csv(target).columns)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_run_keeps_columns(m, kind):
    library = pytest.importorskip(kind)
    names = {"error": "a", "input_error": "b", "text": "c", "input_text": "d", "input_template": "e"}
    with pytest.warns(UserWarning, match="rows that could not be filled: 1"):
        made = m.run(library.DataFrame({"template": ["a [MASK] house", "no blank"], **{n: [v, v] for n, v in names.items()}}), top=1)
    assert "no blank" in made["error"][1] and list(made["template"]) == ["a [MASK] house", "no blank"]
    assert list(made.columns)[-6:] == ["error", "input_input_error", "input_error", "input_input_text", "input_text", "input_template"]
    assert [made[name][1] for name in made.columns[-5:]] == list("abcde")
    made = m.run(library.DataFrame({"text": ["a [MASK] house"], "input_text": ["mine"]}), column="text", top=1)
    assert (made["input_input_text"][0], made["input_text"][0]) == ("a [MASK] house", "mine")
    with pytest.warns(UserWarning, match="the column error says why"):
        made = m.run(library.DataFrame({"error": ["no blank"]}), column="error")
    assert made["input_error"][0] == "no blank" and made["error"][0].startswith("no blank in the template")


def test_run_refuses_equal_names(m, tmp_path):
    pandas = pytest.importorskip("pandas")
    for names in (["template", 1, "1"], ["1", "template", 1], ["template", "1", "1"]):
        for output in (None, tmp_path / "out.csv", tmp_path / "out.parquet"):
            with pytest.raises(InfillError, match="2 columns whose name as text is '1': rename all but one"):
                m.run(pandas.DataFrame([["a [MASK]"] * 3], columns=names), output)
    made = m.run(pandas.DataFrame([["a [MASK]", 2]], columns=[1, ""]), column="1", top=1)
    assert made["1"][0] == "a [MASK]" and made[""][0] == 2


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_run_of_numbers_that_are_not_finite(m, kind, tmp_path):
    """The command gets null and texts, and a table keeps its own."""
    library = pytest.importorskip(kind)
    odd = [math.inf, math.nan, 1.5]
    table = library.DataFrame({"template": ["a [MASK] house"] * 3, "number": odd, "list": [odd] * 3, "deep": [[odd]] * 3})
    made = m.run(table, top=1)
    assert list(made["rank"]) == [1, 1, 1] and made["number"][0] == math.inf and math.isnan(made["number"][1])
    assert made["list"][0][0] == math.inf and made["deep"][2][0][2] == 1.5
    target = tmp_path / "out.jsonl"
    m.run(table, target, top=1)
    lines = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert [line["number"] for line in lines] == ["inf", None, 1.5]
    assert lines[0]["list"] == ["inf", None, 1.5] and lines[0]["deep"] == [["inf", None, 1.5]]


@pytest.mark.skipif(sys.platform != "linux", reason="no #! elsewhere, and looks in /proc")
def test_run_ends_a_stubborn_program(tmp_path, monkeypatch):
    monkeypatch.setattr("infill._process._PATIENCE", 0.2)
    code = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), file=sys.stderr, flush=True)\nwhile True: signal.pause()"

    class Screen:
        def write(self, text):
            self.pid = int(text)
            raise KeyboardInterrupt

    screen, began = Screen(), time.monotonic()
    odd = Infill(program=stub(tmp_path, code))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sys, "stderr", screen)
        odd.run(tmp_path / "in.csv", tmp_path / "out.csv", progress=True)
    assert time.monotonic() - began < 20 and gone(screen.pid)


def test_run_closes_its_pipe(tmp_path):
    (tmp_path / "in.txt").write_text("a [MASK] house\n", encoding="utf-8")
    assert runs("import infill; print(infill.Infill().run('in.txt', 'out.csv', top=1, progress=False))", cwd=tmp_path) == "out.csv"


def test_run_shows_progress(tmp_path):
    """Only if it is asked for, where standard error is no terminal; of a table, nothing else is shown."""
    pytest.importorskip("pandas")
    code = """import infill, pandas
m = infill.Infill()
t = pandas.DataFrame({"template": [f"the {n} [MASK] [MASK] were late" for n in range(200)]})
m.run(t[:2], top=1)
m.run(t[:2], "out.csv", top=1)
m.run(t, top=1, progress=True)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True)
    assert b"\r200 of 200" in done.stderr and done.stderr.startswith(b"\r") and done.stderr.count(b"\n") == 1


def test_resume_to_parquet(m, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pandas.DataFrame({"template": [f"the {n} [MASK] [MASK] were late" for n in range(60)]})
    table.to_parquet(tmp_path / "in.parquet")
    target = tmp_path / "out.parquet"
    code = f"import infill; infill.Infill().run({str(tmp_path / 'in.parquet')!r}, {str(target)!r}, top=1, jobs=1)"
    part = tmp_path / "out.parquet.parts" / "00001-of-00001.jsonl"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as running:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not (part.exists() and part.read_bytes().count(b"\n") > 3):
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
    assert part.exists() and not target.exists()
    began = part.read_bytes()
    with pytest.raises(InfillError, match="--resume"):
        m.run(tmp_path / "in.parquet", target, top=1, jobs=1)
    m.run(tmp_path / "in.parquet", target, top=1, jobs=1, resume=True)
    assert began.count(b"\n") > 3 and not part.exists()
    assert pandas.read_parquet(target).equals(m.run(table, top=1))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_run_has_one_schema(m, kind, tmp_path):
    """Whatever the values are, parts of a data set have the same columns, of the same types."""
    library = pytest.importorskip(kind)
    dataset = pytest.importorskip("pyarrow.dataset")
    parts = {
        "right": ["he had [MASK] me", "a [MASK] house"],
        "mixed": ["he had [MASK] me", "a [MASK:9-2] house"],
        "wrong": ["a [MASK:9-2] house", "[MASK~(]"],
    }
    schemas = []
    with warnings.catch_warnings(action="ignore"):
        for name, texts in parts.items():
            for options in ({}, {"slot": {1: ["told", "red"]}}):
                made = m.run(library.DataFrame({"template": texts, "n": [1, 2]}), top=1, **options)
                schemas.append([(c, str(t)) for c, t in zip(made.columns, made.dtypes)])
            m.run(library.DataFrame({"template": texts, "n": [1, 2]}), tmp_path / f"{name}.parquet", top=1)
            m.run(library.DataFrame({"template": texts, "n": [1, 2]}), tmp_path / f"{name}.csv", top=1)
        draws = m.run(library.DataFrame({"template": parts["mixed"]}), top=1, samples=2, seed=2**63 + 5)
    assert all(schema == schemas[0] for schema in schemas) and "error" in dict(schemas[0])
    together = dataset.dataset([str(tmp_path / f"{name}.parquet") for name in parts]).to_table()
    assert together.num_rows == 6 and together["error"].null_count == 3
    assert "error" not in (tmp_path / "wrong.csv").read_text(encoding="utf-8").split("\n")[0]
    assert int(draws["seed"][0]) == 2**63 + 5
    if kind == "polars":
        assert library.read_parquet([tmp_path / f"{name}.parquet" for name in parts]).shape[0] == 6


def test_run_errors_are_its_own(m, tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    table = pandas.DataFrame({"template": ["he had [MASK] me"]})
    made = m.run(polars.LazyFrame({"template": ["he had [MASK] me"]}), top=1)
    assert made["text"][0] == m.run(table, top=1)["text"][0]
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    styler = pytest.importorskip("jinja2") and table.style
    for source, says in (
        (styler, "is no path, nor a table"),
        (pandas.DataFrame({"template": ["a [MASK]"], "of": [table]}), "a cell holds a table"),
        (tmp_path / "none.parquet", "none.parquet: it is missing"),
        (tmp_path / "broken.parquet", "broken.parquet: it is missing, or no Parquet"),
    ):
        with pytest.raises(InfillError, match=says):
            m.run(source)
    texts = ["he had [MASK] me", "a [MASK] house"]
    want = [result[0].text for result in m.fill(texts, top=1)]
    for given in (pyarrow.array(texts), pyarrow.chunked_array([texts])):
        assert [result[0].text for result in m.fill(given, top=1)] == want
