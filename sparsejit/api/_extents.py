"""Extents at a call: the values of a function's symbols, or that the trace does not fit.

In: the parameters' types and the guards of a trace; at a call, concrete shapes. Out: the numbers of
the extent symbols, or None where a dimension, a constant of the trace or a guard disagrees.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Dim, evaluate
from sparsejit.ir.tensor import TensorFunc

__all__ = ["ExtentRule"]


@dataclass(frozen=True, slots=True)
class ExtentRule:
    """Where each symbol is read, ``(parameter, dimension)``, and what else must hold."""

    sources: tuple[tuple[int, int], ...]
    checks: tuple[tuple[int, int, AffineExpr], ...]
    guards: tuple[AffineExpr, ...]

    @staticmethod
    def of(func: TensorFunc, guards: Sequence[AffineExpr]) -> ExtentRule:
        """Return the rule of a traced function.

        >>> from sparsejit.ir.build import TensorBuilder
        >>> from sparsejit.ir.types import DType
        >>> builder = TensorBuilder("f")
        >>> x = builder.param("x", ("n",), DType.FLOAT64)
        >>> y = builder.param("y", ("n", 2), DType.FLOAT64)
        >>> rule = ExtentRule.of(builder.finish(), ())
        >>> rule.numbers([(3,), (3, 2)]), rule.numbers([(3,), (4, 2)])
        ([3], None)
        """
        sources: dict[int, tuple[int, int]] = {}
        checks: list[tuple[int, int, AffineExpr]] = []
        for number, param in enumerate(func.params):
            for dim, extent in enumerate(param.type.shape):
                if isinstance(extent, Dim) and extent.index not in sources:
                    sources[extent.index] = (number, dim)
                else:
                    checks.append((number, dim, extent))
        ordered = tuple(sources[symbol] for symbol in range(func.num_extents))
        return ExtentRule(ordered, tuple(checks), tuple(guards))

    def numbers(self, shapes: Sequence[tuple[int, ...]]) -> list[int] | None:
        """Return the values of the symbols for parameters of these shapes, None if they misfit."""
        found = [shapes[param][dim] for param, dim in self.sources]
        for param, dim, extent in self.checks:
            if shapes[param][dim] != evaluate(extent, found):
                return None
        if any(evaluate(guard, found) < 0 for guard in self.guards):
            return None
        return found
