"""The exponential function as arithmetic, of numbers and of vectors: LLVM has it for neither.

``exp(x) = 2**n * exp(r)`` with ``n`` the integer nearest to ``x / ln 2`` and ``|r| <= ln(2) / 2``.
Of ``exp(r) = 1 + (r + r**2 * p(r))`` the polynomial ``p`` is what Chebyshev's nodes give for that
range, its error far below the last bit. ``2**n`` is two factors, as it may be no number where the
result is one. The error stays below one unit in the last place; nan and infinities are right.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._text import Builder, Value, integer, lanes_of, scalar_of, vector_of
from sparsejit.backends.llvm._types import real

__all__ = ["exponential"]


@dataclass(frozen=True, slots=True)
class _Form:
    """How numbers of one type are made, and what the polynomial is.

    ``least`` and ``largest`` bound where the result is neither zero nor infinite. A number between
    ``1.5 * 2**fraction`` and twice that has an integer in its last bits. ``high`` and ``low`` add
    up to ln 2, and the product of ``high`` and an exponent is exact.
    """

    least: float
    largest: float
    fraction: int
    bias: int
    high: float
    low: float
    coefficients: tuple[float, ...]


_DOUBLE = _Form(
    -746.0, 710.0, 52, 1023, 0.6931471803691238, 1.9082149292705877e-10,
    (
        0.5, 0.1666666666666667, 0.04166666666666667, 0.00833333333332614, 0.0013888888888883752,
        0.00019841269874804214, 2.4801587325536023e-05, 2.7557255421023506e-06,
        2.7557273657975953e-07, 2.5105208339987698e-08, 2.0914680780540263e-09,
    ),
)  # fmt: skip
_FLOAT = _Form(
    -104.0, 89.0, 23, 127, 0.693145751953125, 1.428606765330187e-06,
    (
        0.5000000013459222, 0.16666666681615916, 0.041666464991106766, 0.008333310932790487,
        0.0013933642689829186, 0.00019890982710792465,
    ),
)  # fmt: skip
_LOG2_E = 1.4426950408889634


def exponential(b: Builder, value: Value) -> Value:
    """Return e to the power of a float or double, or of each in a vector."""
    lanes, element = lanes_of(value.type), scalar_of(value.type)
    form = _DOUBLE if element == "double" else _FLOAT
    bits = vector_of("i64" if element == "double" else "i32", lanes)

    def number(constant: float) -> Value:
        return b.splat(real(constant, element), lanes)

    def whole(constant: int) -> Value:
        return b.splat(integer(constant, scalar_of(bits)), lanes)

    def power(exponent: Value) -> Value:
        """Two to the power of an integer."""
        shifted = b.op("shl", b.op("add", exponent, whole(form.bias)), whole(form.fraction))
        return b.cast("bitcast", shifted, value.type)

    low, high = number(form.least), number(form.largest)
    x = b.select(b.compare("olt", value, low), low, value)
    x = b.select(b.compare("ogt", x, high), high, x)
    shift = number(1.5 * 2.0**form.fraction)
    scaled = b.op("fmul", x, number(_LOG2_E), "contract")
    shifted = b.op("fadd", scaled, shift, "contract")
    nearest = b.op("fsub", shifted, shift)
    r = x
    for part in (form.high, form.low):
        r = b.op("fsub", r, b.op("fmul", nearest, number(part), "contract"), "contract")
    result = _near_zero(b, r, [number(c) for c in form.coefficients])
    exponent = b.op("sub", b.cast("bitcast", shifted, bits), b.cast("bitcast", shift, bits))
    # A logical shift of what is positive: not every processor has the other one for vectors.
    positive = b.op("add", exponent, whole(4 * form.bias + 4))
    half = b.op("sub", b.op("lshr", positive, whole(1)), whole(2 * form.bias + 2))
    once = b.op("fmul", result, power(half))
    return b.op("fmul", once, power(b.op("sub", exponent, half)))


def _near_zero(b: Builder, r: Value, coefficients: Sequence[Value]) -> Value:
    """Return ``exp(r)``: even and odd powers apart, which run side by side."""
    square = b.op("fmul", r, r)

    def of_square(terms: Sequence[Value]) -> Value:
        total = terms[-1]
        for term in reversed(terms[:-1]):
            total = b.op("fadd", b.op("fmul", total, square, "contract"), term, "contract")
        return total

    odd = b.op("fmul", of_square(coefficients[1::2]), r, "contract")
    inner = b.op("fadd", odd, of_square(coefficients[::2]), "contract")
    beyond = b.op("fadd", b.op("fmul", inner, square, "contract"), r, "contract")
    return b.op("fadd", beyond, b.splat(real(1.0, scalar_of(r.type)), lanes_of(r.type)))
