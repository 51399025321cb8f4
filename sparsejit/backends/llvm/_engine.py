"""From the text of a module to an address to call: LLVM's optimizer, a JIT, and an object cache.

Objects are kept on disk under a key of the text, the versions, the processor and the options.
Before code is loaded, every external symbol is checked against a list: an unknown one would end the
process.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from llvmlite import binding

from sparsejit.backends.disk_cache import digest, read_entry, write_entry
from sparsejit.backends.llvm._functions import EXTERNAL
from sparsejit.errors import BackendError

__all__ = ["Loaded", "load_module"]

_LOCK = threading.RLock()
_KIND = "llvm"


@dataclass(frozen=True)
class Loaded:
    """The address of ``entry``; the engine lives as long as this object does."""

    address: int
    was_cached: bool
    engine: Any = field(repr=False)


@functools.cache
def _initialize() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


def _machine() -> Any:
    """Return a new target machine: an engine takes possession of the one it is made with."""
    _initialize()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=_features(),
        opt=3,
        codemodel="jitdefault",
        jit=True,
    )


@functools.cache
def _features() -> str:
    return binding.get_host_cpu_features().flatten()


@functools.cache
def _environment() -> tuple[str, ...]:
    version = ".".join(map(str, binding.llvm_version_info))
    return metadata.version("llvmlite"), version, binding.get_host_cpu_name(), _features()


def _optimized(text: str) -> Any:
    try:
        module = binding.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise BackendError(
            f"LLVM refuses a generated module: {str(error).splitlines()[0]}",
            hint="this is a bug of sparsejit; please report it with the program",
        ) from error
    tuning = binding.PipelineTuningOptions(speed_level=3)
    tuning.loop_vectorization = True
    builder = binding.create_pass_builder(_machine(), tuning)
    builder.getModulePassManager().run(module, builder)
    _check_symbols(module)
    return module


def _check_symbols(module: Any) -> None:
    unknown = sorted(
        function.name
        for function in module.functions
        if function.is_declaration
        and not function.name.startswith("llvm.")
        and function.name not in EXTERNAL
    )
    if unknown:
        raise BackendError(
            f"generated code calls {', '.join(unknown)}, which is not on the list of what it may",
            hint="this is a bug of sparsejit; please report it with the program",
        )


def load_module(text: str, *, cache: bool) -> Loaded:
    """Compile ``text`` (or take its object from the disk cache) and load it.

    Raises ``BackendError`` where LLVM refuses the text or it has an unknown symbol.
    """
    with _LOCK:
        key = digest(text, *_environment())
        stored = read_entry(_KIND, key) if cache else None
        module = binding.parse_assembly(text) if stored is not None else _optimized(text)
        engine = binding.create_mcjit_compiler(module, _machine())

        def keep(_: Any, content: bytes) -> None:
            if cache and stored is None:
                write_entry(_KIND, key, content)

        engine.set_object_cache(keep, lambda _: stored)
        engine.finalize_object()
        return Loaded(engine.get_function_address("entry"), stored is not None, engine)
