"""Run a tensor function through upstream: its MLIR text, compiled and executed on given arrays.

A `main` is added that holds the arrays as constants, calls the function and prints each element of
each result as an integer with the same bits, so that nothing is lost in printing.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sparsejit.affine import evaluate
from sparsejit.ir._mlir_types import Encodings
from sparsejit.ir.mlir import print_mlir
from sparsejit.ir.tensor import TensorFunc, Value
from sparsejit.ir.types import DType
from tests.support.mlir_oracle import run

__all__ = ["run_upstream"]

Array = NDArray[np.float64]


def run_upstream(
    func: TensorFunc, arrays: Mapping[str, Array], extents: Sequence[int]
) -> list[Array]:
    """The results (of float64) as upstream computes them; `extents` are those of the symbols."""
    printed = print_mlir(func)
    name = printed.partition("func.func @")[2].partition("(")[0]
    reply = run(printed + _main(func, name, arrays, extents))
    if reply.output is None:
        raise RuntimeError(f"upstream did not run @{func.name}: {reply.error}")
    bits = iter(reply.output.split())
    results = []
    for value in func.results:
        shape = _shape(value, extents)
        words = [int(next(bits)) for _ in range(int(np.prod(shape)))]
        results.append(np.array(words, np.int64).view(np.float64).reshape(shape))
    return results


def _shape(value: Value, extents: Sequence[int]) -> tuple[int, ...]:
    return tuple(evaluate(extent, extents) for extent in value.type.shape)


def _type(value: Value) -> str:
    """The type with its encoding written out."""
    encodings = Encodings()
    text = encodings.tensor_type(value.type)
    for definition in encodings.definitions():
        alias, _, encoding = definition.partition(" = ")
        text = text.replace(alias, encoding)
    return text


def _main(func: TensorFunc, name: str, arrays: Mapping[str, Array], extents: Sequence[int]) -> str:
    lines, arguments = [], []
    for number, param in enumerate(func.params):
        assert param.type.dtype is DType.FLOAT64
        lines += _constant(f"%a{number}", arrays[param.name], param)
        arguments.append(f"%a{number}")
    types = ", ".join(_type(param) for param in func.params)
    names = ", ".join(f"%r{number}" for number in range(len(func.results)))
    results = ", ".join(_type(value) for value in func.results)
    lines.append(f"{names} = func.call @{name}({', '.join(arguments)}) : ({types}) -> ({results})")
    lines.append("%one = arith.constant 1 : index")
    lines.append("%zero = arith.constant 0 : index")
    for number, value in enumerate(func.results):
        lines += _print(f"%r{number}", value, _shape(value, extents))
    return "\n".join(["func.func @main() {", *lines, "return", "}", ""])


def _constant(name: str, array: Array, param: Value) -> list[str]:
    sizes = "".join(f"{size}x" for size in array.shape)
    plain = f"tensor<{'?x' * array.ndim}f64>"
    bits = np.ascontiguousarray(array).view(np.uint64).tolist()
    numbers = str([f"0x{word:016X}" for word in np.ravel(bits)]).replace("'", "")
    if array.ndim == 0:
        numbers = numbers.strip("[]")
    lines = [
        f"{name}_flat = arith.constant dense<{_nested(numbers, array.shape)}> : tensor<{sizes}f64>",
        f"{name}_dense = tensor.cast {name}_flat : tensor<{sizes}f64> to {plain}",
    ]
    if param.type.is_dense:
        lines.append(f"{name} = tensor.cast {name}_dense : {plain} to {plain}")
    else:
        lines.append(f"{name} = sparse_tensor.convert {name}_dense : {plain} to {_type(param)}")
    return lines


def _nested(numbers: str, shape: tuple[int, ...]) -> str:
    """The literal of a tensor: a list a dimension."""
    items = numbers.strip("[]").split(", ")
    for size in reversed(shape):
        items = [
            f"[{', '.join(items[start : start + size])}]" for start in range(0, len(items), size)
        ]
    return items[0]


def _print(name: str, value: Value, shape: tuple[int, ...]) -> list[str]:
    plain = f"tensor<{'?x' * len(shape)}f64>"
    lines, source = [], name
    if not value.type.is_dense:
        source = f"{name}_dense"
        lines.append(f"{source} = sparse_tensor.convert {name} : {_type(value)} to {plain}")
    counters = []
    for axis, size in enumerate(shape):
        counter = f"{name}_i{axis}"
        lines.append(f"{name}_n{axis} = arith.constant {size} : index")
        lines.append(f"scf.for {counter} = %zero to {name}_n{axis} step %one {{")
        counters.append(counter)
    lines += [
        f"{name}_e = tensor.extract {source}[{', '.join(counters)}] : {plain}",
        f"{name}_b = arith.bitcast {name}_e : f64 to i64",
        f"vector.print {name}_b : i64",
        *("}" for _ in shape),
    ]
    return lines
