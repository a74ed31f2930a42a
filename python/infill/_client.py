"""The class that notebooks and programs use."""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, Literal, TypeVar, cast, overload

from . import _runs
from ._process import Answer, InfillError, PipelineException, Process, ProgramEnded, program
from ._results import Exercise, Pair, Result, Score

T = TypeVar("T")
_Row = str | Mapping[str, Any]
F = TypeVar("F", bound=Callable[..., Any])

# How many requests of a list are with the program at once: enough to fill its calls.
_AT_ONCE = 64


def _public(method: F) -> F:
    """Raise errors where the user called, and not where they were found."""

    @functools.wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return method(*args, **options)
        except InfillError as error:
            found = error
        raise type(found)(*found.args)

    return cast(F, call)


class Infill:
    """Fills blanks with a masked language model.

    The program starts at the first request and stays until the object goes. Several
    threads may use one object. A forked process starts a program of its own, and so does
    a copy that was sent to another process. An interrupt ends what was asked.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        device: Any = None,
        threads: int | None = None,
        program: str | None = None,
    ):
        """Name a model, or the folder of one; None takes the default one.

        The device is "auto", "cpu", "cuda" or "cuda:1". As in transformers, 1 is the
        second GPU and -1 the CPU, and a torch.device will do.
        """
        if device is not None and not isinstance(device, str) and hasattr(device, "__index__"):
            device = "cpu" if device < 0 else f"cuda:{int(device)}"
        if model is not None and os.path.dirname(model) and os.path.isdir(model):
            model = os.path.abspath(model)  # the program starts later, when the working folder may be another
        self._command = program or _program()
        self._flags = _runs.flags({"model": model, "device": device, "threads": threads})
        self._process = Process([self._command, "serve", "--pipe", "--quiet", *self._flags])

    @overload
    def fill(self, template: str | Mapping[str, Any], *, progress: bool | None = None, **options: Any) -> Result: ...
    @overload
    def fill(
        self, template: Iterable[_Row], *, progress: bool | None = None, errors: Literal["raise"] = "raise", **options: Any
    ) -> list[Result]: ...
    @overload
    def fill(
        self, template: Iterable[_Row], *, progress: bool | None = None, errors: Literal["keep"], **options: Any
    ) -> list[Result | InfillError]: ...
    @_public
    def fill(
        self, template: _Row | Iterable[_Row], *, progress: bool | None = None, errors: str = "raise", **options: Any
    ) -> Any:
        """Fill the blanks of a template, or of each of several.

        A template is a text, or a row with options of its own, as a line of JSON has them:
        {"template": "a [MASK] house", "slot": {1: ["red", "green"]}}. An option of a row
        and of the call is an error. Of several, one that is wrong is an error that names it.
        With errors="keep", the error stands in its place, and the others are filled; so it is
        with a missing value.

        Options are those of the command, with underscores: top, slot, ban, pos, blank,
        order, budget, samples, seed, sampler, steps, ... slot takes a list for every
        blank, or a dictionary, {1: ["red", "green"]}.
        """
        options = _options(options)
        if isinstance(template, (str, Mapping)):
            body = _request(_no_list(template) if isinstance(template, str) else template, options)
            return _read(Result, self._process.ask("/v1/fill", body).body)
        keep = _keeps(errors)
        bodies: list[dict[str, Any] | InfillError] = []
        for i, row in enumerate(_texts(template, keep=True, rows=True)):
            try:
                bodies.append(_request(row, options))
            except InfillError as error:
                if not keep:
                    raise InfillError(f"item {i}: {error}") from None
                bodies.append(error)
        return self._each("/v1/fill", bodies, Result, progress, keep=keep)

    @_public
    def run(
        self,
        input: Any,
        output: str | os.PathLike[str] | None = None,
        *,
        resume: bool = False,
        progress: bool | None = None,
        **options: Any,
    ) -> Any:
        """Fill the templates of a file or of a table, as `infill run` does.

        The input is a path, or a table of pandas or polars (a LazyFrame is collected). A path to CSV, TSV, JSON lines or
        text is the command's output, with its resume, overwrite, rejects, signature and bytes.
        Without an output, a table comes back, of the same kind: a row for each fill, and the
        columns of the table behind. Parquet is read as a table of pandas, and written under the
        rules of other outputs: it refuses what is there, and takes resume and overwrite.

        Columns and types follow from the options, the number of blanks and the input's columns,
        and never from values, so parts of a data set fit together. A row that cannot be filled
        stays in a table and in Parquet, with its text; the column error, always there, says why. Other outputs leave it out, and OUTPUT.rejects.jsonl says why.

        Progress is shown in a terminal and in a notebook, with progress=True everywhere, and
        with progress=False nowhere.

        run returns the path of the output, or the table. Options are those of the command, with
        underscores: column, columns, keep, overwrite, top, slot, ban, sampler, ...
        """
        program = [self._command, "run", *self._flags]
        made, warned = _runs.of_any(program, input, output, _runs.shows(progress), {"resume": resume, **options})
        for warning in warned:
            _warn(warning)
        return made

    @_public
    def fill_mask(
        self, inputs: str | Iterable[str], *, top_k: int = 5, targets: str | Iterable[str] | None = None
    ) -> list[Any]:
        """Answer as transformers.pipeline("fill-mask") does: each blank by itself."""
        return self._masks(inputs, top_k, targets)

    def _masks(self, inputs: str | Iterable[str], top_k: int, targets: Any, **parameters: Any) -> list[Any]:
        top_k = operator.index(top_k)
        parameters["top_k"] = top_k or 1
        if targets is not None:
            parameters["targets"] = [_no_list(targets)] if isinstance(targets, str) else list(targets)
            if not parameters["targets"]:
                raise ValueError("targets: at least one must be given")

        def read(answer: list[Any]) -> list[Any]:
            if top_k:
                return answer
            return [] if isinstance(answer[0], dict) else [[] for _ in answer]

        bodies = [{"inputs": text, "parameters": parameters} for text in _texts(inputs)]
        answers: list[Any] = self._each("/", bodies, read, None)
        # The pipeline answers a list of one text as the text; a generator has no length that it could see.
        return answers[0] if len(answers) == 1 and not isinstance(inputs, Iterator) else answers

    @overload
    def score(  # type: ignore[overload-overlap]
        self, text: str, *, method: str = "l2r", context: str = "", progress: bool | None = None
    ) -> Score: ...
    @overload
    def score(
        self, text: Iterable[str], *, method: str = "l2r", context: str = "", progress: bool | None = None, errors: Literal["raise"] = "raise"
    ) -> list[Score]: ...
    @overload
    def score(
        self, text: Iterable[str], *, method: str = "l2r", context: str = "", progress: bool | None = None, errors: Literal["keep"]
    ) -> list[Score | InfillError]: ...
    @_public
    def score(
        self, text: str | Iterable[str], *, method: str = "l2r", context: str = "", progress: bool | None = None, errors: str = "raise"
    ) -> Any:
        """
        Rate texts by their pseudo-log-likelihood.

        context stands before each text, and is not scored. For errors see fill.
        """
        keep = _keeps(errors) and not isinstance(text, str)
        bodies = [_body(t, {"texts": [t], "method": method, "context": context}) for t in _texts(text, keep=keep)]
        scores = self._each("/v1/score", bodies, _score, progress, keep=keep)
        return scores[0] if isinstance(text, str) else scores

    @_public
    def score_pairs(
        self, pairs: Iterable[tuple[str, str]], *, method: str = "l2r", progress: bool | None = None
    ) -> list[Pair]:
        """Tell of each pair whether its first text is the likelier."""
        bodies = []
        for i, pair in enumerate(pairs):
            texts = _texts(pair, f"pair {i}")
            if isinstance(pair, str) or len(texts) != 2:
                raise InfillError(f"pair {i}: {pair!r:.80} is not two texts")
            bodies += [{"texts": [t], "method": method} for t in texts]
        scores = self._each("/v1/score", bodies, _score, progress, lambda i: f"pair {i // 2}")
        return [Pair(first, second) for first, second in zip(scores[::2], scores[1::2])]

    @_public
    def gaps(
        self,
        text: str,
        *,
        every: int | None = None,
        pos: str | None = None,
        words: Iterable[str] | None = None,
        names: bool = False,
        protect: Iterable[str] | None = None,
        options: int | None = None,
        below: float = 1,
        apart: float = 0,
        bits: str | None = None,
        clear: bool = False,
        seed: int = 1,
    ) -> Exercise:
        """
        Make an exercise of a text: gaps, answers to choose from, and a key.

        every, pos and words choose the gaps. Without them, the text has its gaps in
        brackets: the [gate] was open. names=True takes names, too, and protect lists
        texts and ~patterns that are no gaps. bits="1-6" takes only gaps whose key has so
        many. apart=12 leaves out wrong answers that suit their sentence.
        """
        body = {
            "text": text,
            "every": every,
            "pos": pos,
            "words": None if words is None else _texts(words),
            "names": names,
            "protect": None if protect is None else _texts(protect),
            "options": options,
            "below": below,
            "apart": apart,
            "bits": bits,
            "clear": clear,
            "seed": seed,
        }
        return _read(Exercise, self._process.ask("/v1/gaps", body).body)

    def close(self) -> None:
        """End the program; the next request starts it again."""
        self._process.close()

    def __enter__(self) -> Infill:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _each(
        self,
        path: str,
        bodies: Sequence[dict[str, Any] | InfillError],
        read: Callable[[Any], T],
        progress: bool | None,
        name: Callable[[int], str] = lambda i: f"item {i}",
        keep: bool = False,
    ) -> list[T]:
        """Send many requests, some at once, and give the answers in their order.

        An error in the place of a request is its answer. If keep is true, an error of one
        stands in its place.
        """
        answers: list[Any] = []
        sent: list[Future[Answer]] = []
        told: list[str] = []
        bar = _Bar(len(bodies), progress)
        try:
            for i in range(len(bodies)):
                while len(sent) < min(len(bodies), i + _AT_ONCE):
                    sent.append(self._send(path, bodies[len(sent)]))
                answer: Any
                try:
                    found = self._answer(sent[i], path, bodies[i])
                    told += [warning for warning in found.warnings if warning not in told]
                    answer = _read(read, found.body)
                except ProgramEnded:
                    raise
                except InfillError as error:
                    if not keep:
                        raise
                    answer = type(error)(f"{name(i)}: {error}")
                sent[i] = Future()  # the answer is kept once
                answers.append(answer)
                bar.tell(i + 1)
        except BaseException as error:
            failed = isinstance(error, InfillError)
            # What is still at work would hold up the next call.
            if not failed or wait(sent[len(answers) + 1 :], timeout=1).not_done:
                self._process.interrupt()
            if failed and len(bodies) > 1:
                raise type(error)(f"{name(len(answers))}: {error}") from None
            raise
        bar.end()
        for warning in told:
            _warn(warning)
        return answers

    def _send(self, path: str, body: dict[str, Any] | InfillError) -> Future[Answer]:
        if isinstance(body, dict):
            return self._process.send(path, body)
        failed: Future[Answer] = Future()
        failed.set_exception(body)
        return failed

    def _answer(self, sent: Future[Answer], path: str, body: dict[str, Any] | InfillError) -> Answer:
        """Return an answer, asked for once more if the program ended."""
        try:
            return sent.result()
        except ProgramEnded:
            if not isinstance(body, dict):
                raise
        return self._process.ask(path, body)


_program = program


def _warn(text: str) -> None:
    """Warn of the line of the user's that called."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def _keeps(errors: str) -> bool:
    if errors not in ("raise", "keep"):
        raise ValueError(f"errors: {errors!r} is not one of raise, keep")
    return errors == "keep"


def _read(read: Callable[[Any], T], answer: Any) -> T:
    """Read an answer; one of another form is the program's fault."""
    try:
        return read(answer)
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise InfillError(f"the program's answer cannot be read: {answer!r:.80} ({error!r})") from None


def _body(text: str | InfillError, body: dict[str, Any]) -> dict[str, Any] | InfillError:
    return text if isinstance(text, InfillError) else body


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a fill as JSON has them."""
    made = dict(options)
    if isinstance(made.get("slot"), Mapping):
        made["slot"] = {str(blank): words for blank, words in made["slot"].items()}
        if len(made["slot"]) < len(options["slot"]):
            raise InfillError("slot: a blank is given twice")
    for name, value in made.items():
        if isinstance(value, float) and value.is_integer():
            made[name] = int(value)  # budget=1e4
    return made


def _request(row: _Row | InfillError, options: dict[str, Any]) -> dict[str, Any]:
    """Return the request of a text or a row, with the options of the call."""
    if isinstance(row, InfillError):
        raise row
    if isinstance(row, str):
        return {"template": row, **options}
    own = _options({str(name): value for name, value in row.items() if not _missing(value)})
    if "template" not in row:
        raise InfillError(f"the row has no template: its keys are {', '.join(map(str, row)):.200}")
    if not isinstance(own.get("template"), str):
        raise InfillError("template: " + _NO_TEXT.format(row["template"]))
    for name in own:
        if options.get(name) is not None:
            raise InfillError(f"{name}: the row has {own[name]!r:.40} and the call {options[name]!r:.40}: give one of them")
    return {**options, **own}


def _missing(value: Any) -> bool:
    """Return whether a cell of a table is empty: None, NaN, or the NA of pandas."""
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")


_NO_TEXT = "{!r:.80} is no text: fill in what is missing, or leave it out"


@overload
def _texts(texts: Any, of: str = "item") -> list[str]: ...
@overload
def _texts(texts: Any, of: str = "item", *, keep: bool) -> list[str | InfillError]: ...
@overload
def _texts(texts: Any, of: str = "item", *, keep: bool, rows: bool) -> list[_Row | InfillError]: ...
def _texts(texts: Any, of: str = "item", *, keep: bool = False, rows: bool = False) -> Any:
    """Return one text, or many, as a list. If rows is true, a dictionary is as good as a text.

    An error names the first that is none. If keep is true, an error stands in the place of each.
    """
    if isinstance(texts, str):
        return [_no_list(texts)]
    one = isinstance(texts, (bytes, bytearray, Mapping)) or not hasattr(texts, "__iter__")
    if one or getattr(texts, "ndim", 1) != 1:  # a table would give the names of its columns
        raise InfillError(f"{texts!r:.80} is no text, nor a list of texts")
    found = texts.to_pylist() if hasattr(texts, "to_pylist") else list(texts)  # pyarrow's elements are no texts
    for i, text in enumerate(found):
        if isinstance(text, str) or rows and isinstance(text, Mapping):
            continue
        wrong = _NO_TEXT.format(text)
        if not keep:
            where = f"item {i}" if of == "item" else of
            raise InfillError(f"{where}: {wrong}")
        found[i] = InfillError(wrong)
    return found


def _no_list(text: str) -> str:
    """Return the text, or refuse one that is a JSON list of texts, which stands for the list."""
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(items, list) and all(isinstance(item, str) for item in items):
        raise InfillError(f"{text!r:.80} is a JSON list: give the list itself, as json.loads returns it")
    return text


def _score(answer: list[dict[str, Any]]) -> Score:
    s = answer[0]
    tokens = tuple((t["token"], t["log_prob"]) for t in s["tokens"])
    words = tuple((w["word"], w["log_likelihood"]) for w in s["words"])
    warned = tuple(s.get("warnings", ()))
    return Score(s["text"], s["log_likelihood"], s["pseudo_perplexity"], tokens, words, warned)


class _Bar:
    """Progress of a list that takes more than two seconds."""

    def __init__(self, number: int, wanted: bool | None):
        self._number, self._wanted = number, (wanted or number > 1) and _runs.shows(wanted)
        self._line = _runs.Line()
        self._began = self._told = time.monotonic()

    def tell(self, done: int) -> None:
        now = time.monotonic()
        if not self._wanted or now - self._told < 0.5 or now - self._began < 2:
            return
        self._told = now
        left = (now - self._began) / done * (self._number - done)
        self._line.write(f"{done} of {self._number}, {left:.0f} s left")

    def end(self) -> None:
        self._line.end(f"{self._number} of {self._number}, {time.monotonic() - self._began:.0f} s")


@dataclasses.dataclass(frozen=True)
class _Device:
    """A device, with the attributes and the text of a torch.device."""

    type: str
    index: int | None = None

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


class _Part:
    """What the program has of a part of a pipeline; anything else is an error, and no pretence."""

    _whole = "the pipeline"

    def __getattr__(self, name: str) -> Any:
        there = ", ".join(sorted(key for key in dir(self) if key[0] != "_"))
        raise AttributeError(f"{self._whole} has no {name}: the program has {there}")


class _Model(_Part):
    _whole = "the pipeline's model"

    def __init__(self, name: str, device: _Device):
        self.name_or_path, self.device = name, device


class _Tokenizer(_Part):
    _whole = "the pipeline's tokenizer"

    def __init__(self, name: str, process: Process, mask: str, mask_id: int):
        self.name_or_path, self._process, self.mask_token, self.mask_token_id = name, process, mask, mask_id

    @_public
    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of a text, without those that the model adds at its ends."""
        tokens: list[str] = self._process.ask("/v1/tokens", {"text": text}).body["tokens"]
        return tokens


class _FillMask(_Part):
    def __init__(self, infill: Infill, name: Any, top_k: int, targets: Any, tokenizer_kwargs: Mapping[str, Any] | None):
        self.task, self.infill, self.top_k, self.targets = "fill-mask", infill, top_k, targets
        self.truncation = _truncates(tokenizer_kwargs)
        (model,) = infill._process.ask("/v1/models", None).body
        name = os.fspath(name or model["name"])
        self.tokenizer = _Tokenizer(name, infill._process, model["mask"], model["mask_id"])
        infill._masks(f"a {model['mask']}", 1, None, own_mask=True)  # a device that is not here is refused now
        (model,) = infill._process.ask("/v1/models", None).body
        kind, _, index = model["device"].partition(":")
        self.device = _Device(kind, int(index) if index else None)
        self.model = _Model(name, self.device)

    @_public
    def __call__(
        self,
        inputs: str | Iterable[str],
        *,
        top_k: int | None = None,
        targets: str | Iterable[str] | None = None,
        batch_size: int | None = None,
        num_workers: int | None = None,
        tokenizer_kwargs: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        top_k = self.top_k if top_k is None else top_k
        targets = self.targets if targets is None else targets
        truncation = self.truncation if tokenizer_kwargs is None else _truncates(tokenizer_kwargs)
        try:
            return self.infill._masks(inputs, top_k, targets, own_mask=True, truncation=truncation)
        except ProgramEnded:
            raise
        except InfillError as error:
            raise _refusal()(*error.args) from None


def _truncates(options: Mapping[str, Any] | None) -> bool:
    """Whether a text that is too long is cut at the right. Padding is the program's own."""
    for name in options or ():
        if name not in ("padding", "truncation"):
            raise TypeError(f"tokenizer_kwargs: {name} is not here: only padding and truncation")
    wanted = (options or {}).get("truncation")
    if wanted in (True, "longest_first", "only_first"):
        return True
    if wanted in (None, False, "do_not_truncate"):
        return False
    raise ValueError(f"tokenizer_kwargs: truncation: {wanted!r} is not True or False")


def _refusal() -> type[PipelineException]:
    """Return the class of a pipeline's errors: also that of transformers, if a program has loaded it."""
    theirs = getattr(sys.modules.get("transformers.pipelines"), "PipelineException", None)
    if not isinstance(theirs, type) or not issubclass(theirs, Exception):
        return PipelineException
    return type("PipelineException", (PipelineException, theirs), {})


# What changes nothing here, of the arguments of transformers' pipeline and of its model_kwargs.
_IDLE = {"args_parser", "binary_output", "feature_extractor", "framework", "image_processor", "processor", "token",
         "trust_remote_code", "use_auth_token"}
_IDLE_OF_MODEL = {"attn_implementation", "low_cpu_mem_usage", "max_memory", "offload_folder", "offload_state_dict",
                  "trust_remote_code", "use_safetensors"}


def _same_model(name: str, given: Any, model: Any) -> None:
    """Refuse a tokenizer or a config other than the model's own."""
    of = given if isinstance(given, (str, os.PathLike)) else getattr(given, "name_or_path", getattr(given, "_name_or_path", None))
    if model is None or not isinstance(of, (str, os.PathLike)) or os.path.normpath(of) != os.path.normpath(model):
        raise ValueError(f"{name}: another one than the model's own would change the answer: leave it out")


def _device_of(device_map: Any) -> Any:
    """Return the one device that a map names, or None if it leaves the choice, or names several."""
    devices = set(device_map.values()) if isinstance(device_map, Mapping) else {device_map}
    device = devices.pop() if len(devices) == 1 else None
    return None if device in ("auto", "balanced", "balanced_low_0", "sequential") else device


@_public
def pipeline(
    task: str = "fill-mask",
    model: str | os.PathLike[str] | None = None,
    *,
    device: Any = None,
    top_k: int = 5,
    targets: str | Iterable[str] | None = None,
    batch_size: int | None = None,
    num_workers: int | None = None,
    tokenizer_kwargs: Mapping[str, Any] | None = None,
    revision: str | None = None,
    dtype: Any = None,
    torch_dtype: Any = None,
    use_fast: bool | None = None,
    tokenizer: Any = None,
    config: Any = None,
    device_map: Any = None,
    model_kwargs: Mapping[str, Any] | None = None,
    threads: int | None = None,
    program: str | None = None,
    **others: Any,
) -> _FillMask:
    """Stand in for transformers.pipeline("fill-mask", ...).

    As there, only the model's own mask is a blank (pipeline.tokenizer.mask_token), and of a
    target that is no token the first of its tokens is rated, with a warning. Of a text that is too
    long the model reads a window around the mask, with a warning, where transformers has an
    error; tokenizer_kwargs={"truncation": True} cuts it at the right, as there. batch_size,
    num_workers and use_fast change nothing: the program chooses its own.
    Numbers are computed in float32, so that dtype can be nothing else.
    The pipeline has model.name_or_path, device, tokenizer.mask_token, .mask_token_id and
    .tokenize, and no torch: other attributes of these are errors.
    Other arguments of transformers that change nothing here are taken with a warning, and
    those that would change the answer are refused. threads and program are those of Infill.
    """
    if task != "fill-mask":
        raise ValueError(f"the task {task!r} is not here: only fill-mask")
    of_model = {name: value for name, value in (model_kwargs or {}).items() if value is not None}
    others = {name: value for name, value in others.items() if value is not None and value is not False}
    for name in others.keys() - _IDLE:
        raise TypeError(f"pipeline: {name} is not here, and may change the answer: leave it out")
    for name in of_model.keys() - _IDLE_OF_MODEL - {"device_map", "dtype", "revision", "torch_dtype"}:
        raise TypeError(f"pipeline: model_kwargs: {name} is not here, and may change the answer: leave it out")
    for name, value in (("tokenizer", tokenizer), ("config", config)):
        if value is not None:
            _same_model(name, value, model)
    revision = of_model.get("revision") if revision is None else revision
    device_map = of_model.get("device_map") if device_map is None else device_map
    idle = [*others, *(f"model_kwargs[{name!r}]" for name in of_model.keys() & _IDLE_OF_MODEL)]
    if device_map is not None:
        if device is not None:
            raise ValueError("device and device_map: give one of them")
        device = _device_of(device_map)
        if device is None:
            idle.append("device_map")
    if idle:
        _warn(f"changes nothing here: {', '.join(sorted(idle))}")
    if torch_dtype is not None:
        warnings.warn("torch_dtype is deprecated: write dtype", FutureWarning, stacklevel=2)
    for kind in (dtype, torch_dtype, of_model.get("dtype"), of_model.get("torch_dtype")):
        if kind is not None and str(kind).removeprefix("torch.") not in ("auto", "float32", "float"):
            raise ValueError(f"dtype: {kind} is not here: numbers are computed in float32")
    given = model
    if revision is not None:
        if model is None or os.path.isdir(model):
            raise ValueError("revision: it is for the name of a model, not for a folder or the default")
        model = f"{os.fspath(model)}@{revision}"
    made = Infill(model, device=device, threads=threads, program=program)
    return _FillMask(made, given, top_k, targets, tokenizer_kwargs)
