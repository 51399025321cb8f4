"""From a kernel's text to a cubin: Numba compiles to PTX, nvJitLink links. No device is needed.

The support functions are inlined: a function of its own would ask the driver for the device. The
mangled entry in the PTX is replaced by the kernel's name. PTX is never handed to a driver, which
may be older than the compiler. A cubin is kept on disk under its text, its types and the versions
of all tools.
"""

from __future__ import annotations

import functools
import math
import re
from importlib import import_module, metadata
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from sparsejit._locks import COMPILING
from sparsejit.backends import support
from sparsejit.backends.disk_cache import digest, read_entry, write_entry
from sparsejit.backends.numba_cuda import device
from sparsejit.backends.numba_cuda._intrinsics import intrinsics
from sparsejit.errors import BackendError
from sparsejit.ir.loops import Memref, Var
from sparsejit.ir.types import DType

__all__ = ["Usage", "compiled_cubin", "ptx_of", "usage_of"]

_KIND = "cubin"
_TOOLS = ("numba-cuda", "numba", "llvmlite", "numpy", "cuda-core")
_WHEELS = ("nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink-cu12")


def compiled_cubin(text: str, entry: str, words: tuple[Memref | Var, ...], arch: str) -> bytes:
    """Return the cubin of a kernel for ``arch``, such as ``"sm_90"``.

    ``words`` are its parameters: memrefs are pointers, variables are numbers. Raises
    ``BackendError`` where Numba CUDA is not installed or refuses the text.
    """
    key = digest(text, repr(words), arch, tools_key())
    cubin = read_entry(_KIND, key)
    if cubin is None:
        cubin, _ = _linked(ptx_of(text, entry, words, arch), entry, arch)
        write_entry(_KIND, key, cubin)
    return cubin


@functools.cache
def tools_key() -> str:
    """Return a key of everything beside the text that a cubin depends on."""
    modules = [device, *_support_modules()]
    texts = [Path(str(module.__file__)).read_text("utf-8") for module in modules]
    versions = [f"{name} {_version(name)}" for name in (*_TOOLS, *_WHEELS)]
    own = Path(__file__).read_text("utf-8")
    intrinsics = Path(__file__).with_name("_intrinsics.py").read_text("utf-8")
    return digest(*versions, own, intrinsics, *texts)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


# ---------------------------------------------------------------- PTX


def _compute_capability(arch: str) -> tuple[int, int]:
    number = int(arch.removeprefix("sm_"))
    return number // 10, number % 10


def ptx_of(text: str, entry: str, words: tuple[Memref | Var, ...], arch: str) -> str:
    """Return the PTX of a kernel, in which it has the name ``entry``."""
    with COMPILING:
        cuda = _numba_cuda()
        from numba import types

        names: dict[str, Any] = dict(_device_names())
        source = text[text.index(f"def {entry}(") :]
        exec(compile(source, f"<sparsejit {entry}>", "exec"), names)
        signature = types.void(*(_numba_type(word, types) for word in words))
        try:
            ptx, _ = cuda.compile(
                names[entry], signature, device=False, abi="numba", cc=_compute_capability(arch)
            )
        except Exception as error:  # Numba raises its own errors and Python's: it refused the text
            raise BackendError(
                f"Numba CUDA cannot compile '{entry}': {type(error).__name__}: {error}",
                hint=f"this is a bug of sparsejit; please report it with the source:\n{text}",
            ) from error
    (mangled,) = re.findall(r"^\.visible \.entry (\w+)\(", ptx, flags=re.MULTILINE)
    return str(re.sub(rf"\b{mangled}(?=\b|_param_)", entry, ptx))


def _numba_cuda() -> Any:
    """Numba CUDA, ready to compile under any NumPy."""
    if not hasattr(np, "row_stack"):
        # numba-cuda 0.30 registers this function, which NumPy 2.5 does not have any more
        np.row_stack = np.vstack
    try:
        metadata.version("numba-cuda")
        return import_module("numba.cuda")
    except (ImportError, metadata.PackageNotFoundError) as error:
        raise BackendError(
            f"kernels for CUDA need the package numba-cuda: {error}",
            hint="install the extra for your driver: pip install 'sparsejit[cuda13]' (or cuda12)",
        ) from error


_STORED = {DType.BOOL: "uint8", DType.FLOAT16: "uint16", DType.BFLOAT16: "uint16"}


def _numba_type(word: Memref | Var, types: Any) -> Any:
    stored = _STORED.get(word.dtype, word.dtype.value)
    match word:
        case Memref():
            return types.CPointer(getattr(types, stored))
        case Var(_, DType.BOOL):
            return types.boolean
        case Var():
            return getattr(types, stored)


def _support_modules() -> list[ModuleType]:
    names = sorted({getattr(support, name).__module__ for name in support.__all__})
    return [import_module(name) for name in names]


@functools.cache
def _device_names() -> dict[str, Any]:
    """What the names of a text are on a device: every function is inlined where it is called."""
    cuda: Any = import_module("numba.cuda")
    inlined: Any = cuda.jit(device=True, inline="always")
    known = {name: getattr(np, name) for name in _CONSTRUCTORS if hasattr(np, name)}
    known |= _real_functions() | {"cuda": cuda, "inf": math.inf, "nan": math.nan}
    public: dict[str, Any] = {}
    namespaces: list[dict[str, Any]] = []
    for module in (device, *_support_modules()):
        # a second copy of each function, since its globals are those of the device
        namespace: dict[str, Any] = {"__name__": module.__name__}
        file = str(module.__file__)
        with open(file, encoding="utf-8") as source:
            exec(compile(source.read(), file, "exec"), namespace)
        for name, value in list(namespace.items()):
            if isinstance(value, FunctionType) and value.__module__ == module.__name__:
                namespace[name] = inlined(value)
        public = {name: namespace[name] for name in module.__all__} | public
        namespaces.append(namespace)
    public |= intrinsics()
    for namespace in namespaces:
        replaced = namespace.keys() & (known.keys() | public.keys())
        namespace.update({name: (known | public)[name] for name in replaced})
    return known | public


_CONSTRUCTORS = (
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip

_MATH = {
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "absolute": "fabs",
    **{name: name for name in (
        "copysign", "cos", "cosh", "exp", "exp2", "expm1", "fmod", "hypot", "isfinite", "isinf",
        "isnan", "log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh",
    )},
}  # fmt: skip


def _real_functions() -> dict[str, Any]:
    """NumPy's functions of real numbers by the ones that Numba CUDA has."""
    from numba.cuda import libdevice

    found = {name: getattr(math, other) for name, other in _MATH.items() if hasattr(math, other)}
    return found | {
        name: getattr(libdevice, name) for name in ("cbrt", "ceil", "floor", "rint", "trunc")
    }


# ---------------------------------------------------------------- linking


class Usage:
    """What a kernel takes: registers, and bytes of stack, of spills and of local memory."""

    __slots__ = ("local", "registers", "spills", "stack")

    def __init__(self, log: str) -> None:
        def number(pattern: str) -> int:
            found = re.search(pattern, log)
            return int(found.group(1)) if found else 0

        self.registers = number(r"Used (\d+) registers|used (\d+) registers")
        self.stack = number(r"(\d+) bytes (?:cumulative )?stack")
        self.spills = number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads")
        self.local = number(r"(\d+) bytes lmem")


def usage_of(text: str, entry: str, words: tuple[Memref | Var, ...], arch: str) -> Usage:
    """Return what the compiled kernel uses, as the linker tells it."""
    _, log = _linked(ptx_of(text, entry, words, arch), entry, arch)
    return Usage(log)


def _linked(ptx: str, entry: str, arch: str) -> tuple[bytes, str]:
    from cuda.bindings.nvjitlink import nvJitLinkError
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(arch=arch, verbose=True, ptxas_options=["-v"])
    try:
        linker = Linker(ObjectCode.from_ptx(ptx.encode()), options=options)
        cubin = linker.link("cubin")
    except nvJitLinkError as error:
        raise BackendError(
            f"nvJitLink cannot link '{entry}' for {arch}: {error}",
            hint="the wheels of nvvm and nvjitlink must be of one version; see the extras",
        ) from error
    return bytes(cubin.code), linker.get_info_log()
