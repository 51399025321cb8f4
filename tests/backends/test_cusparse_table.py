"""The table of cuSPARSE's functions beside the headers, and descriptors made by the library itself.

Both come with the packages of the extras cuda12 and cuda13; without them the tests are skipped, or
fail if they were expected (``--require-cubin``). No driver is needed: the library checks the
arguments of descriptors by itself.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsejit.backends.cusparse import library_codes
from sparsejit.backends.cusparse._abi import CUSPARSE, CUSPARSELT, call
from sparsejit.errors import BackendError
from sparsejit.ir.device_code import LibraryCode, LibraryRefusal
from tests.backends.test_library_calls import call_arguments, lowered_call

Packaged = Callable[[str], Path]


@pytest.fixture(scope="module")
def packaged(request: pytest.FixtureRequest) -> Packaged:
    """Finds a file of NVIDIA's packages; skips where they are not installed."""

    def find(pattern: str) -> Path:
        spec = importlib.util.find_spec("nvidia")
        for root in spec.submodule_search_locations or () if spec is not None else ():
            found = sorted(Path(root).glob(f"**/{pattern}"))
            if found:
                return found[0]
        missing = f"{pattern} is in none of the installed packages: install the extra cuda13"
        if request.config.getoption("--require-cubin"):
            pytest.fail(missing)
        pytest.skip(missing)

    return find


def declared(header: Path) -> dict[str, list[str]]:
    """Return the types of the arguments of each function that a header declares."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    found = {}
    for name, arguments in re.findall(r"\b(cusparse\w+)\(([^;{}]*)\)\s*;", text):
        parts = [part.strip() for part in arguments.split(",")]
        found[name] = [re.sub(r"\w+$", "", part).strip() for part in parts]
    return found


def is_like(kind: Any, declared_as: str) -> bool:
    """Whether a ctypes type passes what a C type is."""
    if "*" in declared_as or re.search(r"(Handle|Descr|Stream|_stream)_t\b|Stream_t", declared_as):
        return ctypes.sizeof(kind) == ctypes.sizeof(ctypes.c_void_p)
    sizes = {"int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32}
    known = {**sizes, "float": ctypes.c_float, "size_t": ctypes.c_size_t, "int": ctypes.c_int}
    return kind is known.get(declared_as.removeprefix("const ").strip(), ctypes.c_int)


@pytest.mark.parametrize(
    ("header", "table"), [("cusparse.h", CUSPARSE), ("cusparseLt.h", CUSPARSELT)]
)
def test_the_table_is_the_header(
    packaged: Packaged, header: str, table: dict[str, tuple[Any, ...]]
) -> None:
    functions = declared(packaged(header))
    for name, kinds in table.items():
        assert len(kinds) == len(functions[name]), name
        for kind, declared_as in zip(kinds, functions[name], strict=True):
            assert is_like(kind, declared_as), (name, kind, declared_as)


class LibraryAlone:
    """The library without a device: descriptors can be made and ended, nothing else."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.stream = 0

    def library(self, name: str) -> Any:
        assert name == "cusparse"
        return self._library

    def handle(self, name: str) -> int:
        raise AssertionError("there is no device to make a handle for")

    def allocate(self, nbytes: int) -> int:
        raise AssertionError("there is no device memory")

    def copy(self, target: int, source: int, nbytes: int) -> None:
        raise AssertionError("there is no device memory")

    def read(self, pointer: int, nbytes: int) -> bytes:
        raise AssertionError("there is no device memory")

    def write(self, pointer: int, data: bytes) -> None:
        raise AssertionError("there is no device memory")


@pytest.fixture(scope="module")
def alone(packaged: Packaged) -> LibraryAlone:
    path = packaged("libcusparse.so.12")
    ctypes.CDLL(str(packaged("libnvJitLink.so.*")), mode=ctypes.RTLD_GLOBAL)
    return LibraryAlone(ctypes.CDLL(str(path)))


@pytest.mark.parametrize(
    "name",
    [
        *("spmv csr", "spmv csc", "spmv coo", "spmv bsr", "spmv of 64-bit indices"),
        *("spmv float16", "spmv complex64", "spmm csr", "spmm from the right", "spmm into columns"),
        *("sddmm csr", "sddmm csc", "sddmm of rows", "spgemm csr", "spgemm csc", "subtract csc"),
        *("batch csr", "batch csc", "batch coo", "batch csr with one factor", "batch of vectors"),
        *("batch with one vector", "batch of dense matrices", "batch of dense matrices coo"),
    ],
)
def test_the_library_takes_the_descriptors(alone: LibraryAlone, name: str) -> None:
    library_call, known, arrays = lowered_call(name)
    code = library_codes()(library_call)
    assert isinstance(code, LibraryCode)
    arguments = call_arguments(library_call, known, arrays)
    state = code.describe(alone, arguments)
    assert not isinstance(state, LibraryRefusal)
    assert len(state.ends) == len(state.descriptors) + len(state.made)
    code.destroy(alone, state)
    assert state.ends == []


def test_the_library_refuses_what_the_rules_refuse(alone: LibraryAlone) -> None:
    """Rules marked [lib]: more entries than elements, short rows, misaligned arrays."""
    library = alone.library("cusparse")
    made = ctypes.c_void_p()
    data = np.zeros(64)
    start = data.ctypes.data
    for size, pointer in (((2, 3, 7), start), ((-1, 3, 1), start), ((2, 3, 2), start + 4)):
        with pytest.raises(BackendError, match="invalid value"):
            call(library, "cusparseCreateCsr", made, *size, start, start, pointer, *(2, 2, 0, 1))
    with pytest.raises(BackendError, match="invalid value"):
        call(library, "cusparseCreateDnMat", made, 4, 6, 5, start, 1, 2)


def test_the_library_refuses_batches_that_the_rules_refuse(alone: LibraryAlone) -> None:
    library = alone.library("cusparse")
    made = ctypes.c_void_p()
    start = np.zeros(64).ctypes.data
    call(library, "cusparseCreateDnMat", made, 4, 6, 6, start, 1, 2)
    call(library, "cusparseDnMatSetStridedBatch", made, 2, 24)
    call(library, "cusparseDnMatSetStridedBatch", made, 2, 0)
    for count, stride in ((0, 24), (2, 23)):
        with pytest.raises(BackendError, match="invalid value"):
            call(library, "cusparseDnMatSetStridedBatch", made, count, stride)
    call(library, "cusparseDestroyDnMat", made)
