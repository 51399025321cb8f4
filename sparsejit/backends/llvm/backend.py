"""Backend ``llvm``: loop functions compiled by LLVM, in tens of milliseconds.

In: a ``LoopFunc``. Out: a kernel on NumPy arrays, specialized for what is known of their strides,
without the GIL while it runs. LLVM is imported when the first kernel is compiled.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sparsejit._dataclasses import dataclass
from sparsejit._locks import COMPILING, OpenLock
from sparsejit.backends.base import Kernel, KernelSource
from sparsejit.backends.disk_cache import digest
from sparsejit.backends.llvm._arrays import Layout
from sparsejit.backends.llvm._caches import machine_caches
from sparsejit.backends.llvm._calls import Arguments, Results, failure
from sparsejit.backends.llvm._code_facts import code_facts
from sparsejit.backends.llvm._direct import Direct, direct_call
from sparsejit.backends.llvm._expand import Expanded, expand
from sparsejit.backends.llvm._interface import Interface, read_interface, write_interface
from sparsejit.backends.llvm._lowerings import lower
from sparsejit.backends.llvm._module import emit_module
from sparsejit.backends.llvm._options import Caches, CodeOptions, Host
from sparsejit.backends.llvm._pool import has_threads
from sparsejit.backends.llvm._user_calls import FIRST_STATUS
from sparsejit.errors import BackendError
from sparsejit.ir.facts import Fact
from sparsejit.ir.loops import LoopFunc, Memref, Result
from sparsejit.ir.scalar import UserFunction
from sparsejit.ir.user_functions import called_by_loops
from sparsejit.user_code import c_function, symbol_of
from sparsejit.user_code import failure as user_failure

__all__ = ["CacheCounts", "LlvmBackend", "LlvmKernel"]

_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_ENTRY = "entry"

Entry = Callable[[Any], int]


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """How many variants of a kernel came from the disk cache, and how many were compiled."""

    hits: int
    misses: int


@dataclass(frozen=True, slots=True)
class LlvmBackend:
    """Compiles loop functions with LLVM.

    ``reassociate`` allows sums and products over loops in another order, and contraction; nan and
    inf keep their meaning in any case. ``without`` names lowerings to leave out, of ``LOWERINGS``.
    ``host`` is the processor to compile for, by default that of this machine, ``caches`` are what
    it has.

    >>> LlvmBackend().name
    'llvm'
    """

    reassociate: bool = True
    without: frozenset[str] = frozenset()
    host: Host | None = None
    caches: Caches | None = None

    @property
    def name(self) -> str:
        """``"llvm"``."""
        return "llvm"

    def emit(self, func: LoopFunc) -> KernelSource:
        """Return ``func`` with the text to be read: Python, which means what the LLVM IR means."""

        def text() -> str:
            from sparsejit.backends.python_source import emit_python

            return emit_python(func).text

        return KernelSource(func.name, text, func)

    def llvm_ir(self, func: LoopFunc) -> str:
        """Return the LLVM IR of ``func`` for contiguous arrays, as it is before optimization."""
        count = sum(isinstance(param, Memref) for param in func.params)
        layouts = (Layout.CONTIGUOUS,) * count
        expanded = expand(lower(func, self._options))
        return emit_module(expanded, layouts, _ENTRY, self._options).text

    def facts(self, func: LoopFunc) -> tuple[Fact, ...]:
        """Return what was done to the code, and which loops run on several threads."""
        return code_facts(func, self._options)

    @property
    def _options(self) -> CodeOptions:
        without = self.without if has_threads() else self.without | {"threads"}
        return CodeOptions(self.reassociate, self.host or Host(), without, self.caches or Caches())

    @property
    def _options_here(self) -> CodeOptions:
        return replace(self._options, caches=self.caches or machine_caches())

    def load(self, source: KernelSource, *, cache: bool = True) -> Kernel:
        """Return the kernel of ``source``; it is compiled when arrays of new strides first come.

        Raises ``UnsupportedError`` for an operation that LLVM code is not generated for.
        """
        return self.load_kernel(source, cache=cache)

    def load_kernel(self, source: KernelSource, *, cache: bool = True) -> LlvmKernel:
        """Return what ``load`` does, with the counts of its cache."""
        lowered = _Lowered.of(source.func, self._options_here, self.host)
        return LlvmKernel(lowered.interface, lambda: lowered, self, lowered.functions, cache=cache)

    def recall(self, key: str, func: Callable[[], LoopFunc]) -> LlvmKernel | None:
        """Return the kernel that another process remembered under ``key``; see ``Recalling``."""
        interface = read_interface(self._key(key))
        if interface is None:
            return None
        options, host = self._options_here, self.host
        return LlvmKernel(interface, lambda: _Lowered.of(func(), options, host), self, cache=True)

    def remember(self, key: str, kernel: Kernel) -> None:
        """Let other processes find a kernel of this backend under ``key``; see ``Recalling``."""
        if isinstance(kernel, LlvmKernel) and not kernel.functions:
            write_interface(self._key(key), kernel.interface)

    def _key(self, key: str) -> str:
        from sparsejit.backends.llvm._engine import environment

        return digest(key, repr((self._options_here.key, self.host)), *environment())


@dataclass(frozen=True, slots=True)
class _Lowered:
    """A function as it is printed, the functions of the user that it calls, and its interface."""

    expanded: Expanded
    functions: tuple[UserFunction, ...]
    interface: Interface

    @staticmethod
    def of(func: LoopFunc, options: CodeOptions, host: Host | None) -> _Lowered:
        """Lower a function for LLVM."""
        expanded = expand(lower(func, options))
        functions = called_by_loops(expanded.func.body)
        described = digest(repr((func.params, func.body, func.results, options.key, host)))
        has_status = expanded.status is not None or bool(functions)
        interface = Interface.of(expanded.func, described, has_status=has_status)
        return _Lowered(expanded, functions, interface)


class LlvmKernel:
    """A kernel; each combination of what is known of the arrays' strides is compiled once."""

    __slots__ = (
        "_arguments",
        "_by_layout",
        "_cache",
        "_entries",
        "_host",
        "_lock",
        "_lowered",
        "_options",
        "_pack",
        "_results",
        "_room",
        "_size",
        "_unpack",
        "functions",
        "interface",
    )

    def __init__(
        self,
        interface: Interface,
        lowered: Callable[[], _Lowered],
        backend: LlvmBackend,
        functions: tuple[UserFunction, ...] = (),
        *,
        cache: bool,
    ) -> None:
        self.interface = interface
        self.functions = functions
        self._lowered = lowered
        self._arguments = Arguments(interface.params)
        self._results = Results(interface)
        self._options, self._host = backend._options_here, backend.host
        self._cache = cache
        packed = struct.Struct(f"={self._arguments.format}{self._results.format}")
        self._pack = packed.pack_into
        self._unpack = struct.Struct(f"={self._results.room}q").unpack_from
        self._room = packed.size
        self._size = packed.size + 8 * self._results.room
        self._lock = OpenLock()
        self._by_layout: dict[tuple[Layout, ...], tuple[Entry, Any]] = {}
        self._entries: dict[tuple[int, ...], Entry] = {}

    def __call__(self, arguments: Sequence[object]) -> tuple[object, ...]:
        words, flags = self._arguments.words(arguments)
        entry = self._entries.get(flags)
        if entry is None or not all(flag & 1 for flag in flags):
            entry = self._entry(flags, self._arguments.layouts(arguments))
        made = self._results.make(arguments)
        block = ctypes.create_string_buffer(self._size)
        try:
            self._pack(block, 0, *words, *map(id, made))
        except struct.error as error:
            raise OverflowError(f"an argument is no integer of 64 bits: {error}") from error
        status = entry(block)
        if status:
            raise self._failure(status)
        return self._results.wrapped(self._unpack(block, self._room), arguments, made)

    def _entry(self, flags: tuple[int, ...], layouts: tuple[Layout, ...]) -> Entry:
        found = self._by_layout.get(layouts)
        if found is None:
            with self._lock:
                found = self._by_layout.get(layouts)
                if found is None:
                    found = self._load(layouts)
                    self._by_layout[layouts] = found
        self._entries[flags] = found[0]
        return found[0]

    def _load(self, layouts: tuple[Layout, ...]) -> tuple[Entry, Any]:
        from sparsejit.backends.llvm._engine import Emitted, load_module

        def emit(host: Host) -> Emitted:
            options = replace(self._options, host=self._host or host)
            return emit_module(self._expanded(), layouts, _ENTRY, options)

        described = (self.interface.described, "".join(layout.value for layout in layouts))
        # The code that is called lives as long as the code that calls it.
        with COMPILING:
            called = {symbol_of(function): c_function(function) for function in self.functions}
        loaded = load_module(emit, described, _ENTRY, called, cache=self._cache)
        return _SIGNATURE(loaded.address), loaded

    @property
    def results(self) -> tuple[Result, ...]:
        """The results of the function."""
        return self.interface.results

    def _expanded(self) -> Expanded:
        """Return the function to be printed, which is called as the interface says."""
        lowered = self._lowered()
        if replace(lowered.interface, described="") != replace(self.interface, described=""):
            raise BackendError(
                "a kernel in the disk cache is called in another way than this process makes it",
                hint="this is a bug of sparsejit; please report it with the program",
            )
        return lowered.expanded

    def direct(self, arguments: Sequence[object], num_extents: int) -> Direct | None:
        """Return the kernel for arguments like these; see ``DirectKernel``."""
        _, flags = self._arguments.words(arguments)
        layouts = self._arguments.layouts(arguments)
        self._entry(flags, layouts)
        _, loaded = self._by_layout[layouts]
        entry = loaded.address, loaded
        params, results = self.interface.params, self._results
        explain, cache = self._failure, self._cache
        return direct_call(params, results, entry, arguments, num_extents, explain, cache=cache)

    def _failure(self, status: int) -> Exception:
        """Return what a kernel raises for a status."""
        if status >= FIRST_STATUS:
            return user_failure(self.functions[status - FIRST_STATUS])
        return failure(status)

    @property
    def cache_counts(self) -> CacheCounts:
        """Where the compiled code of this kernel came from so far."""
        cached = [loaded.was_cached for _, loaded in self._by_layout.values()]
        return CacheCounts(sum(cached), len(cached) - sum(cached))
