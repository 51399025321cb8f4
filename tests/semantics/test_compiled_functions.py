"""User functions that only Numba can compile: on every target, in every format and dtype.

The values wanted are those of the plain Python function; which entries there are, those of masks.
"""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit.errors import BackendError, TraceError, UnsupportedError
from sparsejit.ir import scalar
from sparsejit.ir._scalar_rules import broken_types
from sparsejit.ir.types import DType
from sparsejit.user_code import typed_function
from tests.semantics.masked import FORMATS, Masked, dense_of, masked, same, shapes, stored_of

WEIGHTS = (0.5, -1.0, 2.0)
LIMIT = 3


def halvings(x: Any) -> Any:
    """How often ``x`` is halved until it is small, by a loop that nobody can unroll."""
    count = 0
    while abs(x) > 1:
        x = x / 2
        count += 1
    return count


def polynomial(x: Any) -> Any:
    total = 0.0 * x
    for weight in WEIGHTS:
        total = total * x + weight
        if total == 1e9:
            break
    return total


def gcd(a: Any, b: Any) -> Any:
    while b != 0:
        a, b = b, a % b
    return abs(a)


def calls_another(x: Any) -> Any:
    return gcd(int(x), 6) + halvings(x) + math.erf(float(x))


def recursive(n: Any) -> Any:
    return 1.0 if n < 2 else n * recursive(n - 1)


def odd_steps(x: Any, i: Any, j: Any) -> Any:
    """Nothing where the walk ends on an even number."""
    steps = 0
    while steps < i + 1:
        x = x + j + 1
        steps += 1
    if int(x) % 2 == 0:
        return None
    return x


UNARY = (halvings, polynomial, calls_another, recursive, lambda x: WEIGHTS[int(x) % 3] * x)
TARGETS = ("interpreter", "llvm", "numba")
RUNS = [(target, name) for target in TARGETS for name in FORMATS]
# Numba takes a second for each kernel: one format shows that its calls are right.
RUNS = [(target, name) for target, name in RUNS if target != "numba" or name == "csr"]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Choose what runs: the interpreter, or the CPU by one of its backends."""

    def choose(target: str) -> str:
        if target == "interpreter":
            return target
        monkeypatch.setenv("SPARSEJIT_CPU_BACKEND", target)
        return "cpu"

    return choose


def matrix(name: str, dtype: Any = np.float64) -> Masked:
    rng = np.random.default_rng(7)
    values = rng.integers(0, 9, (5, 4)).astype(dtype)
    stored = rng.random((5, 4)) < 0.5
    return Masked(values, stored if name != "dense" else np.ones_like(stored), FORMATS[name])


def wanted_of(function: Any, A: Masked, *coordinates: int) -> Any:
    made = np.zeros(A.values.shape)
    for place in np.argwhere(A.stored):
        given = function(float(A.values[tuple(place)]), *(place[c] for c in coordinates))
        made[tuple(place)] = 0 if given is None else given
    return made


@pytest.mark.parametrize(("target", "name"), RUNS)
def test_unary_of_every_format(use: Any, target: str, name: str) -> None:
    A, chosen = matrix(name), use(target)
    compiled = sj.sparse_jit(lambda A: [sj.unary(A, f) for f in UNARY], target=chosen)
    for function, got in zip(UNARY, compiled(A.operand), strict=True):
        np.testing.assert_allclose(dense_of(got), wanted_of(function, A), rtol=1e-12)
        assert (stored_of(got) == A.stored).all()


@pytest.mark.parametrize(("target", "name"), RUNS)
def test_what_gives_nothing_is_not_stored(use: Any, target: str, name: str) -> None:
    A, chosen = matrix(name), use(target)
    got = sj.sparse_jit(lambda A: sj.unary(A, present=odd_steps), target=chosen)(A.operand)
    wanted = wanted_of(odd_steps, A, 0, 1)
    np.testing.assert_allclose(dense_of(got), wanted)
    if A.format is not None:
        assert (stored_of(got) == (wanted != 0)).all()


def keeps_type(x: Any) -> Any:
    while x != x:
        break
    return x


DTYPES = [
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64, np.complex128,
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS[:2])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_every_dtype_passes_as_it_is(use: Any, target: str, dtype: Any) -> None:
    values = np.array([[0, 1, 2, 5], [3, 1, 0, 7]]).astype(dtype)
    if np.dtype(dtype).kind == "i":
        values[0, 2] = np.iinfo(dtype).min
    if np.dtype(dtype).kind == "u":
        values[0, 2] = np.iinfo(dtype).max
    if np.dtype(dtype).kind == "c":
        values = (values * (1 - 2j)).astype(dtype)
    A = Masked(values, values != 0, sj.CSR)
    got = sj.sparse_jit(lambda A: sj.unary(A, keeps_type), target=use(target))(A.operand)
    same(got, A.dense)


def test_numba_passes_the_dtypes_too(use: Any) -> None:
    dtypes = (np.bool_, np.int8, np.uint64, np.float16, np.complex64)
    arrays = [np.array([0, 1, 3]).astype(dtype) for dtype in dtypes]
    compiled = sj.sparse_jit(lambda xs: [sj.unary(x, keeps_type) for x in xs], target=use("numba"))
    for array, got in zip(arrays, compiled(arrays), strict=True):
        same(got, array)


def test_types_are_those_that_numba_infers() -> None:
    def kinds(dtype: Any) -> list[Any]:
        x = np.ones(3, dtype)
        functions = (halvings, keeps_type, lambda a: math.erf(a), lambda a: gcd(a, a) > 1)
        made = sj.sparse_jit(lambda x: [sj.unary(x, f) for f in functions], target="interpreter")
        return [result.dtype.name for result in made(x)]

    assert kinds(np.float32) == ["int64", "float32", "float32", "bool"]
    assert kinds(np.float16) == ["int64", "float16", "float16", "bool"]
    assert kinds(np.int16) == ["int64", "int16", "float64", "bool"]


def mixed(a: Any, b: Any) -> Any:
    return gcd(int(a), int(b)) - halvings(b)


def several(A: Any, B: Any) -> Any:
    both = sj.binary(A, B, overlap=mixed, left=halvings, right="identity")
    kept = sj.select(A, lambda a: gcd(int(a), 6) > 1)
    return both, kept, sj.reduce(lambda s, a: gcd(int(s), int(a)), A, 0, axis=1)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_binary_select_and_reduce(data: Any) -> None:
    shape = (data.draw(shapes), data.draw(shapes))
    check_several(*(data.draw(masked(shape, (np.int64, np.float64))) for _ in range(2)))


@pytest.mark.parametrize("target", TARGETS[1:])
def test_binary_select_and_reduce_compiled(use: Any, target: str) -> None:
    A, B = matrix("csr", np.int64), matrix("dense")
    check_several(A, Masked(B.values, A.stored[::-1], sj.CSR), use(target))


def check_several(A: Masked, B: Masked, target: Any = "interpreter") -> None:
    shape = A.values.shape
    both, kept, total = sj.sparse_jit(several, target=target)(A.operand, B.operand)
    wanted = np.where(B.stored & ~A.stored, B.values, 0).astype(float)
    for place in map(tuple, np.argwhere(A.stored)):
        a, b = A.values[place].item(), B.values[place].item()
        wanted[place] = mixed(a, b) if B.stored[place] else halvings(a)
    np.testing.assert_allclose(dense_of(both).astype(float), wanted)
    keep = np.array([[gcd(int(a), 6) > 1 for a in row] for row in A.values], bool).reshape(shape)
    np.testing.assert_array_equal(dense_of(kept), np.where(keep & A.stored, A.values, 0))
    sums = [
        math.gcd(*(int(a) for a in row[mask])) for row, mask in zip(A.values, A.stored, strict=True)
    ]
    np.testing.assert_array_equal(dense_of(total), sums)


@pytest.mark.parametrize("name", FORMATS)
def test_the_reference_calls_python_itself(name: str) -> None:
    A = matrix(name)
    compiled = sj.sparse_jit(lambda A: (sj.unary(A, calls_another), sj.unary(A, odd_steps)))
    first, second = compiled.lower(A.operand).reference(A.operand)
    np.testing.assert_allclose(first.values, wanted_of(calls_another, A), rtol=1e-12)
    np.testing.assert_allclose(second.values, wanted_of(odd_steps, A, 0, 1))


def refuses_five(x: Any) -> Any:
    while x > 8:
        x -= 1
    if x == 5:
        raise ValueError("five")
    return x


@pytest.mark.parametrize("target", TARGETS)
def test_an_exception_is_an_error_and_no_number(use: Any, target: str) -> None:
    compiled = sj.sparse_jit(lambda A: sj.unary(A, refuses_five) + 1, target=use(target))
    good = sp.csr_array(np.array([[0.0, 4, 9], [7, 0, 1]]))
    for _ in range(2):  # the kernel is as good as before
        np.testing.assert_array_equal(
            dense_of(compiled(good)), np.array([[0.0, 4, 8], [7, 0, 1]]) + 1
        )
        with pytest.raises(BackendError, match="the user function refuses_five raised") as caught:
            compiled(sp.csr_array(np.array([[0.0, 4, 9], [5, 0, 1]])))
        assert caught.value.location is not None
        assert caught.value.location.file == __file__


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_called_where_nothing_is_stored(use: Any, target: str) -> None:
    def fails_at_zero(x: Any) -> Any:
        while x == 0:
            raise ValueError("called for an element that is not stored")
        return x

    A = sp.csr_array(np.array([[0.0, 4], [7, 0]]))
    compiled = sj.sparse_jit(lambda A: sj.unary(A * 2, fails_at_zero), target=use(target))
    np.testing.assert_array_equal(dense_of(compiled(A)), A.toarray() * 2)
    assert compiled.lower(A).reference(A).values.sum() == 22


def test_functions_are_told_apart_by_what_they_read() -> None:
    A = sp.csr_array(np.array([[1.0, 4]]))

    def made(offset: Any) -> Any:
        def shifted(x: Any) -> Any:
            while x > 100:
                x -= 100
            return x + offset

        return sj.sparse_jit(lambda A: sj.unary(A, shifted))

    assert [dense_of(made(k)(A)).tolist() for k in (1, 2, 0.5)] == [
        [[2, 5]],
        [[3, 6]],
        [[1.5, 4.5]],
    ]


def up_to_limit(x: Any) -> Any:
    while x > LIMIT:
        x -= 1
    return x


def test_captured_numbers_are_seen_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    A = sp.csr_array(np.array([[1.0, 9]]))
    compiled = sj.sparse_jit(lambda A: sj.unary(A, up_to_limit))
    assert dense_of(compiled(A)).tolist() == [[1, 3]]
    monkeypatch.setitem(globals(), "LIMIT", 5)
    assert dense_of(compiled(A)).tolist() == [[1, 5]]


@pytest.mark.parametrize("target", TARGETS)
def test_captured_traced_scalars_are_operands(use: Any, target: str) -> None:
    def fn(A: Any, limit: Any) -> Any:
        rows = A.shape[0]

        def reduced(x: Any, step: Any = 0.5) -> Any:
            while x > limit:
                x -= step
            return x + rows

        return sj.unary(A, reduced), sj.unary(A, lambda x: math.erf(x) * limit)

    compiled = sj.sparse_jit(fn, target=use(target))
    for limit, rows in ((1.25, 2), (3.0, 5)):
        values = np.arange(1.0, rows + 1)
        A = sp.csr_array(values[:, None])
        first, second = compiled(A, limit)
        wanted = [v + rows if v <= limit else limit - (limit - v) % 0.5 + rows for v in values]
        np.testing.assert_allclose(dense_of(first)[:, 0], wanted)
        np.testing.assert_allclose(dense_of(second)[:, 0], [math.erf(v) * limit for v in values])


TABLE = np.arange(3.0)


def test_captured_arrays_are_no_constants() -> None:
    def from_table(x: Any) -> Any:
        while x > 2:
            x -= 1
        return TABLE[int(x)]

    compiled = sj.sparse_jit(lambda A: sj.unary(A, from_table))
    with pytest.raises(TraceError, match="it reads TABLE, an operand of the traced function"):
        compiled(sp.csr_array(np.eye(2)))


def test_texts_and_reports() -> None:
    A = sp.csr_array(np.array([[1.0, 9]]))
    compiled = sj.sparse_jit(lambda A: sj.unary(A, halvings))
    lowered = compiled.lower(A)
    assert "{ select(stored(in0), halvings(in0), nothing) }" in lowered.text("tensor")
    assert "= halvings(A_vals[p1_A])" in lowered.text("loops")
    assert "= halvings(A_vals[p1_A])" in lowered.text("source")
    with pytest.raises(UnsupportedError, match="functions that only Numba can compile"):
        lowered.text("mlir")
    assert (
        "halvings: user function: compiled by Numba, CPU only: it cannot be read, because While "
        "is no scalar expression" in lowered.explain()
    )


def scaled_sums(A: Any) -> Any:
    return sj.reduce(lambda total, a: gcd(int(total), int(a)), sj.unary(A, odd_steps), 0, axis=1)


@pytest.mark.parametrize("level", ["tensor", "loops", "source"])
def test_golden_texts(file_regression: Any, level: str) -> None:
    lowered = sj.sparse_jit(scaled_sums).lower(sp.csr_array(np.array([[1.0, 9]])))
    file_regression.check(lowered.text(level), extension=f".{level}.txt", basename="scaled_sums")


def test_the_data_of_a_call_evaluates_back() -> None:
    function: Any = odd_steps
    found = typed_function(function, (DType.FLOAT64, DType.INT64, DType.INT64))
    assert found is not None
    value, question = found
    assert question is not None
    body = scalar.Select(
        scalar.Call(question, (scalar.Arg(0), scalar.Coordinate(0), scalar.Coordinate(1))),
        scalar.Call(value, (scalar.Arg(0), scalar.Coordinate(0), scalar.Coordinate(1))),
        scalar.Nothing(DType.FLOAT64),
    )
    assert eval(repr(body), {**vars(scalar), "DType": DType}) == body
    assert list(broken_types(body, (DType.FLOAT64,))) == []
    assert list(broken_types(body, (DType.INT64,))) == [
        "gives.odd_steps is called with (int64, int64, int64), but takes (float64, int64, int64)",
        "odd_steps is called with (int64, int64, int64), but takes (float64, int64, int64)",
    ]


def test_no_gpu_runs_what_numba_compiles() -> None:
    A = sp.csr_array(np.array([[1.0, 9]]))
    compiled = sj.sparse_jit(lambda A: sj.unary(A, halvings), target="cuda")
    with pytest.raises(UnsupportedError, match="only Numba can compile halvings"):
        compiled(A)
    assert "only Numba can compile halvings" in compiled.explain(A)


@sj.sparse_jit
def pickled(A: Any) -> Any:
    return sj.unary(A, halvings)


def test_functions_with_calls_pickle_by_their_source() -> None:
    A = sp.csr_array(np.array([[1.0, 9]]))
    pickled(A)
    again = pickle.loads(pickle.dumps(pickled))
    np.testing.assert_array_equal(dense_of(again(A)), [[0, 4]])


PROGRAM = """
import numpy as np, scipy.sparse as sp, sparsejit as sj, sys
def halvings(x):
    count = 0
    while abs(x) > 1:
        x = x / 2
        count += 1
    return count
compiled = sj.sparse_jit(lambda A: sj.unary(A, halvings))
print(compiled(sp.csr_array(np.array([[1.0, 9]]))).toarray().tolist())
"""


@pytest.mark.parametrize("backend", ["llvm", "numba"])
def test_other_processes_use_what_is_on_disk(tmp_path: Path, backend: str) -> None:
    """An object on disk names what it calls: an address would be another one in each process."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    environment = {
        **os.environ,
        "SPARSEJIT_CACHE_DIR": str(tmp_path / "cache"),
        "SPARSEJIT_CPU_BACKEND": backend,
    }
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, script], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout == "[[0, 4]]\n"
        assert any((tmp_path / "cache").rglob("*.bin"))


def test_numba_is_imported_when_it_is_needed() -> None:
    program = (
        "import sys, numpy as np, scipy.sparse as sp, sparsejit as sj\n"
        "sj.sparse_jit(lambda A: A * 2)(sp.csr_array(np.eye(2)))\n"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def root(x: Any) -> Any:
    y = x
    for _ in range(24):
        y = 0.5 * (y + x / y) if y != 0 else y
    return y


def doubled(x: Any) -> Any:
    y = x
    for _ in range(40):
        y = max(y, y)
    return y


@pytest.mark.parametrize(("function", "wanted"), [(root, np.sqrt), (doubled, np.abs)])
def test_what_grows_with_each_turn_is_compiled_and_not_written_out(
    function: Any, wanted: Any
) -> None:
    A: Any = sp.random_array((6, 7), density=0.4, rng=np.random.default_rng(0), format="csr")
    result = sj.sparse_jit(lambda A: sj.unary(A, present=function))(A)
    np.testing.assert_allclose(result.toarray(), wanted(A.toarray()), rtol=1e-12)
