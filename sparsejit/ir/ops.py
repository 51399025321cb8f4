"""The scalar operations and their algebra: one row an operation, read by every stage.

The sparsifier asks the rows for identities and annihilators (which coordinates need a visit), the
printers for spellings, the reference evaluator for NumPy's function. A new operation is one row
here and one in each printer's table of spellings.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["BinaryInfo", "BinaryOp", "ResultKind", "UnaryInfo", "UnaryOp", "identity_of"]


class ResultKind(Enum):
    """The dtype of a result: that of the operands, bool, the real part's, or one of as many bits.

    ``BITS`` is an unsigned integer, ``FLOAT`` a float.
    """

    SAME = "same"
    BOOL = "bool"
    REAL = "real"
    BITS = "bits"
    FLOAT = "float"


Number = int | float


@dataclass(frozen=True, slots=True)
class UnaryInfo:
    """``numpy`` names the NumPy function that defines the operation, or the method ``view``."""

    numpy: str
    result: ResultKind = ResultKind.SAME


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryInfo:
    """The algebra of a binary operation.

    ``left_identity e``: e op x = x; ``right_identity e``: x op e = x; ``left_annihilator z``:
    z op x = z and ``right_annihilator``: x op z = z, by the algebra, also against inf and nan.
    Identities of min and max are the largest and least value of the dtype: ``"max"``, ``"min"``.
    """

    numpy: str
    symbol: str
    result: ResultKind = ResultKind.SAME
    commutative: bool = False
    associative: bool = False
    left_identity: Number | str | None = None
    right_identity: Number | str | None = None
    left_annihilator: Number | None = None
    right_annihilator: Number | None = None


class UnaryOp(Enum):
    """The operations of one operand."""

    NEG = UnaryInfo("negative")
    ABS = UnaryInfo("absolute", ResultKind.REAL)
    SIGN = UnaryInfo("sign")
    NOT = UnaryInfo("invert")
    SQRT = UnaryInfo("sqrt")
    CBRT = UnaryInfo("cbrt")
    EXP = UnaryInfo("exp")
    EXP2 = UnaryInfo("exp2")
    EXPM1 = UnaryInfo("expm1")
    LOG = UnaryInfo("log")
    LOG2 = UnaryInfo("log2")
    LOG10 = UnaryInfo("log10")
    LOG1P = UnaryInfo("log1p")
    SIN = UnaryInfo("sin")
    COS = UnaryInfo("cos")
    TAN = UnaryInfo("tan")
    ASIN = UnaryInfo("arcsin")
    ACOS = UnaryInfo("arccos")
    ATAN = UnaryInfo("arctan")
    SINH = UnaryInfo("sinh")
    COSH = UnaryInfo("cosh")
    TANH = UnaryInfo("tanh")
    ASINH = UnaryInfo("arcsinh")
    ACOSH = UnaryInfo("arccosh")
    ATANH = UnaryInfo("arctanh")
    FLOOR = UnaryInfo("floor")
    CEIL = UnaryInfo("ceil")
    TRUNC = UnaryInfo("trunc")
    RINT = UnaryInfo("rint")
    CONJ = UnaryInfo("conjugate")
    REAL = UnaryInfo("real", ResultKind.REAL)
    IMAG = UnaryInfo("imag", ResultKind.REAL)
    ISNAN = UnaryInfo("isnan", ResultKind.BOOL)
    ISINF = UnaryInfo("isinf", ResultKind.BOOL)
    ISFINITE = UnaryInfo("isfinite", ResultKind.BOOL)
    SIGNBIT = UnaryInfo("signbit", ResultKind.BOOL)
    BITS = UnaryInfo("view", ResultKind.BITS)
    """The bits of a float as an unsigned integer."""
    FROM_BITS = UnaryInfo("view", ResultKind.FLOAT)
    """The float of which an unsigned integer has the bits."""

    def __repr__(self) -> str:
        return f"UnaryOp.{self.name}"

    @property
    def info(self) -> UnaryInfo:
        """The row of the table."""
        return self.value


class BinaryOp(Enum):
    """The operations of two operands of one dtype.

    On bool, ``ADD`` and ``MUL`` are or and and, as in NumPy; integer division by zero gives 0 and
    integer overflow wraps; a shift by the width or more gives 0 (or the sign).
    """

    ADD = BinaryInfo(
        numpy="add",
        symbol="+",
        commutative=True,
        associative=True,
        left_identity=0,
        right_identity=0,
    )
    SUB = BinaryInfo(numpy="subtract", symbol="-", right_identity=0)
    MUL = BinaryInfo(
        numpy="multiply",
        symbol="*",
        commutative=True,
        associative=True,
        left_identity=1,
        right_identity=1,
        left_annihilator=0,
        right_annihilator=0,
    )
    DIV = BinaryInfo(numpy="true_divide", symbol="/", right_identity=1, left_annihilator=0)
    FLOORDIV = BinaryInfo(numpy="floor_divide", symbol="//", left_annihilator=0)
    REM = BinaryInfo(numpy="remainder", symbol="%", left_annihilator=0)
    FMOD = BinaryInfo(numpy="fmod", symbol="fmod", left_annihilator=0)
    POW = BinaryInfo(numpy="power", symbol="**", right_identity=1)
    MIN = BinaryInfo(
        numpy="minimum",
        symbol="min",
        commutative=True,
        associative=True,
        left_identity="max",
        right_identity="max",
    )
    MAX = BinaryInfo(
        numpy="maximum",
        symbol="max",
        commutative=True,
        associative=True,
        left_identity="min",
        right_identity="min",
    )
    FMIN = BinaryInfo(numpy="fmin", symbol="fmin", commutative=True, associative=True)
    FMAX = BinaryInfo(numpy="fmax", symbol="fmax", commutative=True, associative=True)
    ATAN2 = BinaryInfo(numpy="arctan2", symbol="atan2")
    HYPOT = BinaryInfo(numpy="hypot", symbol="hypot", commutative=True)
    COPYSIGN = BinaryInfo(numpy="copysign", symbol="copysign")
    LOGADDEXP = BinaryInfo(numpy="logaddexp", symbol="logaddexp", commutative=True)
    AND = BinaryInfo(
        numpy="bitwise_and",
        symbol="&",
        commutative=True,
        associative=True,
        left_identity=-1,
        right_identity=-1,
        left_annihilator=0,
        right_annihilator=0,
    )
    OR = BinaryInfo(
        numpy="bitwise_or",
        symbol="|",
        commutative=True,
        associative=True,
        left_identity=0,
        right_identity=0,
    )
    XOR = BinaryInfo(
        numpy="bitwise_xor",
        symbol="^",
        commutative=True,
        associative=True,
        left_identity=0,
        right_identity=0,
    )
    SHL = BinaryInfo(numpy="left_shift", symbol="<<", right_identity=0, left_annihilator=0)
    SHR = BinaryInfo(numpy="right_shift", symbol=">>", right_identity=0, left_annihilator=0)
    LT = BinaryInfo(numpy="less", symbol="<", result=ResultKind.BOOL)
    LE = BinaryInfo(numpy="less_equal", symbol="<=", result=ResultKind.BOOL)
    GT = BinaryInfo(numpy="greater", symbol=">", result=ResultKind.BOOL)
    GE = BinaryInfo(numpy="greater_equal", symbol=">=", result=ResultKind.BOOL)
    EQ = BinaryInfo(numpy="equal", symbol="==", result=ResultKind.BOOL, commutative=True)
    NE = BinaryInfo(numpy="not_equal", symbol="!=", result=ResultKind.BOOL, commutative=True)

    def __repr__(self) -> str:
        return f"BinaryOp.{self.name}"

    @property
    def info(self) -> BinaryInfo:
        """The row of the table."""
        return self.value


def identity_of(op: BinaryOp) -> Number | str | None:
    """Return the two-sided identity of a reduction ``op``, or None where it has none.

    >>> identity_of(BinaryOp.MUL), identity_of(BinaryOp.SUB)
    (1, None)
    """
    info = op.info
    return info.left_identity if info.left_identity == info.right_identity else None
