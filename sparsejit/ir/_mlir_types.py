"""MLIR's spelling of element types, formats and tensor types; what it cannot say is refused."""

from __future__ import annotations

from sparsejit.affine import AffineExpr, Dim, FloorDiv, Mod, expr_text
from sparsejit.errors import UnsupportedError
from sparsejit.formats import Format, LevelKind
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import DType, TensorType

__all__ = ["Encodings", "element_type"]

_ELEMENTS = {
    DType.BOOL: "i1",
    DType.FLOAT16: "f16",
    DType.BFLOAT16: "bf16",
    DType.FLOAT32: "f32",
    DType.FLOAT64: "f64",
    DType.COMPLEX64: "complex<f32>",
    DType.COMPLEX128: "complex<f64>",
}

_LEVELS_OF_OURS = {LevelKind.RANGE, LevelKind.PADDED}


def element_type(dtype: DType) -> str:
    """Return the element type; integers have no sign in MLIR, their operations do.

    >>> element_type(DType.UINT8), element_type(DType.COMPLEX64)
    ('i8', 'complex<f32>')
    """
    return _ELEMENTS.get(dtype) or f"i{dtype.bits}"


class Encodings:
    """Hands out one alias (``#sparse0``, ...) for each format met, and their definitions."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def definitions(self) -> list[str]:
        """Return the lines that define the aliases, in the order of first use."""
        return [f"{name} = {text}" for text, name in self._names.items()]

    def _alias(self, text: str) -> str:
        return self._names.setdefault(text, f"#sparse{len(self._names)}")

    def tensor_type(self, type_: TensorType) -> str:
        """Return the type of a tensor; every extent is ``?``.

        Raises ``UnsupportedError`` for formats and fill values that MLIR does not have.
        """
        return self._spell(type_, sliced=False)

    def slice_type(self, source: TensorType, result: TensorType) -> str:
        """Return the type of a slice of a sparse tensor before it is converted to ``result``.

        MLIR marks it as a slice of the source's storage where dimensions are stored unsplit.
        """
        plain = all(isinstance(level.expr, Dim) for level in source.format.levels)
        if plain and source.rank == result.rank:
            return self._spell(source, sliced=True)
        return self._spell(result, sliced=False)

    def _spell(self, type_: TensorType, *, sliced: bool) -> str:
        shape = "?x" * type_.rank
        element = element_type(type_.dtype)
        if type_.is_dense:
            return f"tensor<{shape}{element}>"
        if not _is_zero(type_.fill):
            raise UnsupportedError(
                f"MLIR has no sparse tensor with the fill value {type_.fill.value!r}"
            )
        return f"tensor<{shape}{element}, {self._alias(_encoding(type_.format, sliced=sliced))}>"


def _is_zero(fill: Const) -> bool:
    return fill.value == 0


def _encoding(format_: Format, *, sliced: bool) -> str:
    _refuse_unknown_levels(format_)
    names = tuple(f"d{d}" for d in range(format_.ndim))
    dims = [f"{name} : #sparse_tensor<slice(?, ?, ?)>" if sliced else name for name in names]
    levels = ", ".join(f"{expr_text(lvl.expr, names)} : {lvl.type}" for lvl in format_.levels)
    widths = [
        f"{key} = {width}"
        for key, width in (("posWidth", format_.pos_width), ("crdWidth", format_.crd_width))
        if width
    ]
    fields = ", ".join([f"map = ({', '.join(dims)}) -> ({levels})", *widths])
    return f"#sparse_tensor.encoding<{{ {fields} }}>"


def _refuse_unknown_levels(format_: Format) -> None:
    blocked: set[AffineExpr] = set()
    for level in format_.levels:
        if level.type.kind in _LEVELS_OF_OURS:
            raise UnsupportedError(f"MLIR has no {level.type.kind.value} level: {format_}")
        match level.expr:
            case Dim():
                pass
            case FloorDiv(inner, _):
                blocked.add(inner)
            case Mod(inner, _) if inner in blocked:
                pass
            case _:
                names = tuple(f"d{d}" for d in range(format_.ndim))
                raise UnsupportedError(
                    f"MLIR cannot invert the level {expr_text(level.expr, names)} of {format_}"
                )
    if not format_.levels:
        raise UnsupportedError("MLIR has no sparse tensor without dimensions")
