"""What LLVM has to do: how much is printed, which passes run, and what is left to none of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.backends.llvm import LlvmBackend, _compiler
from sparsejit.backends.llvm._engine import Effort, Emitted
from sparsejit.ir.loops import Expr, For, LoopFunc, Store
from tests.backends.loop_writing import add, function, index, load, memref, number, run, var

RNG = np.random.default_rng(5)
A = sp.random(30, 30, 0.2, format="csr", random_state=RNG)
B = sp.random(30, 30, 0.3, format="csr", random_state=RNG)
X, Y = RNG.random((30, 64)), RNG.random((30, 64))
i, n = var("i"), var("n")


def _attention(S: Any, Q: Any, K: Any, V: Any) -> Any:
    return sj.softmax(S * (Q @ K.T), axis=1) @ V


# The lines are those of today and a tenth: what grows beyond that makes first calls slower.
KERNELS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Effort, int]] = {
    "spmm": (lambda a, x: a @ x, (A, X), Effort.PRINTED, 1400),
    "sddmm": (lambda s, u, v: s * (u @ v.T), (A, X, Y), Effort.PRINTED, 1050),
    "add": (lambda a, b: a + b, (A, B), Effort.PRINTED, 1150),
    "multiply": (lambda a, b: a * b, (A, B), Effort.PRINTED, 1250),
    "spgemm": (lambda a, b: a @ b, (A, B), Effort.NESTED, 2100),
    "attention": (_attention, (A, X, Y, X), Effort.PRINTED, 1950),
    "dense": (lambda x, y: x * 2 + y, (X, Y), Effort.FULL, 250),
    "a function that is inlined": (
        lambda x: x * x,
        (X.astype(np.float16),),
        Effort.FULL,
        270,
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_how_much_is_compiled_and_how(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Emitted] = []
    compiled = _compiler.compiled

    def recorded(emitted: Emitted, called: frozenset[str] = frozenset()) -> bytes:
        made.append(emitted)
        return compiled(emitted, called)

    monkeypatch.setattr(_compiler, "compiled", recorded)
    fn, operands, effort, lines = KERNELS[name]
    sj.sparse_jit(fn, target="cpu", cache=False)(*operands)
    (emitted,) = (one for one in made if one.effort is not Effort.LEAST)
    assert emitted.effort is effort
    assert emitted.text.count("\n") <= lines


def test_what_runs_once_a_chunk_is_left_as_it_is() -> None:
    func = function(
        "f",
        [n, memref("y"), memref("x")],
        [For(i, index(0), n, (Store(memref("y"), (i,), load(memref("x"), i)),), parallel=True)],
    )
    heads = [line for line in LlvmBackend().llvm_ir(func).splitlines() if line[:6] == "define"]
    for name in ("cut_i", "work_i", "entry"):
        (head,) = (line for line in heads if f"@{name}(" in line)
        assert "optnone" in head
    assert sum("optnone" in head for head in heads) == 3


# ---------------------------------------------------------------- blocks that move

y, x, z = memref("y"), memref("x"), memref("z", rank=2)
first, last = var("first"), var("last")


def _moving(target: Any, at: tuple[Expr, ...], value: Expr) -> LoopFunc:
    return function("f", [first, last, y, x, z], [For(i, first, last, (Store(target, at, value),))])


MOVES = {
    "a copy": (_moving(y, (i,), load(x, i)), "memcpy"),
    "zeros": (_moving(y, (i,), number(0.0)), "memset"),
    "a row": (_moving(z, (index(1), i), load(x, i)), "memcpy"),
    "out of a row": (_moving(y, (i,), load(z, index(2), i)), "memcpy"),
    "zeros with a sign": (_moving(y, (i,), number(-0.0)), ""),
    "ones": (_moving(y, (i,), number(1.0)), ""),
    "a column": (_moving(z, (i, index(1)), load(x, i)), ""),
    "in one array": (_moving(y, (add(i, index(1)),), load(y, i)), ""),
    "in one place": (_moving(y, (index(0),), load(x, i)), ""),
    "to where it was": (_moving(y, (i,), load(y, i)), ""),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("bounds", [(0, 5), (2, 4), (3, 3), (4, 1)])
@pytest.mark.parametrize("step", [1, 2])
def test_blocks_that_move(name: str, bounds: tuple[int, int], step: int) -> None:
    func, call = MOVES[name]
    text = LlvmBackend().llvm_ir(func)
    assert [word for word in ("memcpy", "memset") if f"call void @llvm.{word}" in text] == (
        [call] if call else []
    )
    values = RNG.random((2, 6 * step))
    results = []
    for backend in ("interpreter", "llvm"):
        one, other, both = np.copy(values[0])[::step], np.copy(values[1])[::step], np.ones((6, 9))
        run(backend, func, *bounds, one, other, both[:, :: 3 - 2 * step])
        results.append([array.tobytes() for array in (one, other, both)])
    assert results[0] == results[1]
