"""From a module to an address to call: LLVM's optimizer, an object cache, a loader.

Objects are kept on disk under a key of all that the text depends on, the versions, the processor
and the options; so what is found there need not even be printed, and LLVM is not imported for it.
For the same reason the key knows this package and LLVM by their files: names, sizes and times.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit._locks import COMPILING
from sparsejit.backends.disk_cache import digest, read_entry, write_entry
from sparsejit.backends.llvm._blas import BLAS_SYMBOLS
from sparsejit.backends.llvm._blas_symbols import blas_addresses
from sparsejit.backends.llvm._object_loader import load_object
from sparsejit.backends.llvm._options import Host
from sparsejit.backends.llvm._pool import POOL_NAMES, POOL_SYMBOLS, Pool
from sparsejit.backends.llvm._pool_text import POOL_EXTERNAL, pool_text
from sparsejit.debug import logger

__all__ = ["Effort", "Emitted", "Loaded", "environment", "load_module", "thread_pool"]

_KIND = "llvm"
_PROCESSOR = Path("/proc/cpuinfo")
_PROCESSOR_LINES = (
    "vendor_id",
    "model name",
    "flags",
    "CPU implementer",
    "CPU part",
    "Features",
)


class Effort(Enum):
    """What LLVM does for fast code."""

    FULL = "full"
    """All of its passes: loops become vectors and are unrolled, small functions are inlined."""
    NESTED = "nested"
    """All but unrolling: loops over few entries, in other such loops, get longer and no faster."""
    PRINTED = "printed"
    """It cleans up: loops have been printed as they are to run."""
    LEAST = "least"
    """It cleans up, and generates code in a hurry: what runs is over at once in any case."""


@dataclass(frozen=True, slots=True)
class Emitted:
    """The text of a module, and the external functions that it calls.

    ``effort`` is what to do for fast code.
    """

    text: str
    external: tuple[str, ...]
    effort: Effort = Effort.FULL


@dataclass(frozen=True, slots=True)
class Loaded:
    """The address of the entry; the code lives as long as ``owners`` do."""

    address: int
    owners: tuple[Any, ...] = field(repr=False)
    was_cached: bool = False


@functools.cache
def environment() -> tuple[str, ...]:
    """Return what objects depend on beside the loop function and the options.

    That is also what a loop function depends on beside what it is lowered from. Code reads the
    fields of Python's and NumPy's objects.
    """
    return platform.python_version(), np.__version__, _processor(), _llvm(), _generator()


def _processor() -> str:
    """Return what the system says of the processor: name and features."""
    try:
        with _PROCESSOR.open(encoding="utf-8", errors="replace") as file:
            first = file.read(16384).split("\n\n", 1)[0]
    except OSError:
        first = ""
    wanted = [line for line in first.splitlines() if line.startswith(_PROCESSOR_LINES)]
    if wanted:
        return "\n".join(wanted)
    from sparsejit.backends.llvm._compiler import host

    return "\n".join(host())


def _llvm() -> str:
    """Return which llvmlite is installed."""
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("the CPU target needs llvmlite: pip install llvmlite")
    folder = Path(next(iter(spec.submodule_search_locations)))
    return _stamps(folder / "binding", (".py", ".so", ".dylib", ".dll"))


def _generator() -> str:
    """Return a key of the code that lowers and prints functions: this package."""
    return _stamps(Path(__file__).parents[2], (".py",))


def _stamps(folder: Path, endings: tuple[str, ...]) -> str:
    """Return name, size and times of the files in a folder and in those inside of it.

    The time of its entry changes with any file.
    """
    found: list[str] = []
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in sorted(entries, key=attrgetter("name")):
                if entry.name == "__pycache__":
                    continue
                if entry.is_dir():
                    waiting.append(entry.path)
                elif entry.name.endswith(endings):
                    known = entry.stat()
                    times = known.st_mtime_ns, known.st_ctime_ns
                    found.append(f"{entry.name} {known.st_size} {times} {known.st_ino}")
    return "\n".join(found)


def load_module(
    emit: Callable[[Host], Emitted],
    described: tuple[str, ...],
    entry: str,
    called: Mapping[str, Any],
    *,
    cache: bool,
) -> Loaded:
    """Load a module from the disk cache, or print, compile and load it.

    ``emit`` gets what the processor is good at; ``described`` is all else that it
    depends on beside this package; ``called`` are the C functions (objects with an ``address``)
    that it may call beside those of the C library, by symbol. Raises ``BackendError`` where LLVM
    refuses the text or it has an unknown symbol.
    """
    with COMPILING:
        known = frozenset(called).union(POOL_SYMBOLS)
        content, was_cached = _object(emit, described, known, cache=cache)
        return _loaded(content, entry, called, was_cached=was_cached)


def _object(
    emit: Callable[[Host], Emitted],
    described: tuple[str, ...],
    known: frozenset[str],
    *,
    cache: bool,
) -> tuple[bytes, bool]:
    """Return the object of a module, and whether it was found on disk."""
    key = digest(*described, *environment())
    # LLVM ends the process over what is no object: an entry says whose it is.
    mark = f"object {key}\n".encode()
    stored = read_entry(_KIND, key) if cache else None
    if stored is not None:
        if stored.startswith(mark):
            return stored[len(mark) :], True
        logger.warning("a cached kernel cannot be used and is compiled again: %s", key)
    from sparsejit.backends.llvm._compiler import compiled, host_facts

    content = compiled(emit(host_facts()), known)
    if cache:
        write_entry(_KIND, key, mark + content)
    return content, False


def _loaded(content: bytes, entry: str, called: Mapping[str, Any], *, was_cached: bool) -> Loaded:
    symbols = {symbol: function.address for symbol, function in called.items()}
    owners = tuple(called.values())
    if any(symbol.encode() in content for symbol in BLAS_SYMBOLS):
        symbols |= blas_addresses()
    if any(symbol.encode() in content for symbol in POOL_SYMBOLS):
        symbols |= thread_pool().symbols
    found = load_object(content, symbols)
    if found is not None and entry in found.symbols:
        return Loaded(found.symbols[entry], (*owners, found), was_cached)
    from sparsejit.backends.llvm._compiler import engine_of

    address, engine = engine_of(content, entry, symbols)
    return Loaded(address, (*owners, *engine), was_cached)


class _Pools:
    """The pool of this process, once it is loaded."""

    pool: Pool | None = None


def thread_pool() -> Pool:
    """Return the pool of threads of this process, loaded when first asked for."""
    with COMPILING:
        if _Pools.pool is None:
            _Pools.pool = _loaded_pool()
        return _Pools.pool


def _loaded_pool() -> Pool:
    text = pool_text(platform.machine())
    emitted = Emitted(text, POOL_EXTERNAL, Effort.LEAST)
    known = frozenset(POOL_EXTERNAL)
    content, _ = _object(lambda _: emitted, ("pool", text), known, cache=True)
    owner: Any = load_object(content, {})
    if owner is not None and set(POOL_NAMES) <= set(owner.symbols):
        addresses = {name: owner.symbols[name] for name in POOL_NAMES}
    else:
        from sparsejit.backends.llvm._compiler import engine_of

        _, owner = engine_of(content, "run", {})
        addresses = {name: owner[-1].get_global_value_address(name) for name in POOL_NAMES}
    # Workers sleep in this code until the process ends, also while modules are torn down.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    return Pool(addresses, (owner,))
