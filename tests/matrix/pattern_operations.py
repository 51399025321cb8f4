"""More operations of the matrix test: those that read patterns, move entries, loop, or assign.

Each is written in the one way that users have; the three spellings are that one, or differ where
index notation has words of its own. ``numpy`` takes dense arrays and, as ``masks``, what they
store.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import sparsejit as sj
from tests.matrix.operations import Function, Operation, Source

__all__ = ["PATTERN_OPERATIONS"]

A, B = Source("A", "mn", "a"), Source("B", "mn", "b")
LEFT, RIGHT = Source("A", "mk", "a"), Source("B", "kn", "b")


def _once(function: Function, index: Function | None = None) -> dict[str, Function]:
    return {"einsum": function, "array": function, "index": index or function}


# ---------------------------------------------------------------- functions of scalars


def _folded(a: Any) -> Any:
    return a * a - a if a > 1 else a + 2


def _by_place(a: Any, i: Any, j: Any) -> Any:
    return a if i > j else -a


def _is_large(a: Any, i: Any) -> Any:
    return a > 1 or i == 0


def _constant() -> Any:
    return 2


def _at(function: Callable[..., Any], *arrays: Any, where: Any) -> Any:
    """Return a function at some elements, 0 elsewhere; parameters beyond the values are places."""
    made = np.zeros(where.shape, np.result_type(*arrays))
    count = function.__code__.co_argcount - len(arrays)
    for place in np.argwhere(where):
        at = tuple(place)
        made[at] = function(*(array[at] for array in arrays), *place[:count])
    return made


def _selected(A: Any, masks: Any) -> Any:
    rows = np.arange(A.shape[0])[:, None]
    return np.where(masks[0] & ((A > 1) | (rows == 0)), A, 0)


def _combined(A: Any, B: Any, masks: Any) -> Any:
    both, one, two = masks[0] & masks[1], masks[0] & ~masks[1], masks[1] & ~masks[0]
    return np.where(both, A - B, np.where(one, A, np.where(two, -B, 0))).astype(A.dtype)


def _reduced(A: Any, masks: Any) -> Any:
    return np.where(masks[0], A, 0).sum(axis=1, dtype=A.dtype) + A.dtype.type(3)


def _softmax(A: Any, masks: Any) -> Any:
    wide = np.where(masks[0], A, -np.inf).astype(float)
    most = wide.max(axis=1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        powers = np.where(masks[0], np.exp(wide - most), 0.0)
        made = np.where(masks[0], powers / powers.sum(axis=1, keepdims=True), 0.0)
    return made.astype(A.dtype if A.dtype.kind == "f" else np.float64)


def _softmax_at_indices(A: Any) -> Any:
    i, j = sj.indices("i j")
    P = sj.output()
    P[i, j] = sj.softmax(A[i, j], j)
    return P


def _argmin_at_indices(A: Any) -> Any:
    i, j = sj.indices("i j")
    y = sj.output()
    y[i] = sj.argmin(A[i, j], over=j)
    return y


# ---------------------------------------------------------------- semirings


def _over(plus: Any, times: Any, start: Callable[[Any], Any]) -> Function:
    def product(A: Any, B: Any, masks: Any) -> Any:
        both = masks[0][:, :, None] & masks[1][None]
        values = times(A[:, :, None], B[None])
        made = np.where(both, values, start(A.dtype)).astype(A.dtype)
        return plus.reduce(made, axis=1, initial=start(A.dtype), dtype=A.dtype)

    return product


def _largest(dtype: Any) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def _smallest(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _pairs(a: Any, b: Any) -> Any:
    return np.ones(np.broadcast_shapes(a.shape, b.shape), a.dtype)


def _zero(dtype: Any) -> Any:
    return dtype.type(0)


def _semiring(name: str) -> dict[str, Function]:
    return _once(lambda A, B: sj.einsum("ik,kj->ij", A, B, semiring=name))


# ---------------------------------------------------------------- loops and branches


def _powers(A: Any, x: Any) -> Any:
    return sj.fori_loop(0, 2, lambda i, y: A @ y + i, x)


def _doubled(A: Any) -> Any:
    return sj.fori_loop(0, 2, lambda i, S: sj.where_stored(S, S * 2), A)


def _while_small(A: Any, x: Any) -> Any:
    def step(carried: Any) -> Any:
        n, y = carried
        return n + 1, y + A.sum(axis=1)

    return sj.while_loop(lambda c: c[0] < 2, step, (0, x))[1]


def _branch(A: Any, B: Any) -> Any:
    return sj.cond((A != 0).any(), lambda: A @ B, lambda: (A @ B) * 3)


# ---------------------------------------------------------------- assignments to sparse arguments


def _scaled(S: Any, D: Any) -> Any:
    S *= D
    return S


def _sampled(S: Any, A: Any, B: Any) -> Any:
    S += sj.where_stored(S, A @ B)
    return S


def _sampled_at_indices(S: Any, A: Any, B: Any) -> Any:
    i, j, k = sj.indices("i j k")
    S[i, j] += sj.where_stored(S[i, j], sj.sum(A[i, k] * B[k, j], over=k))
    return S


def _reversed_into(S: Any, B: Any) -> Any:
    S[:] = sj.where_stored(S, B[:, ::-1] + S)
    return S


PATTERN_OPERATIONS = (
    Operation("unary", (A,), "mn", _once(lambda A: sj.unary(A, present=_folded)),
              lambda A, masks: _at(_folded, A, where=masks[0]), reads_pattern=True, ordered=True),
    Operation("unary by place", (A,), "mn", _once(lambda A: sj.unary(A, present=_by_place)),
              lambda A, masks: _at(_by_place, A, where=masks[0]), reads_pattern=True),
    Operation("absent", (A,), "mn", _once(lambda A: sj.unary(A, "identity", _constant)),
              lambda A, masks: np.where(masks[0], A, 2).astype(A.dtype), reads_pattern=True),
    Operation("binary", (A, B), "mn",
              _once(lambda A, B: sj.binary(A, B, lambda a, b: a - b, "identity", lambda b: -b)),
              _combined, reads_pattern=True),
    Operation("select", (A,), "mn", _once(lambda A: sj.select(A, _is_large)),
              _selected, reads_pattern=True, ordered=True),
    Operation("reduce", (A,), "m",
              _once(lambda A: sj.reduce(lambda x, y: x + y, A, identity=3, axis=1)),
              _reduced, reads_pattern=True),
    Operation("softmax", (A,), "mn", _once(lambda A: sj.softmax(A, axis=1), _softmax_at_indices),
              _softmax, reads_pattern=True, ordered=True),
    Operation("argmin", (A,), "m", _once(lambda A: np.argmin(A, axis=1), _argmin_at_indices),
              lambda A: np.argmin(A, axis=1), needs="n", ordered=True),
    Operation("row minimum", (A, B), "m", _once(lambda A, B: (A + B).min(axis=1)),
              lambda A, B: (A + B).min(axis=1), needs="n", ordered=True),
    Operation("column products", (A,), "n", _once(lambda A: (A + 1).prod(axis=0)),
              lambda A: (A + 1).prod(axis=0)),
    Operation("any and all", (A, B), "m",
              _once(lambda A, B: (A != 0).any(axis=1) & (B == 0).all(axis=1)),
              lambda A, B: (A != 0).any(axis=1) & (B == 0).all(axis=1)),
    Operation("mean", (A,), "n", _once(lambda A: A.mean(axis=0)), lambda A: A.mean(axis=0),
              needs="m"),
    Operation("min plus", (LEFT, RIGHT), "mn", _semiring("min_plus"),
              _over(np.minimum, np.add, _largest), reads_pattern=True, ordered=True),
    Operation("max times", (LEFT, RIGHT), "mn", _semiring("max_times"),
              _over(np.maximum, np.multiply, _smallest), reads_pattern=True, ordered=True),
    Operation("plus pair", (LEFT, RIGHT), "mn", _semiring("plus_pair"),
              _over(np.add, _pairs, _zero), reads_pattern=True),
    Operation("concatenate", (A, Source("B", "pn", "b")), "qn",
              _once(lambda A, B: np.concatenate([A, B])), lambda A, B: np.concatenate([A, B])),
    Operation("concatenate columns", (A, Source("B", "mk", "b")), "ms",
              _once(lambda A, B: np.concatenate([A, B], axis=1)),
              lambda A, B: np.concatenate([A, B], axis=1)),
    Operation("reshape", (A,), "nm", _once(lambda A: A.reshape(A.shape[1], A.shape[0])),
              lambda A: A.reshape(A.shape[1], A.shape[0])),
    Operation("pad", (A,), "tu", _once(lambda A: np.pad(A, ((1, 0), (0, 2)))),
              lambda A: np.pad(A, ((1, 0), (0, 2)))),
    Operation("slice with steps", (A,), "vw", _once(lambda A: A[::2, ::-1]),
              lambda A: A[::2, ::-1]),
    Operation("three factors", (LEFT, RIGHT, Source("C", "nl", "dense")), "ml",
              _once(lambda A, B, C: A @ B @ C), lambda A, B, C: A @ B @ C),
    Operation("loop", (Source("A", "mm", "a"), Source("x", "m", "dense")), "m", _once(_powers),
              lambda A, x: A @ (A @ x) + 1),
    Operation("sparse loop", (A,), "mn", _once(_doubled), lambda A: A * 4, carries=True),
    Operation("while", (A, Source("x", "m", "dense")), "m", _once(_while_small),
              lambda A, x: x + 2 * A.sum(axis=1)),
    Operation("branch", (LEFT, RIGHT), "mn", _once(_branch),
              lambda A, B: A @ B if (A != 0).any() else (A @ B) * 3),
    Operation("scale in place", (Source("S", "mn", "a"), Source("D", "mn", "dense")), "mn",
              _once(_scaled), lambda S, D: S * D, assigns=True),
    Operation("sampled in place",
              (Source("S", "mn", "a"), Source("A", "mk", "b"), Source("B", "kn", "dense")), "mn",
              _once(_sampled, _sampled_at_indices),
              lambda S, A, B, masks: np.where(masks[0], S + A @ B, 0), reads_pattern=True,
              assigns=True),
    Operation("entries of another in place", (Source("S", "mn", "a"), B), "mn",
              _once(_reversed_into),
              lambda S, B, masks: np.where(masks[0], B[:, ::-1] + S, 0), reads_pattern=True,
              assigns=True),
)  # fmt: skip
