"""``Lowered``: texts, explanation, reference and compilation."""

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.api import CacheInfo

A = sp.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]))


@sparse_jit(target="interpreter")
def sampled(S: Any, U: Any, V: Any) -> Any:
    return S * (U @ V)


def operands() -> Any:
    return A, np.arange(4.0).reshape(2, 2), np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("level", "part"),
    [
        ("tensor", "func @sampled(%S: f64[d0, d1] csr<32, 32>"),
        ("decisions", "decisions @sampled"),
        ("copies", "after copy insertion @sampled"),
        ("loops", "S_crd1"),
        ("source", "def sampled"),
        ("mlir", "func.func @sampled(%S: tensor<?x?xf64, #"),
    ],
)
def test_every_level_has_its_text(level: str, part: str) -> None:
    lowered = sampled.lower(*operands())
    assert part in lowered.text(level)
    assert lowered.text(level) == sampled.lower(*operands()).text(level)


def test_a_wrong_level_names_the_choices() -> None:
    message = (
        "level must be one of 'tensor', 'decisions', 'copies', 'loops', 'source', 'plan', 'mlir', "
        "not 'ast'"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        sampled.lower(*operands()).text("ast")


def test_there_is_no_plan_without_a_device() -> None:
    with pytest.raises(sj.errors.UnsupportedError) as caught:
        sampled.lower(*operands()).text("plan")
    assert "there is no launch plan without a device" in str(caught.value)


def test_lowering_runs_and_compiles_nothing() -> None:
    f = sparse_jit(lambda x: x * 2, target="interpreter")
    lowered = f.lower(np.ones(3))
    assert f.cache_info() == CacheInfo(1, 0, 0)
    call = lowered.compile()
    assert f.cache_info() == CacheInfo(1, 1, 0)
    assert call(np.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert f.cache_info() == CacheInfo(1, 1, 1)
    lowered.compile()
    assert f.cache_info() == CacheInfo(1, 1, 1)


def test_reference_gives_values_and_what_is_stored() -> None:
    lowered = sampled.lower(*operands())
    S, U, V = operands()
    values, stored = lowered.reference(S, U, V)
    np.testing.assert_allclose(values, S.toarray() * (U @ V))
    assert stored.tolist() == [[True, False, True], [False, False, True]]
    bigger = sp.csr_array(np.eye(5)), np.ones((5, 3)), np.ones((3, 5))
    np.testing.assert_allclose(lowered.reference(*bigger)[0], 3 * np.eye(5))
    with pytest.raises(sj.errors.TensorTypeError, match="do not fit the program"):
        lowered.reference(sp.csr_array(np.eye(5)), np.ones((4, 3)), np.ones((3, 5)))


def test_reference_keeps_the_arguments_and_the_structure() -> None:
    @sparse_jit(target="interpreter")
    def f(y: Any, x: Any) -> Any:
        y += x
        return {"y": y, "n": (y.sum(), 3)}

    x, y = np.ones(2), np.array([1.0, 2.0])
    result = f.lower(y, x).reference(y, x)
    assert y.tolist() == [1.0, 2.0]
    assert result["y"].values.tolist() == [2.0, 3.0]
    assert result["n"][0].values == 5.0
    assert result["n"][1] == 3


def test_explain_after_a_call_that_failed() -> None:
    f = sparse_jit(lambda S, x: S @ x, target="interpreter")
    wrong, x = np.ones(4), np.ones(3)
    with pytest.raises(ValueError, match="inner extents") as caught:
        f(A, wrong)
    for call in (f, f.bind(S=A)):
        arguments = (A,) if call is f else ()
        with pytest.raises(ValueError, match="inner extents"):
            call(*arguments, wrong)
        told = call.explain().splitlines()
        assert told[0] == "<lambda>: the last call failed"
        assert told[1] == "  TensorValueError: " + str(caught.value).splitlines()[0]
        assert "test_lowered.py" in told[2]
        assert f.explain() == call.explain()
        call(*arguments, x)
        assert call.explain().startswith("<lambda>: runs on interpreter")
    with pytest.raises(TypeError):
        f(A, x, x)
    assert "the last call failed\n  TypeError: " in f.explain()


def test_explain_of_a_plan() -> None:
    f = sparse_jit(lambda S, x: S @ x)
    plan, x = f.bind(S=A), np.ones(3)
    with pytest.raises(ValueError, match="has not been called yet"):
        plan.explain()
    before = plan.explain(x)
    assert "S: f64[d0, d1] csr<32, 32> (scipy-array; 2 x 3, 3 stored, 48 B)" in before
    assert plan.explain(x=x).splitlines()[:4] == before.splitlines()[:4]
    with pytest.raises(TypeError, match="1 positional arguments, 2 were given"):
        plan.explain(x, x)
    plan(x)
    assert "(the last call was new)" in plan.explain()
    f(A, np.ones(3, np.float32))
    assert "x: f64[d1]" in plan.explain()  # the plan's own last call
    assert "x: f32[d1]" in f.explain()
    for _ in range(3):
        plan(x)
    for told in (plan.explain(), f.explain()):
        assert "x: f64[d1]" in told
        assert "(the last call was a hit)" in told
    plan.update(S=2 * A)
    assert "x: f64[d1]" in plan.explain()
    assert "3 stored" in f.bind(S=A, x=x).explain()


def test_explain_before_and_after_a_call() -> None:
    f = sparse_jit(lambda S, x: S @ x, target="interpreter")
    with pytest.raises(ValueError, match="has not been called yet"):
        f.explain()
    x = np.ones(3)
    before = f.explain(A, x)
    assert "compile " not in before
    f(A, x)
    first = f.explain()
    assert "(the last call was new)" in first
    f(A, x)
    second = f.explain()
    for part in (
        "runs on interpreter (the decorator asks for it), interpreted as plain Python",
        "S: f64[d0, d1] csr<32, 32> (scipy-array; 2 x 3, 3 stored, 48 B)",
        "x: f64[d1] (numpy; 3, 3 stored, 24 B)",
        "operations, each a generated kernel on interpreter (the target offers no library kernels)",
        "%2[i] = %2[i] + %S[i, j] * %x[j], from 0.0",
        "loop order: i, j",
        "test_lowered.py:",
        "copies: none",
        "transfers: none",
        "cache: traces 1, compiles 1, hits 1 (the last call was a hit)",
    ):
        assert part in second
    assert re.search(r"time: trace [\d.e+-]+ ms, compile [\d.e+-]+ ms, run [\d.e+-]+ ms", second)


def test_explain_names_copies_and_their_conflict() -> None:
    @sparse_jit(target="interpreter")
    def f(x: Any, y: Any) -> Any:
        z = y + 0
        z[:] = x
        w = z * 1
        z[0] = 5.0
        return z, w, y

    text = f.explain(np.ones(3), np.ones(3))
    assert "copies" in text


def test_explain_does_not_keep_operands_alive() -> None:
    import gc
    import weakref

    f = sparse_jit(lambda x: x * 2, target="interpreter")
    x = np.ones(3)
    f(x)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None
    assert "3 stored" in f.explain()
