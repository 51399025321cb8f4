"""LLVM itself: from the text of a module to an object, and the engine that loads it.

Nothing else imports llvmlite, which takes longer than loading a kernel from disk. Before code is
generated, every external symbol is checked against a list: an unknown one would end the process
when it is loaded.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import llvmlite
from llvmlite import binding
from llvmlite.binding import ffi
from llvmlite.binding.newpassmanagers import NewPassManager

from sparsejit.backends.llvm._blas import BLAS_SYMBOLS
from sparsejit.backends.llvm._engine import Effort, Emitted
from sparsejit.backends.llvm._functions import EXTERNAL
from sparsejit.backends.llvm._options import Host
from sparsejit.errors import BackendError

__all__ = ["compiled", "engine_of", "host", "host_facts", "versions"]

BUG = "this is a bug of sparsejit; please report it with the program"


@functools.cache
def _initialize() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


@functools.cache
def host() -> tuple[str, str]:
    """Return name and features of the processor."""
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def host_facts() -> Host:
    """Return what code is to know of the processor.

    Vectors of 512 bits slowed the whole of the first processors down that had them, which lack
    ``avx512vbmi2``. AMD's gathers, and those of 256 bits, are slower than loads one by one; its
    prefetches into the second cache bring rows a quarter faster than those into the first. Intel's
    processors bring the rest of a row themselves, a tenth faster than when they are told.
    """
    name, features = host()
    is_amd = name.startswith("znver")
    locality, row_bytes = (2, 512) if is_amd else (3, 256)
    has = {feature[1:] for feature in features.split(",") if feature.startswith("+")}
    is_wide = {"avx512f", "avx512vl", "avx512vbmi2"} <= has
    bits = 512 if is_wide else 256 if "avx" in has else 128
    return Host(bits, is_wide and not is_amd, locality, row_bytes)


def _machine(level: int = 2) -> Any:
    """Return a new target machine: an engine takes possession of the one it is made with.

    ``level`` is what the code generator does for fast code; 0 takes a fifth of the time of 2.
    """
    _initialize()
    name, features = host()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=name, features=features, opt=level, codemodel="jitdefault", jit=True
    )


def versions() -> tuple[str, ...]:
    """Return the versions of llvmlite and LLVM."""
    return llvmlite.__version__, ".".join(map(str, binding.llvm_version_info))


def compiled(emitted: Emitted, called: frozenset[str] = frozenset()) -> bytes:
    """Return the object of a module."""
    _check_symbols(emitted.external, called)
    # Types, constants and metadata live as long as their context: the global one never ends. This
    # one ends with its last module, wherever an interrupt comes; a module that is freed behind its
    # context ends the process.
    with _parsed(emitted.text, binding.create_context()) as module:
        machine = _machine(0 if emitted.effort is Effort.LEAST else 2)
        tuning = binding.PipelineTuningOptions(speed_level=2)
        tuning.loop_vectorization = True
        tuning.loop_unrolling = emitted.effort is Effort.FULL
        builder = binding.create_pass_builder(machine, tuning)
        with _passes(builder, emitted) as passes:
            passes.run(module, builder)
        content: bytes = machine.emit_object(module)
    return content


@contextmanager
def _passes(builder: Any, emitted: Emitted) -> Iterator[Any]:
    """Return the passes for a module; their memory is freed behind the block.

    llvmlite's wrapper has a method for that, which one of its bases hides.
    """
    if emitted.effort in (Effort.PRINTED, Effort.LEAST):
        passes = binding.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
    else:
        passes = builder.getModulePassManager()
    try:
        yield passes
    finally:
        if type(passes)._dispose is ffi.ObjectRef._dispose:
            NewPassManager._dispose(passes)
            passes.detach()
        passes.close()


def _parsed(text: str, context: Any) -> Any:
    """Return the verified module of a text."""
    try:
        module = binding.parse_assembly(text, context)
        module.verify()
    except RuntimeError as error:
        message = f"LLVM refuses a generated module: {' '.join(str(error).split())}"
        raise BackendError(message, hint=BUG) from error
    return module


def _check_symbols(external: tuple[str, ...], called: frozenset[str]) -> None:
    unknown = sorted(set(external) - EXTERNAL - set(BLAS_SYMBOLS) - called)
    if unknown:
        raise BackendError(
            f"generated code calls {', '.join(unknown)}, which is not on the list of what it may",
            hint=BUG,
        )


def engine_of(
    content: bytes, entry: str, symbols: Mapping[str, int]
) -> tuple[int, tuple[Any, Any]]:
    """Return the address of ``entry`` in an object, and what keeps its code in memory.

    ``symbols`` are addresses that it may refer to beside the C library's.
    """
    for symbol, address_outside in symbols.items():
        binding.add_symbol(symbol, address_outside)
    object_file = binding.ObjectFileRef.from_data(content)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine())
    engine.add_object_file(object_file)
    engine.finalize_object()
    address: int = engine.get_function_address(entry)
    if not address:
        raise BackendError(f"an object has no function {entry}", hint=BUG)
    # The engine reads the object until it goes itself; a tuple lets its last item go first.
    return address, (object_file, engine)
