"""The class that notebooks and programs use."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar, overload

from ._process import InfillError, Process, ProgramEnded, program
from ._results import Pair, Result, Score

T = TypeVar("T")

# How many requests of a list are with the program at once: enough to fill its calls.
_AT_ONCE = 64


class Infill:
    """Fills blanks with a masked language model.

    The program starts at the first request and stays until the object goes. Several
    threads may use one object; a forked process starts a program of its own.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        device: str | None = None,
        threads: int | None = None,
        program: str | None = None,
    ):
        """Name a model, or the folder of one; None takes the default one."""
        arguments = [program or _program(), "serve", "--pipe", "--quiet"]
        for name, value in (("model", model), ("device", device), ("threads", threads)):
            if value is not None:
                arguments += [f"--{name}", str(value)]
        self._process = Process(arguments)

    @overload
    def fill(self, template: str, *, progress: bool | None = None, **options: Any) -> Result: ...
    @overload
    def fill(self, template: Iterable[str], *, progress: bool | None = None, **options: Any) -> list[Result]: ...
    def fill(self, template: str | Iterable[str], *, progress: bool | None = None, **options: Any) -> Result | list[Result]:
        """Fill the blanks of a template, or of each of several.

        Options are those of the command, with underscores: top, slot, ban, pos, blank,
        order, budget, samples, seed, sampler, steps, ... slot takes a dictionary,
        {1: ["red", "green"]}.
        """
        if isinstance(options.get("slot"), Mapping):
            options["slot"] = {str(blank): words for blank, words in options["slot"].items()}
        if isinstance(template, str):
            return Result(self._process.ask("/v1/fill", {"template": template, **options}))
        bodies = [{"template": text, **options} for text in template]
        return self._each("/v1/fill", bodies, Result, progress)

    def fill_mask(
        self, inputs: str | list[str], *, top_k: int = 5, targets: str | list[str] | None = None
    ) -> list[Any]:
        """Answer as transformers.pipeline("fill-mask") does: each blank by itself."""
        parameters: dict[str, Any] = {"top_k": top_k}
        if targets is not None:
            parameters["targets"] = [targets] if isinstance(targets, str) else targets
        if isinstance(inputs, str):
            answer: list[Any] = self._process.ask("/", {"inputs": inputs, "parameters": parameters})
            return answer
        return self._each("/", [{"inputs": text, "parameters": parameters} for text in inputs], lambda answer: answer, None)

    @overload
    def score(  # type: ignore[overload-overlap]
        self, text: str, *, method: str = "l2r", progress: bool | None = None
    ) -> Score: ...
    @overload
    def score(self, text: Iterable[str], *, method: str = "l2r", progress: bool | None = None) -> list[Score]: ...
    def score(
        self, text: str | Iterable[str], *, method: str = "l2r", progress: bool | None = None
    ) -> Score | list[Score]:
        """Rate texts by their pseudo-log-likelihood."""
        one = isinstance(text, str)
        texts = [text] if isinstance(text, str) else list(text)
        scores = self._each("/v1/score", [{"texts": [t], "method": method} for t in texts], _score, progress)
        return scores[0] if one else scores

    def score_pairs(
        self, pairs: Iterable[tuple[str, str]], *, method: str = "l2r", progress: bool | None = None
    ) -> list[Pair]:
        """Tell of each pair whether its first text is the likelier."""
        texts = [text for first, second in pairs for text in (first, second)]
        scores = self.score(texts, method=method, progress=progress)
        return [Pair(first, second) for first, second in zip(scores[::2], scores[1::2])]

    def close(self) -> None:
        """End the program; the next request starts it again."""
        self._process.close()

    def __enter__(self) -> Infill:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _each(self, path: str, bodies: list[Any], read: Callable[[Any], T], progress: bool | None) -> list[T]:
        """Send many requests, some at once, and give the answers in their order."""
        answers: list[T] = []
        sent: list[Future[Any]] = []
        bar = _Bar(len(bodies), progress)
        for i in range(len(bodies)):
            while len(sent) < min(len(bodies), i + _AT_ONCE):
                sent.append(self._process.send(path, bodies[len(sent)]))
            try:
                try:
                    answer = sent[i].result()
                except ProgramEnded:
                    answer = self._process.ask(path, bodies[i])
            except InfillError as error:
                if len(bodies) == 1:
                    raise
                raise InfillError(f"item {i}: {error}") from None
            sent[i] = Future()  # the answer is kept once
            answers.append(read(answer))
            bar.tell(i + 1)
        bar.end()
        return answers


_program = program


def _score(answer: list[dict[str, Any]]) -> Score:
    s = answer[0]
    tokens = tuple((t["token"], t["log_prob"]) for t in s["tokens"])
    return Score(s["text"], s["log_likelihood"], s["pseudo_perplexity"], tokens)


class _Bar:
    """Progress of a list that takes more than two seconds, on standard error."""

    def __init__(self, number: int, wanted: bool | None):
        if wanted is None:
            wanted = number > 1 and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        self._number, self._wanted, self._shown = number, wanted, False
        self._began = self._told = time.monotonic()

    def tell(self, done: int) -> None:
        now = time.monotonic()
        if not self._wanted or now - self._told < 0.5 or now - self._began < 2:
            return
        self._told, self._shown = now, True
        left = (now - self._began) / done * (self._number - done)
        print(f"\r{done} of {self._number}, {left:.0f} s left ", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._shown:
            print(f"\r{self._number} of {self._number}, {time.monotonic() - self._began:.0f} s", file=sys.stderr)


class _FillMask:
    def __init__(self, model: str | None, top_k: int, options: dict[str, Any]):
        self.infill, self.top_k = Infill(model, **options), top_k

    def __call__(self, inputs: str | list[str], *, top_k: int | None = None, targets: str | list[str] | None = None) -> list[Any]:
        return self.infill.fill_mask(inputs, top_k=top_k or self.top_k, targets=targets)


def pipeline(task: str = "fill-mask", model: str | None = None, *, top_k: int = 5, **options: Any) -> _FillMask:
    """Stand in for transformers.pipeline("fill-mask", ...)."""
    if task != "fill-mask":
        raise ValueError(f"the task {task!r} is not here: only fill-mask")
    return _FillMask(model, top_k, options)
