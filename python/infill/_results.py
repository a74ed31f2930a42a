"""What the program answers."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterator, Sequence
from typing import Any, overload

from ._process import needed


@dataclasses.dataclass(frozen=True)
class Fill:
    """A text with its blanks filled."""

    text: str
    probability: float | None
    """The model's, of all blanks together; None for a sampler, whose law has none."""
    log_likelihood: float
    """Of the probability, or U of a sampler's fill; in nats."""
    values: tuple[str, ...]
    """What each blank holds."""
    spans: tuple[tuple[int, int], ...]
    """Where in the text, from and to: text[from:to] is the value."""
    token_ids: tuple[int, ...]
    share: float | None
    """Among all fills of the lists, or of a sampler's draws; else None."""


class Table:
    """A list of rows that notebooks show and pandas takes."""

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each row."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame."""
        pandas = needed("pandas")

        return pandas.DataFrame(self.rows())

    def _repr_html_(self) -> str:
        rows = self.rows()
        if not rows:
            return "<p>none</p>"
        head = "".join(f"<th>{html.escape(str(name))}</th>" for name in rows[0])
        body = "".join("<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row.values()) + "</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    return html.escape(f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value))


class Result(Table, Sequence[Fill]):
    """The fills of a template, the likeliest first."""

    def __init__(self, raw: dict[str, Any]):
        self.raw = raw
        """All that the program tells, see `infill help formats`."""
        self.template: str = raw["template"]
        self.proven: bool | None = raw.get("proven")
        """Whether it is proven that no other fill is likelier; None for draws and samplers."""
        self.left_out_at_most: float | None = raw.get("left_out_at_most")
        """The most that any other fill can have."""
        self.alone: list[dict[str, float]] = [{v["text"]: v["probability"] for v in blank} for blank in raw["alone"]]
        """What each blank holds by itself, with all blanks masked: its likeliest words."""
        self.entropy: list[float | None] = raw["entropy"]
        """Of what the model expects in each blank, in bits; None for a blank of several tokens."""
        self.warnings: list[str] = raw.get("warnings", [])
        self.signature: str = raw.get("signature", "")
        """All that the numbers depend on, to be cited with them."""
        self._fills = [
            Fill(
                f["text"],
                f.get("probability"),
                f["log_likelihood"],
                tuple(f["values"]),
                tuple((start, end) for start, end in f["spans"]),
                tuple(f["token_ids"]),
                f.get("share"),
            )
            for f in raw["fills"]
        ]

    @overload
    def __getitem__(self, index: int) -> Fill: ...
    @overload
    def __getitem__(self, index: slice) -> list[Fill]: ...
    def __getitem__(self, index: int | slice) -> Fill | list[Fill]:
        return self._fills[index]

    def __len__(self) -> int:
        return len(self._fills)

    def __iter__(self) -> Iterator[Fill]:
        return iter(self._fills)

    def __repr__(self) -> str:
        return f"Result({self._fills!r})"

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"text": f.text, "probability": f.probability, "log_likelihood": f.log_likelihood}
            | ({} if f.share is None else {"share": f.share})
            | {f"blank_{i}": value for i, value in enumerate(f.values, 1)}
            for f in self._fills
        ]


@dataclasses.dataclass(frozen=True)
class Score:
    """How likely a text is."""

    text: str
    log_likelihood: float
    """The sum over tokens, in nats."""
    pseudo_perplexity: float
    """Lower is likelier, comparable across lengths."""
    tokens: tuple[tuple[str, float], ...]
    """Each token with its log-probability."""
    words: tuple[tuple[str, float], ...]
    """Each word, or sign between words, with its log-likelihood in nats; its negative is the surprisal."""
    warnings: tuple[str, ...] = ()


class Exercise(Table):
    """A text with gaps."""

    def __init__(self, raw: dict[str, Any]):
        self.raw = raw
        """All that the program tells."""
        self.text: str = raw["text"]
        """With the keys in their places."""
        self.warnings: list[str] = raw["warnings"]

    def __repr__(self) -> str:
        return f"Exercise({self.rows()!r})"

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each gap: its key, place, probability and bits, its options, further right answers and rivals."""
        rows = []
        for gap in self.raw["gaps"]:
            start, end = gap["span"]
            row = {"key": gap["key"], "start": start, "end": end, "probability": gap["probability"]}
            answers = {"options": gap.get("options", []), "right": gap.get("right", []), "rivals": gap["rivals"]}
            rows.append({**row, "bits": gap["bits"], **answers})
        return rows


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two texts, of which the first should be the likelier."""

    first: Score
    second: Score

    @property
    def difference(self) -> float:
        """Log-likelihood of the first less that of the second, in nats."""
        return self.first.log_likelihood - self.second.log_likelihood

    @property
    def right(self) -> bool:
        """Whether the first is the likelier."""
        return self.difference > 0
