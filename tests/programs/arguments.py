"""The arguments of random programs: memory, views of it that may overlap, formats, and numbers."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np

from tests.programs.language import Base, Object, Param, Program

__all__ = ["draw_arguments"]

FORMATS = {
    1: ("SparseVector", "COO(1)"),
    2: (
        "CSR", "CSC", "COO(2)", "DCSR", "DCSC", "BSR(2, 2)", "DIA", "ELL(7)",
        "Format('(i, j) -> (i : dense, j : loose_compressed)')",
        "Format('(i, j) -> (i : compressed(nonunique), j : singleton)')",
        "Format('(i, j) -> (j : compressed(nonunique), i : singleton(soa))')",
    ),
    3: (
        "CSF(3)", "COO(3)", "Batched(CSR)",
        "Format('(i, j, k) -> (k : compressed, i : dense, j : compressed)')",
    ),
    4: ("CSF(4)", "COO(4)"),
}  # fmt: skip
DTYPES = (
    "float64", "float64", "float64", "float64", "float64", "int64", "int64", "float32", "float32",
    "bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
    "complex64", "complex128",
)  # fmt: skip
ARRANGEMENTS = (
    "apart", "apart", "apart", "apart", "same", "shifted", "shifted", "transposed", "row",
    "interleaved",
)  # fmt: skip
NUMBERS: tuple[Any, ...] = (2, -1, 3, 2.0, 0.0, np.float32(2), np.int16(3), np.float64(-1), True)


def draw_arguments(rng: random.Random) -> Program:
    """Return a program without statements."""
    m, n = (rng.choice([1, 2, 2, 3, 3, 4, 4, 0] if rng.random() < 0.3 else [2, 3, 4]) for _ in "mn")
    if rng.random() < 0.35:
        n = m
    main = rng.choice(DTYPES)
    bases: list[Base] = []
    objects: list[Object] = []

    def add(shape: tuple[int, ...], dense: bool) -> None:
        dtype = main if rng.random() < 0.85 else rng.choice(DTYPES)
        density = 1.0 if dense else rng.choice([0.3, 0.6])
        fill = rng.choice([1, 1, 2]) if not dense and rng.random() < 0.12 else 0
        bases.append(Base(shape, dtype, rng.randrange(10**6), density, fill))
        fmt = "" if dense else rng.choice(FORMATS[len(shape)])
        objects.append(Object(len(bases) - 1, format=fmt))

    _overlapping(rng.choice(ARRANGEMENTS), m, n, main, rng, bases, objects)
    is_twice = not objects and rng.random() < 0.35
    shapes = [(m,), (n,), (m, n), (m, n), (n, m), (m, n), (m, m), (m, n, 2), (2, m, n)]
    shapes += [(m, n, 2), (2, m, n)] if rng.random() < 0.5 else []
    shapes += [(n, 2, 2, m)] if rng.random() < 0.2 else []
    for _ in range(rng.randint(2, 4)):
        shape = rng.choice(shapes)
        add(shape, rng.random() < (0.4 if len(shape) > 1 else 0.8))
    if all(described.format for described in objects):
        add((m,), True)
    letters = list("yxzwuv")
    params = [
        Param("ABCDEFGH"[number] if described.format else letters.pop(0), number)
        for number, described in enumerate(objects)
    ]
    if is_twice:
        twice = rng.randrange(len(params))
        params.append(Param(f"{params[twice].name}2", twice))
    if rng.random() < 0.4:
        params.append(Param("s", None, rng.choice(NUMBERS)))
    rng.shuffle(params)
    return replace(_EMPTY, bases=tuple(bases), objects=tuple(objects), params=tuple(params))


_EMPTY = Program((), (), (), (), ())


def _overlapping(
    arrangement: str,
    m: int,
    n: int,
    dtype: str,
    rng: random.Random,
    bases: list[Base],
    objects: list[Object],
) -> None:
    """Add two dense objects that are views of one memory."""
    seed = rng.randrange(10**6)
    is_vector = rng.random() < 0.5
    rest = () if is_vector else (n,)
    match arrangement:
        case "shifted":
            bases.append(Base((m + 1, *rest), dtype, seed))
            views: list[tuple[object, ...]] = [((0, m, None),), ((1, m + 1, None),)]
            views[1] = ((None, None, -1),) if m == 0 else views[1]
            objects += [Object(0, view) for view in views]
        case "interleaved":
            bases.append(Base((2 * m, *rest), dtype, seed))
            objects += [Object(0, ((0, None, 2),)), Object(0, ((1, None, 2),))]
        case "transposed":
            bases.append(Base((m, m), dtype, seed))
            objects += [Object(0), Object(0, transposed=True)]
        case "row":
            bases.append(Base((m + 1, n), dtype, seed))
            column = rng.random() < 0.3
            part: tuple[object, ...] = ((None, None, None), 0) if column and n else (m,)
            objects += [Object(0), Object(0, part)]
        case _:
            pass
