"""A second opinion on files: parsers of a few lines that share nothing with ``sparsejit.io``.

They trust the file to be undamaged. What leaves is an ``Answer``: the shape and every entry, with
the halves of symmetric matrices filled in, as (coordinates..., value) in sorted order.
"""

import gzip
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Entry = tuple[tuple[int, ...], str]


class Answer(NamedTuple):
    shape: tuple[int, ...]
    entries: list[Entry]


def text_of(path: Path) -> list[str]:
    raw = path.read_bytes()
    raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    return [line for line in raw.decode("utf-8", "replace").splitlines() if line.strip()]


def answer(shape: Sequence[int], entries: Sequence[tuple[tuple[int, ...], Any]]) -> Answer:
    """Return an ``Answer``; values are compared by their text, so that nan equals nan."""
    return Answer(tuple(shape), sorted((at, str(complex(value) + 0)) for at, value in entries))


def arrays_answer(shape: Sequence[int], coords: Sequence[NDArray[Any]], values: Any) -> Answer:
    places = zip(*(column.tolist() for column in coords), strict=True)
    return answer(shape, list(zip(places, values.tolist(), strict=True)))


def dense_answer(array: NDArray[Any]) -> Answer:
    places = itertools.product(*map(range, array.shape))
    return answer(array.shape, list(zip(places, array.reshape(-1).tolist(), strict=True)))


def matrix_market(path: Path) -> Answer:
    banner, *lines = text_of(path)
    _, _, layout, field, symmetry = banner.lower().split()
    size, *body = [line.split() for line in lines if not line.strip().startswith("%")]
    shape = [int(word) for word in size] if layout == "array" else [int(w) for w in size[:-1]]
    if layout == "array":
        places = array_places(shape, symmetry)
    else:
        places = [tuple(int(word) - 1 for word in line[: len(shape)]) for line in body]
        body = [line[len(shape) :] for line in body]
    entries = []
    for at, words in zip(places, body, strict=True):
        value: complex = 1.0 if field == "pattern" else float(words[0])
        if field == "complex":
            value = complex(float(words[0]), float(words[1]))
        entries.append((at, value))
        if symmetry != "general" and at[0] != at[1]:
            entries.append((at[::-1], mirrored(value, symmetry)))
        elif layout == "array" and symmetry == "skew-symmetric":
            raise AssertionError("the diagonal of a skew-symmetric array is not stored")
    if layout == "array" and symmetry == "skew-symmetric":
        entries += [((k, k), 0.0) for k in range(shape[0])]
    return answer(shape, entries)


def mirrored(value: complex, symmetry: str) -> complex:
    match symmetry:
        case "hermitian":
            return value.conjugate()
        case "skew-symmetric":
            return -value
        case _:
            return value


def array_places(shape: list[int], symmetry: str) -> list[tuple[int, ...]]:
    """Return the places that an array file lists: the first index runs fastest."""
    places = [at[::-1] for at in itertools.product(*map(range, shape[::-1]))]
    match symmetry:
        case "general":
            return places
        case "skew-symmetric":
            return [at for at in places if at[0] > at[1]]
        case _:
            return [at for at in places if at[0] >= at[1]]


def frostt(path: Path, shape: list[int], head: int, base: int) -> Answer:
    """Parse a FROSTT file with ``head`` lines before its entries; duplicates are added up."""
    lines = [line.split() for line in text_of(path) if not line.strip().startswith("#")]
    total: dict[tuple[int, ...], float] = {}
    for line in lines[head:]:
        at = tuple(int(word) - base for word in line[:-1])
        total[at] = total.get(at, 0.0) + float(line[-1])
    return answer(shape, list(total.items()))


def smtx(path: Path) -> Answer:
    lines = [line for line in text_of(path) if not line.startswith("%")]
    rows, columns, _ = (int(word) for word in lines[0].replace(",", " ").split())
    offsets, indices = ([int(word) for word in line.split()] for line in lines[1:])
    entries = [
        ((row, column), 1.0)
        for row in range(rows)
        for column in indices[offsets[row] : offsets[row + 1]]
    ]
    return answer((rows, columns), entries)


def read_answer(x: Any) -> Answer:
    """Return what ``sparsejit.io.read`` returned in the form of the parsers here."""
    if isinstance(x, np.ndarray):
        return dense_answer(x)
    if hasattr(x, "coords"):
        return arrays_answer(x.shape, x.coords, x.data)
    return arrays_answer(x.shape, x.coordinates, x.values)
