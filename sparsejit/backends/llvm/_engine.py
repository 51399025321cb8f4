"""From a module to an address to call: LLVM's optimizer, an object cache, a loader.

Objects are kept on disk under a key of all that the text depends on, the versions, the processor
and the options; so what is found there need not even be printed. Before code is generated, every
external symbol is checked against a list: an unknown one would end the process when it is loaded.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import llvmlite
from llvmlite import binding

from sparsejit.backends import support
from sparsejit.backends.disk_cache import digest, read_entry, write_entry
from sparsejit.backends.llvm._blas import BLAS_SYMBOLS
from sparsejit.backends.llvm._blas_symbols import provide_symbols
from sparsejit.backends.llvm._functions import EXTERNAL
from sparsejit.backends.llvm._module import Emitted
from sparsejit.debug import logger
from sparsejit.errors import BackendError

__all__ = ["Loaded", "load_module"]

_KIND = "llvm"
_BUG = "this is a bug of sparsejit; please report it with the program"


class _Lock:
    """One thread at a time uses LLVM; in a forked process nobody holds the lock."""

    lock = threading.RLock()


def _forget_holder() -> None:
    _Lock.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_holder)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The address of the entry; the code lives as long as ``owners`` do."""

    address: int
    was_cached: bool
    owners: tuple[Any, ...] = field(repr=False)


@functools.cache
def _initialize() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


@functools.cache
def _host() -> tuple[str, str]:
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def _vector_bits() -> int:
    """Return the size of the vectors to use: wider ones would slow the whole processor down."""
    return 256 if "+avx," in f"{_host()[1]}," else 128


def _machine() -> Any:
    """Return a new target machine: an engine takes possession of the one it is made with."""
    _initialize()
    name, features = _host()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=name, features=features, opt=2, codemodel="jitdefault", jit=True
    )


@functools.cache
def _environment() -> tuple[str, ...]:
    version = ".".join(map(str, binding.llvm_version_info))
    return llvmlite.__version__, version, *_host(), _generator()


def _generator() -> str:
    """Return a key of the code that prints LLVM IR."""
    folders = Path(__file__).parent, Path(str(support.__file__)).parent
    texts = [path.read_text("utf-8") for folder in folders for path in sorted(folder.glob("*.py"))]
    return digest(*texts)


def _compiled(emitted: Emitted, called: Mapping[str, Any]) -> bytes:
    """Return the object of a module."""
    _check_symbols(emitted.external, called)
    try:
        module = binding.parse_assembly(emitted.text)
        module.verify()
    except RuntimeError as error:
        message = f"LLVM refuses a generated module: {' '.join(str(error).split())}"
        raise BackendError(message, hint=_BUG) from error
    machine = _machine()
    tuning = binding.PipelineTuningOptions(speed_level=2)
    tuning.loop_vectorization = True
    tuning.loop_unrolling = True
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    content: bytes = machine.emit_object(module)
    return content


def _check_symbols(external: tuple[str, ...], called: Mapping[str, Any]) -> None:
    unknown = sorted(set(external) - EXTERNAL - set(BLAS_SYMBOLS) - set(called))
    if unknown:
        raise BackendError(
            f"generated code calls {', '.join(unknown)}, which is not on the list of what it may",
            hint=_BUG,
        )


def load_module(
    emit: Callable[[int], Emitted],
    described: tuple[str, ...],
    entry: str,
    called: Mapping[str, Any],
    *,
    cache: bool,
) -> Loaded:
    """Load a module from the disk cache, or print, compile and load it.

    ``emit`` gets the size of the machine's vectors in bits; ``described`` is all else that it
    depends on beside this package; ``called`` are the C functions (objects with an ``address``)
    that it may call beside those of the C library, by symbol. Raises ``BackendError`` where LLVM
    refuses the text or it has an unknown symbol.
    """
    with _Lock.lock:
        for symbol, function in called.items():
            binding.add_symbol(symbol, function.address)
        owners = tuple(called.values())
        key = digest(*described, *_environment())
        # LLVM ends the process over what is no object: an entry says whose it is.
        mark = f"object {key}\n".encode()
        stored = read_entry(_KIND, key) if cache else None
        if stored is not None:
            if stored.startswith(mark):
                return _loaded(stored[len(mark) :], entry, owners, was_cached=True)
            logger.warning("a cached kernel cannot be used and is compiled again: %s", key)
        content = _compiled(emit(_vector_bits()), called)
        loaded = _loaded(content, entry, owners, was_cached=False)
        if cache:
            write_entry(_KIND, key, mark + content)
        return loaded


def _loaded(content: bytes, entry: str, called: tuple[Any, ...], *, was_cached: bool) -> Loaded:
    if any(symbol.encode() in content for symbol in BLAS_SYMBOLS):
        provide_symbols()
    object_file = binding.ObjectFileRef.from_data(content)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine())
    engine.add_object_file(object_file)
    engine.finalize_object()
    address = engine.get_function_address(entry)
    if not address:
        raise BackendError(f"an object has no function {entry}", hint=_BUG)
    # The engine reads the object until it goes itself; a tuple lets its last item go first.
    return Loaded(address, was_cached, (*called, object_file, engine))
