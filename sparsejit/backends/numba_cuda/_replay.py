"""A kernel's text run on the host: thread by thread, or the lanes of a warp in step.

In: the text and the arguments of a launch. Every access is checked against the memory that the
argument has. Threads (warps) run in an order that a seed picks, so that a kernel whose result
depends on it shows. Where lanes exchange values the function becomes a generator: all lanes come to
the exchange, then all go on.
"""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from sparsejit.backends import support
from sparsejit.backends._names import IMPORTED_FROM_NUMPY
from sparsejit.backends.numba_cuda import device

__all__ = ["replayed"]

_WARP = 32
_EXCHANGES = frozenset({"shuffle", "shuffle_complex", "vote", "peers"})


class _Pointer:
    """Elements from a pointer on, as far as the array reaches; everything else is an error."""

    __slots__ = ("_first", "_flat", "_name")

    def __init__(self, array: NDArray[Any], name: str) -> None:
        steps = [stride // array.itemsize for stride in array.strides]
        reach = [(size - 1) * step for size, step in zip(array.shape, steps, strict=True)]
        self._first = sum(step for step in reach if step < 0)
        length = 1 + sum(map(abs, reach)) if array.size else 0
        base = array
        for axis, step in enumerate(steps):
            if step < 0:
                base = np.flip(base, axis)
        self._flat = as_strided(base, (length,), (array.itemsize,))
        self._name = name

    def _place(self, index: Any) -> int:
        place: int = int(index) - self._first
        if not 0 <= place < self._flat.size:
            raise IndexError(
                f"{self._name}[{int(index)}] is outside of its {self._flat.size} elements"
            )
        return place

    def __getitem__(self, index: Any) -> Any:
        return self._flat[self._place(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._flat[self._place(index)] = value


class _Cuda:
    """What a thread knows of its place in the grid."""

    __slots__ = ("laneid", "number", "total")

    def __init__(self, number: int, total: int) -> None:
        self.number = number
        self.total = total
        self.laneid = number % _WARP

    def grid(self, ndim: int) -> int:
        """The number of this thread."""
        return self.number

    def gridsize(self, ndim: int) -> int:
        """The number of all threads."""
        return self.total


def _int64_range(*bounds: Any) -> Iterator[np.int64]:
    return map(np.int64, range(*(int(bound) for bound in bounds)))


class _Exchanges(ast.NodeTransformer):
    """Makes each exchange between lanes a ``yield`` of its number, its name and its operands."""

    def __init__(self) -> None:
        self.found = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace a call that all lanes take together."""
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name(name)) if name in _EXCHANGES:
                pass
            case ast.Call(ast.Attribute(ast.Name("cuda"), "syncwarp" as name), []):
                pass
            case _:
                return node
        self.found += 1
        told = [ast.Constant(self.found), ast.Constant(name), *node.args]
        return ast.Yield(ast.Tuple(told, ast.Load()))


@functools.lru_cache(maxsize=512)
def _compiled(text: str, entry: str) -> tuple[Callable[..., Any], bool]:
    """The function ``entry(cuda, ...)`` of a text, and whether it is a generator."""
    tree = ast.parse(text)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    (function,) = functions
    exchanges = _Exchanges()
    exchanges.visit(function)
    function.args.args.insert(0, ast.arg("cuda"))
    module = ast.fix_missing_locations(ast.Module([function], []))
    namespace = _namespace()
    exec(compile(module, f"<replay of {entry}>", "exec"), namespace)
    return namespace[entry], bool(exchanges.found)


def _namespace() -> dict[str, Any]:
    names: dict[str, Any] = {name: getattr(np, name) for name in IMPORTED_FROM_NUMPY}
    names |= {name: getattr(support, name) for name in support.__all__}
    names |= {name: getattr(device, name) for name in device.__all__}
    return names | {"__name__": "sparsejit_replayed", "range": _int64_range}


def replayed(
    text: str, entry: str, names: Sequence[str], arguments: Sequence[Any], threads: int, seed: int
) -> None:
    """Run the kernel ``entry`` in ``threads`` threads, a whole number of warps.

    ``names`` are those of the parameters, for messages. Raises ``IndexError`` for an access outside
    of an array.
    """
    function, is_lockstep = _compiled(text, entry)
    given = [_argument(value, name) for value, name in zip(arguments, names, strict=True)]
    order = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        if not is_lockstep:
            for number in order.permutation(threads):
                function(_Cuda(int(number), threads), *given)
            return
        for warp in order.permutation(threads // _WARP):
            first = int(warp) * _WARP
            lanes = [function(_Cuda(first + lane, threads), *given) for lane in range(_WARP)]
            _in_step(lanes, order)


def _argument(value: Any, name: str) -> Any:
    match value:
        case np.ndarray():
            stored = {"bool": np.uint8, "float16": np.uint16, "bfloat16": np.uint16}
            word = stored.get(value.dtype.name)
            return _Pointer(value if word is None else value.view(word), name)
        case bool() | np.bool_():
            return bool(value)
        case int():
            return np.int64(value)
        case float():
            return np.float64(value)
        case _:
            halves = ("float16", "bfloat16")
            return value.view(np.uint16) if value.dtype.name in halves else value


def _in_step(lanes: list[Generator[Any, Any, None]], order: np.random.Generator) -> None:
    """Run lanes from exchange to exchange; all of them come to each."""
    answers: Sequence[Any] = [None] * len(lanes)
    while True:
        asked: dict[int, Any] = {}
        for lane in map(int, order.permutation(len(lanes))):
            with contextlib.suppress(StopIteration):
                asked[lane] = lanes[lane].send(answers[lane])
        if not asked:
            return
        if len(asked) != len(lanes):
            raise RuntimeError(f"{len(asked)} of {len(lanes)} lanes came to an exchange")
        if len({number for number, *_ in asked.values()}) > 1:
            raise RuntimeError("the lanes came to different exchanges")
        answers = _answers([asked[lane][1:] for lane in range(len(lanes))])


def _answers(asked: Sequence[Any]) -> Sequence[Any]:
    """What each lane gets at an exchange, by what all of them bring."""
    match asked[0]:
        case ("syncwarp",):
            return [None] * len(asked)
        case ("vote", _):
            return [_bits(flag for _, flag in asked)] * len(asked)
        case ("peers", _):
            return [_bits(other == key for _, other in asked) for _, key in asked]
        case _:
            return [asked[lane ^ int(distance)][1] for lane, (_, _, distance) in enumerate(asked)]


def _bits(flags: Iterable[Any]) -> np.int64:
    return np.int64(sum(1 << lane for lane, flag in enumerate(flags) if flag))
