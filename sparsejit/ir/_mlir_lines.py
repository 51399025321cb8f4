"""The lines of an MLIR function under construction: names, types, and index arithmetic.

In: values and affine expressions. Out: how the text calls them; an index is computed once, in the
outermost block that knows its symbols.
"""

from __future__ import annotations

import re
from typing import assert_never

from sparsejit.affine import Add, AffineExpr, Constant, Dim, FloorDiv, Mod, Mul, dims_of, mul
from sparsejit.ir._mlir_types import Encodings
from sparsejit.ir.tensor import TensorFunc, Value

__all__ = ["Block", "Lines", "safe_name"]


class Block:
    """The lines of one block: index arithmetic first, since several operations may share it."""

    def __init__(self, symbols: frozenset[int]) -> None:
        self.symbols = symbols
        self.header: list[str] = []
        self.lines: list[str] = []
        self.indices: dict[AffineExpr, str] = {}


class Lines:
    """The blocks of a function, the innermost last, and the names that are taken."""

    def __init__(self, func: TensorFunc) -> None:
        self._func = func
        self._encodings = Encodings()
        self._count = 0
        self._used: set[str] = set()
        self._names: dict[str, str] = {}
        self._blocks = [Block(frozenset(range(func.num_extents)))]

    # ------------------------------------------------------------ names and types

    def _name(self, value: Value) -> str:
        if value.name not in self._names:
            self._names[value.name] = self._reserve(safe_name(value.name))
        return self._names[value.name]

    def _reserve(self, wanted: str) -> str:
        name = wanted
        while name in self._used:
            self._count += 1
            name = f"{wanted}_{self._count}"
        self._used.add(name)
        return f"%{name}"

    def _fresh(self) -> str:
        self._count += 1
        return self._reserve(f"s{self._count}")

    def _type(self, value: Value) -> str:
        return self._encodings.tensor_type(value.type)

    def _line(self, text: str) -> None:
        self._blocks[-1].lines.append(text)

    # ------------------------------------------------------------ index arithmetic

    def _index(self, expr: AffineExpr) -> str:
        """The name of an index value, computed in the outermost block that knows its symbols."""
        needed, known = dims_of(expr), frozenset[int]()
        for block in self._blocks:
            known |= block.symbols
            if needed <= known:
                return block.indices.get(expr) or self._compute(expr, block)
        raise ValueError(f"an index uses a symbol that is not in scope: {expr}")

    def _compute(self, expr: AffineExpr, block: Block) -> str:
        match expr:
            case Dim(symbol):
                text = self._extent(symbol)
            case Constant(value):
                text = f"arith.constant {value} : index"
            case Add(lhs, Mul(Constant(-1), rhs)):
                text = f"arith.subi {self._index(lhs)}, {self._index(rhs)} : index"
            case Add(lhs, rhs):
                text = f"arith.addi {self._index(lhs)}, {self._index(rhs)} : index"
            case Mul(lhs, rhs):
                text = f"arith.muli {self._index(lhs)}, {self._index(rhs)} : index"
            case FloorDiv(lhs, divisor):
                by = self._index(Constant(divisor))
                text = f"arith.floordivsi {self._index(lhs)}, {by} : index"
            case Mod(lhs, divisor):
                whole = mul(Constant(divisor), FloorDiv(lhs, divisor))
                text = f"arith.subi {self._index(lhs)}, {self._index(whole)} : index"
            case _:
                assert_never(expr)
        hint = f"c{expr.value}" if isinstance(expr, Constant) and expr.value >= 0 else "i"
        if isinstance(expr, Dim):
            hint = safe_name(self._func.symbols[expr.index])
        name = self._reserve(hint)
        block.header.append(f"{name} = {text}")
        block.indices[expr] = name
        return name

    def _extent(self, symbol: int) -> str:
        for param in self._func.params:
            for axis, extent in enumerate(param.type.shape):
                if extent == Dim(symbol):
                    at = self._index(Constant(axis))
                    return f"tensor.dim {self._name(param)}, {at} : {self._type(param)}"
        raise ValueError(f"extent {self._func.symbols[symbol]} belongs to no parameter")

    def _mixed(self, exprs: tuple[AffineExpr, ...]) -> str:
        """A list of indices with constants as literals."""
        return ", ".join(
            str(expr.value) if isinstance(expr, Constant) else self._index(expr) for expr in exprs
        )


def safe_name(name: str) -> str:
    """A name with the characters that MLIR allows after ``%`` and ``@``."""
    cleaned = re.sub(r"[^A-Za-z0-9_$.]", "_", name)
    return cleaned if re.match(r"[A-Za-z_$]", cleaned) else f"v{cleaned}"
