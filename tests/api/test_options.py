"""Every argument of the decorator, its wrong values, and the environment."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.api import CompiledFunction
from sparsejit.runtime.at_hand import device_at_hand
from sparsejit.runtime.probe import cuda_obstacles, cupy_version, package_version, probe_driver


def double(x: Any) -> Any:
    return x + x


CHOICES = {
    "transfer": "'regular-dma', 'pinned-dma', 'zero-copy'",
    "target": "'auto', 'cpu', 'cuda', 'interpreter'",
    "library": "'auto', 'never', 'only'",
    "parallelization": "'none', 'dense-outer-loop', 'any-storage-outer-loop', 'dense-any-loop', "
    "'any-storage-any-loop'",
    "check": "'once', 'always', 'never'",
}


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("value", ["gpu", "", None, 1, ("cpu",), b"cpu"])
def test_a_wrong_choice_names_the_choices(name: str, value: object) -> None:
    message = f"{name} must be one of {CHOICES[name]}, not {value!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        sparse_jit(**{name: value})  # type: ignore[call-overload]  # wrong on purpose


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_is_accepted(name: str) -> None:
    for value in CHOICES[name].replace("'", "").split(", "):
        made = sparse_jit(**{name: value})(double)  # type: ignore[call-overload]  # by name
        assert isinstance(made, CompiledFunction)


@pytest.mark.parametrize("name", ["deterministic", "reassociate", "cache"])
@pytest.mark.parametrize("value", [0, 1, None, "yes"])
def test_a_flag_is_a_bool(name: str, value: object) -> None:
    message = f"{name} must be True or False, not {value!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        sparse_jit(**{name: value})  # type: ignore[call-overload]  # wrong on purpose


@pytest.mark.parametrize(
    "value", ["csr", 3, {"a": sj.CSR}, {-1: sj.CSR}, {True: sj.CSR}, {0: "csr"}]
)
def test_output_is_a_format_or_a_dict_of_formats(value: object) -> None:
    message = (
        "output must be a sparsejit.Format, a dict from result position (0, 1, ...) to Format, "
        f"or None, not {value!r}"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        sparse_jit(output=value)  # type: ignore[call-overload]  # wrong on purpose


@pytest.mark.parametrize("value", [1, ("x", 2), None, ("not a name",)])
def test_static_argnames_are_names(value: object) -> None:
    message = f"the name of an argument or a sequence of names, not {value!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        sparse_jit(static_argnames=value)  # type: ignore[call-overload]  # wrong on purpose


def test_static_argnames_name_parameters() -> None:
    message = "static_argnames names 'y', which is no parameter of double; the choices are 'x'"
    with pytest.raises(ValueError, match=re.escape(message)):
        sparse_jit(double, static_argnames="y")


def test_only_functions_are_decorated() -> None:
    with pytest.raises(ValueError, match="sparse_jit decorates a function, not 3"):
        sparse_jit(3)  # type: ignore[call-overload]  # wrong on purpose


def test_the_transfer_enum_is_accepted() -> None:
    made = sparse_jit(double, transfer=sj.Transfer.ZERO_COPY)
    assert made.options.transfer is sj.Transfer.ZERO_COPY


@pytest.mark.parametrize(
    "decorate",
    [sparse_jit, sparse_jit(), sparse_jit(target="interpreter")],
    ids=["bare", "()", "kw"],
)
def test_bare_and_with_arguments(decorate: Callable[..., CompiledFunction]) -> None:
    made = decorate(double)
    assert (made.__name__, made.__doc__, made.py_func) == ("double", double.__doc__, double)
    assert made.__module__ == __name__


def test_output_format() -> None:
    A = sp.csr_array(np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0]]))
    made = sparse_jit(lambda A: (A @ A, A @ A.T), output={0: sj.Dense(2)}, target="interpreter")
    first, second = made(A)
    np.testing.assert_allclose(first, (A @ A).toarray())
    assert isinstance(second, sp.csr_array)
    everywhere = sparse_jit(lambda A: (A @ A, A @ A.T), output=sj.Dense(2), target="interpreter")
    assert [type(result) for result in everywhere(A)] == [np.ndarray, np.ndarray]


def test_the_environment_chooses_where_the_decorator_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARSEJIT_TARGET", "interpreter")
    chosen, fixed = sparse_jit(double), sparse_jit(double, target="cpu")
    x = np.ones(2)
    assert "runs on interpreter (SPARSEJIT_TARGET asks for it)" in chosen.explain(x)
    assert "runs on cpu (the decorator asks for it)" in fixed.explain(x)
    monkeypatch.setenv("SPARSEJIT_TARGET", "gpu")
    with pytest.raises(ValueError, match="SPARSEJIT_TARGET must be one of 'auto'"):
        chosen(x)


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_the_number_of_threads_is_checked(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("SPARSEJIT_NUM_THREADS", value)
    message = f"SPARSEJIT_NUM_THREADS must be a positive integer, not {value!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        sparse_jit(double, target="interpreter")(np.ones(2))


@pytest.mark.parametrize("value", ["-1", "all", "1.5", "64MB"])
def test_the_kept_memory_is_checked(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("SPARSEJIT_KEPT_MEMORY", value)
    message = f"SPARSEJIT_KEPT_MEMORY must be a number of megabytes, 0 or more, not {value!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        sparse_jit(double, target="interpreter")(np.ones(2))


def test_dump_writes_the_levels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARSEJIT_DUMP", "tensor,decisions,copies,loops,source,mlir")
    sparse_jit(double, target="interpreter")(np.ones(2))
    written = capsys.readouterr().err
    for level in ("tensor", "decisions", "copies", "loops", "source", "mlir"):
        assert f"// ---- sparsejit {level} ----" in written
    monkeypatch.setenv("SPARSEJIT_DUMP", "loop")
    with pytest.raises(ValueError, match="SPARSEJIT_DUMP names 'loop'"):
        sparse_jit(double, target="interpreter")(np.ones(2))


def test_tracing_and_compiling_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    made = sparse_jit(double, target="interpreter")
    with caplog.at_level("DEBUG", logger="sparsejit"):
        made(np.ones(2))
        made(np.ones(3))
    texts = [record.getMessage().rpartition(" in ")[0] for record in caplog.records]
    assert texts == ["traced double", "compiled double"]


def test_cuda_without_a_device_says_what_is_missing() -> None:
    made = sparse_jit(double, target="cuda")
    x = np.ones(3)
    if not cuda_obstacles(probe_driver(), cupy_version(), package_version("numba-cuda")):
        pytest.skip("nothing is missing here")
    with pytest.raises(sj.errors.DeviceError) as caught:
        made(x)
    assert str(caught.value).startswith('target="cuda" cannot run')
    assert 'use target="cpu"' in str(caught.value)
    lowered = made.lower(x)
    assert "func @double" in lowered.text("tensor")
    assert "launch k0" in lowered.text("loops")
    assert "launch k0 on k0_blocks" in lowered.text("plan")
    assert "k0" in lowered.text("source")
    assert "x: copied (regular-dma)" in made.explain(x)


def test_auto_is_the_cpu_and_says_why() -> None:
    text = sparse_jit(double).explain(np.ones(3))
    reason = "there is no device with a driver and CuPy"
    if device_at_hand():
        reason = "it is estimated at"
    assert f'runs on cpu (target="auto", and {reason}' in text


def test_library_only_refuses_generated_code() -> None:
    made = sparse_jit(double, library="only", target="interpreter")
    with pytest.raises(sj.errors.UnsupportedError, match='library="only"') as caught:
        made(np.ones(3))
    assert "the target offers no library kernels" in str(caught.value)
    assert "func @double" in made.lower(np.ones(3)).text("tensor")


@pytest.mark.parametrize(
    ("strategy", "loops"),
    [
        ("none", []),
        ("dense-outer-loop", ["i"]),
        ("any-storage-outer-loop", ["i"]),
        ("dense-any-loop", ["i", "j"]),
        ("any-storage-any-loop", ["i", "j"]),
    ],
)
def test_parallelization_chooses_loops(strategy: str, loops: list[str]) -> None:
    made = sparse_jit(lambda x: x * 2.0, parallelization=strategy, target="interpreter")
    text = made.lower(np.ones((3, 4))).text("loops")
    assert re.findall(r"parallel for (\w+)", text) == loops


def test_parallelization_tells_storage_from_extents() -> None:
    A = sp.csr_array(np.eye(3))

    def parallel(strategy: str) -> int:
        made = sparse_jit(lambda A: A * 2.0, parallelization=strategy, target="interpreter")
        return made.lower(A).text("loops").count("parallel for")

    everything = parallel("any-storage-any-loop")
    assert parallel("none") == 0
    assert parallel("dense-any-loop") <= everything
    assert parallel("dense-any-loop") == parallel("dense-outer-loop")


def test_lowerings_are_left_out_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    A = sp.random_array((40, 30), density=0.2, format="csr", rng=np.random.default_rng(1))
    Q, K = np.ones((40, 16)), np.ones((30, 16))

    def attention(A: Any, Q: Any, K: Any) -> Any:
        return sj.softmax(A * (Q @ K.T), axis=1) @ K

    monkeypatch.delenv("SPARSEJIT_WITHOUT", raising=False)
    whole = sj.sparse_jit(attention, target="cpu")
    expected = whole(A, Q, K)
    told = whole.explain()
    assert "stay in vector registers" in told
    assert "one nest over i" in told
    assert "left out" not in told
    monkeypatch.setenv("SPARSEJIT_WITHOUT", "tiles, nests")
    part = sj.sparse_jit(attention, target="cpu")
    np.testing.assert_allclose(part(A, Q, K), expected)
    told = part.explain()
    assert "stay in vector registers" not in told
    assert "one nest over i" not in told
    assert "code: left out: tiles" in told
    monkeypatch.setenv("SPARSEJIT_WITHOUT", "blas")
    assert "library call" not in sj.sparse_jit(lambda D: D @ D, target="cpu").explain(np.eye(9))
    monkeypatch.setenv("SPARSEJIT_WITHOUT", "tile")
    with pytest.raises(ValueError, match=r"SPARSEJIT_WITHOUT must name some of .* not 'tile'"):
        sj.sparse_jit(attention)
