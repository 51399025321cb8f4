"""Backend ``numba``: the generated Python, compiled by Numba for the CPU.

In: a ``LoopFunc``. Out: a kernel on NumPy arrays, compiled when first called with arrays of new
strides, without the GIL while it runs. Numba is imported when the first kernel is loaded.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from sparsejit._dataclasses import dataclass
from sparsejit._locks import COMPILING
from sparsejit.backends import support
from sparsejit.backends._arguments import Signature, signature_of
from sparsejit.backends._unsigned_indices import with_unsigned_indices
from sparsejit.backends.base import Kernel, KernelSource
from sparsejit.backends.disk_cache import digest
from sparsejit.backends.interpreter import register_source
from sparsejit.backends.python_source import emit_python
from sparsejit.errors import BackendError
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loops import For, LoopFunc, Memref, Store
from sparsejit.ir.ops import BinaryOp
from sparsejit.user_code import UserCodeError, checked_function, failure, symbol_of

__all__ = ["CacheCounts", "NumbaBackend", "NumbaKernel", "jitted_support", "support_key"]

_OWNDATA = 0x4
"""The only bit of ``ndarray.flags`` that is no part of Numba's type of an array."""


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """How many signatures of a kernel came from the disk cache, and how many were compiled."""

    hits: int
    misses: int


class NumbaKernel:
    """A kernel; each combination of array layouts is compiled once."""

    __slots__ = ("_arrays", "_dispatcher", "_ready", "_signature", "_source")

    def __init__(self, dispatcher: Any, signature: Signature, source: KernelSource) -> None:
        self._dispatcher = dispatcher
        self._signature = signature
        self._source = source
        params = enumerate(source.func.params)
        self._arrays = [place for place, param in params if isinstance(param, Memref)]
        self._ready: set[tuple[int, ...]] = set()

    def __call__(self, arguments: Sequence[object]) -> tuple[object, ...]:
        converted = self._signature.numpy_arguments(arguments)
        layouts = tuple([converted[place].flags.num & ~_OWNDATA for place in self._arrays])
        if layouts not in self._ready:
            self._compile(converted)
            self._ready.add(layouts)
        try:
            results = self._dispatcher(*converted)
        except UserCodeError as error:
            raise self._failure(str(error)) from None
        return self._signature.results(results)

    def _failure(self, symbol: str) -> BackendError:
        """Return what is raised where the user function of a symbol raised an exception."""
        functions = self._source.functions.values()
        return failure(next(found for found in functions if symbol_of(found) == symbol))

    @property
    def cache_counts(self) -> CacheCounts:
        """Where the compiled code of this kernel came from so far."""
        stats = self._dispatcher.stats
        return CacheCounts(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))

    def _compile(self, arguments: Sequence[object]) -> None:
        from numba import typeof

        try:
            with COMPILING:
                self._dispatcher.compile(tuple(map(typeof, arguments)))
        except Exception as error:  # Numba raises its own errors and Python's: it refused the text
            raise BackendError(
                f"Numba cannot compile '{self._source.entry}': {_first_lines(error)}",
                hint=f"this is a bug of sparsejit; please report it with the source:\n"
                f"{self._source.text}",
            ) from error


def _first_lines(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}".strip()
    return "\n".join(line for line in text.splitlines()[:6] if line.strip())


@dataclass(frozen=True, slots=True)
class NumbaBackend:
    """Compiles generated source with Numba.

    ``reassociate`` allows sums and products over loops in another order (vectorized); nan and inf
    keep their meaning in any case.

    >>> NumbaBackend().name
    'numba'
    """

    reassociate: bool = True

    @property
    def name(self) -> str:
        """``"numba"``."""
        return "numba"

    def emit(self, func: LoopFunc) -> KernelSource:
        """Return the Python text of ``func``."""
        return emit_python(func)

    def load(self, source: KernelSource, *, cache: bool = True) -> Kernel:
        """Return the kernel of ``source``; Numba compiles it when it is first called.

        The first call raises ``BackendError`` where Numba refuses the text.
        """
        return self.load_kernel(source, cache=cache)

    def load_kernel(self, source: KernelSource, *, cache: bool = True) -> NumbaKernel:
        """Return what ``load`` does, with the counts of its cache."""
        fastmath = {"reassoc"} if self.reassociate and _has_reductions(source.func) else set()
        called = (f"{name} {symbol_of(function)}" for name, function in source.functions.items())
        key = digest(source.text, support_key(), *sorted(fastmath), *called)
        namespace: dict[str, Any] = {"__name__": __name__}
        tree = with_unsigned_indices(source.text)
        exec(compile(tree, register_source(source), "exec"), namespace)
        jitted = jitted_support(cache)
        namespace.update({name: jitted[name] for name in namespace.keys() & jitted.keys()})
        functions = source.functions.items()
        namespace.update({name: checked_function(function) for name, function in functions})
        dispatcher = _jit(namespace[source.entry], key, cache, fastmath)
        return NumbaKernel(dispatcher, signature_of(source.func), source)


def _has_reductions(func: LoopFunc) -> bool:
    """Whether some loop adds up or multiplies; the rest of a formula is never reassociated."""
    sums = (BinaryOp.ADD, BinaryOp.MUL)
    for stmt in all_statements(func.body):
        match stmt:
            case Store(reduce=op) if op in sums:
                return True
            case For(reductions=reductions) if any(op in sums for _, op in reductions):
                return True
            case _:
                pass
    return False


def _jit(function: Callable[..., Any], key: str, cache: bool, fastmath: set[str]) -> Any:
    """A Numba dispatcher; symbols carry the key, so that code of two kernels is never mixed up."""
    import numba

    function.__qualname__ = f"{function.__name__}_{key[:16]}"
    function.__module__ = __name__  # a cached function looks for its module
    dispatcher = numba.njit(
        error_model="numpy", nogil=True, boundscheck=False, fastmath=fastmath or False
    )(function)
    if cache:
        from sparsejit.backends._numba_cache import use_disk_cache

        use_disk_cache(dispatcher, key)
    return dispatcher


@functools.cache
def jitted_support(cache: bool) -> dict[str, Any]:
    """Return the support functions as Numba dispatchers, which call one another."""
    public: dict[str, Any] = {}
    namespaces: list[dict[str, Any]] = []
    for module in _support_modules():
        # A second copy of each function, since its globals will be the compiled functions.
        file = str(module.__file__)
        namespace: dict[str, Any] = {"__name__": module.__name__}
        tree = with_unsigned_indices(Path(file).read_text("utf-8"))
        exec(compile(tree, file, "exec"), namespace)
        for name, value in list(namespace.items()):
            if isinstance(value, FunctionType) and value.__module__ == module.__name__:
                key = digest(support_key(), module.__name__, name)
                namespace[name] = _jit(value, key, cache, set())
        public |= {name: namespace[name] for name in module.__all__}
        namespaces.append(namespace)
    for namespace in namespaces:
        namespace.update({name: public[name] for name in namespace.keys() & public.keys()})
    return public


def _support_modules() -> list[ModuleType]:
    names = sorted({getattr(support, name).__module__ for name in support.__all__})
    return [import_module(name) for name in names]


@functools.cache
def support_key() -> str:
    """Return a key of the support library and of the versions that compile it."""
    texts = [Path(str(module.__file__)).read_text("utf-8") for module in _support_modules()]
    versions = [f"{name} {metadata.version(name)}" for name in ("numba", "llvmlite", "numpy")]
    return digest(platform.python_version(), *versions, *texts)
