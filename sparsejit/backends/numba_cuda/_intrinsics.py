"""Atomic steps, shuffles, votes as instructions: what Numba CUDA has no word for behind a pointer.

Numba's own atomics take arrays, which cost seven words a parameter; these take a pointer. The
meaning of each function is in ``device``. Numba CUDA is imported when they are made.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

import numpy as np

__all__ = ["intrinsics"]

_LETTERS = {"int32": "r", "uint32": "r", "int64": "l", "uint64": "l", "float32": "f"}
_LETTERS["float64"] = "d"
_SUFFIXES = {"int32": "s32", "uint32": "u32", "int64": "s64", "uint64": "u64", "float32": "f32"}
_SUFFIXES["float64"] = "f64"


def _ir() -> Any:
    """Import what writes LLVM IR: Numba has imported it when this is called."""
    return import_module("llvmlite.ir")


@functools.cache
def intrinsics() -> dict[str, Any]:
    """Return what replaces the functions of ``device`` that stand for instructions."""
    cuda: Any = import_module("numba.cuda")
    operations = ("add", "and", "max", "min", "or", "xor")
    made = {f"atomic_{op}": _atomic(op) for op in operations}
    add = made["atomic_add"]
    jit = cuda.jit(device=True, inline="always")

    def atomic_sub(pointer: Any, index: Any, value: Any) -> None:
        add(pointer, index, -value)

    def shuffle(value: Any, distance: Any) -> Any:
        return cuda.shfl_xor_sync(0xFFFFFFFF, value, distance)

    def shuffle_complex(value: Any, distance: Any) -> Any:
        return complex(
            cuda.shfl_xor_sync(0xFFFFFFFF, value.real, distance),
            cuda.shfl_xor_sync(0xFFFFFFFF, value.imag, distance),
        )

    def vote(flag: Any) -> Any:
        return np.int64(cuda.ballot_sync(0xFFFFFFFF, flag)) & 0xFFFFFFFF

    def peers(key: Any) -> Any:
        return np.int64(cuda.match_any_sync(0xFFFFFFFF, key)) & 0xFFFFFFFF

    def count_lanes(lanes: Any) -> Any:
        return np.int64(cuda.popc(lanes))

    functions = (atomic_sub, shuffle, shuffle_complex, vote, peers, count_lanes)
    return made | _conversions() | {function.__name__: jit(function) for function in functions}


_CONVERSIONS = {
    "f16_to_f32": ("uint16", "float32", "cvt.f32.f16 $0, $1;", "=f,h"),
    "f32_to_f16": ("float32", "uint16", "cvt.rn.f16.f32 $0, $1;", "=h,f"),
    "f64_to_f16": ("float64", "uint16", "cvt.rn.f16.f64 $0, $1;", "=h,d"),
    "bf16_to_f32": (
        "uint16",
        "float32",
        "{ .reg .b16 zero; mov.b16 zero, 0; mov.b32 $0, {zero, $1}; }",
        "=f,h",
    ),
    "f32_to_bf16": ("float32", "uint16", "cvt.rn.bf16.f32 $0, $1;", "=h,f"),
    "float32_bits": ("float32", "uint32", "mov.b32 $0, $1;", "=r,f"),
    "float32_from_bits": ("uint32", "float32", "mov.b32 $0, $1;", "=f,r"),
    "float64_bits": ("float64", "uint64", "mov.b64 $0, $1;", "=l,d"),
    "float64_from_bits": ("uint64", "float64", "mov.b64 $0, $1;", "=d,l"),
}
"""What a float is converted with, or moved between registers: operand, result, instruction,
registers."""


def _conversions() -> dict[str, Any]:
    """The conversions of 16-bit floats, which lie in memory as their bits, and bits of others."""
    return {name: _conversion(name, *row) for name, row in _CONVERSIONS.items()}


def _conversion(name: str, source: str, target: str, text: str, registers: str) -> Any:
    types: Any = import_module("numba.core.types")

    def typed(typing: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            result = context.get_value_type(signature.return_type)
            ir = _ir()
            function = ir.FunctionType(result, [arguments[0].type])
            return builder.call(ir.InlineAsm(function, text, registers), arguments)

        return getattr(types, target)(getattr(types, source)), generate

    typed.__name__ = name
    return import_module("numba.cuda.extending").intrinsic(typed)


def _suffix(op: str, word: str) -> str:
    """The type of an instruction: sums of signed and unsigned 64-bit integers are one."""
    if op in ("and", "or", "xor"):
        return f"b{word[-2:]}"
    return "u64" if op == "add" and word == "int64" else _SUFFIXES[word]


def _reduce(builder: Any, op: str, word: str, address: Any, value: Any) -> None:
    ir = _ir()
    function = ir.FunctionType(ir.VoidType(), [address.type, value.type])
    text = f"red.{op}.{_suffix(op, word)} [$0], $1;"
    assembly = ir.InlineAsm(function, text, f"l,{_LETTERS[word]},~{{memory}}", side_effect=True)
    builder.call(assembly, [address, value])


def _atomic(op: str) -> Any:
    types: Any = import_module("numba.core.types")
    parts = {types.complex64: types.float32, types.complex128: types.float64}

    def typed(typing: Any, pointer: Any, index: Any, value: Any) -> Any:
        element = pointer.dtype

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            base, place, given = arguments
            address = builder.gep(base, [place])
            if element not in parts:
                _reduce(builder, op, str(element), address, given)
                return context.get_dummy_value()
            number = context.make_complex(builder, element, value=given)
            real = context.get_value_type(parts[element])
            start = builder.bitcast(address, real.as_pointer())
            _reduce(builder, op, str(parts[element]), start, number.real)
            ir = _ir()
            following = builder.gep(start, [ir.Constant(ir.IntType(32), 1)])
            _reduce(builder, op, str(parts[element]), following, number.imag)
            return context.get_dummy_value()

        return types.void(pointer, types.int64, element), generate

    typed.__name__ = f"atomic_{op}"
    return import_module("numba.cuda.extending").intrinsic(typed)
