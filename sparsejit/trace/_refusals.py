"""What NumPy and SciPy have and traced arrays do not: each with its reason and what to do instead.

Data only: by the name of the function or method. What has no row here is refused without a reason.
"""

from __future__ import annotations

from sparsejit._dataclasses import dataclass
from sparsejit.errors import UnsupportedError
from sparsejit.trace._locations import caller

__all__ = ["ATTRIBUTES", "GATHER", "refused"]


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str
    hint: str


_SIZE = "the size of its result is known only at run time"
_ORDER = "sorting is no operation of the tensor IR"
_SPECIAL = "functions of scipy.special are no operations of the IR"
_FACTOR = "factorizations are not built"
_ORDERED = "each element depends on the one before"
_INDEX = "a value as an index is not built"
_SCALAR = "the IR has no scalar operation for it"
_PATTERN = "the pattern of an argument never changes in place"
_BUFFERS = "how an array is stored is decided when the program is compiled"

_OUTSIDE = "call it on the result, outside of the traced function"
_ENTRIES = "use sj.unary, sj.select or sj.where_stored on the entries"
_WHERE = "use np.where, which keeps the shape"
_SOLVE = (
    "iterate with sj.while_loop (conjugate gradients), or call scipy.sparse.linalg outside of "
    "the traced function"
)
GATHER = (
    "multiply by a sparse matrix with a one in each row, at the place to take: P @ x with "
    "P = sp.csr_array((np.ones(k), rows, np.arange(k + 1)), (k, n)), made outside and passed in"
)
"""How to take rows at places that are known only at run time."""
_LOOP = "write the recurrence with sj.fori_loop"
_CONVOLVE = "use index notation, as in y[i] = x[i + j] * w[j]"
_FIXED = "return a new tensor, as with sj.select or np.where"

_ROWS: dict[tuple[str, str], str] = {
    (_SIZE, _WHERE): "nonzero flatnonzero argwhere extract compress",
    (_SIZE, _OUTSIDE): "unique unique_values unique_counts trim_zeros",
    (_ORDER, _OUTSIDE): (
        "sort argsort partition argpartition median percentile quantile nanmedian nanpercentile "
        "nanquantile lexsort searchsorted digitize histogram isin in1d union1d intersect1d "
        "setdiff1d"
    ),
    (_FACTOR, _SOLVE): (
        "linalg.inv linalg.solve linalg.det linalg.slogdet linalg.eig linalg.eigh linalg.eigvals "
        "linalg.eigvalsh linalg.svd linalg.svdvals linalg.qr linalg.cholesky linalg.pinv "
        "linalg.lstsq linalg.matrix_rank linalg.cond linalg.tensorsolve linalg.tensorinv"
    ),
    (_SPECIAL, "write it out, as 1 / (1 + np.exp(-x)), or use sj.unary with a function of math"): (
        "expit logit log_expit erf erfc erfinv gamma gammaln xlogy xlog1py entr rel_entr kl_div"
    ),
    (_INDEX, GATHER): "take_along_axis choose bincount put put_along_axis ix_",
    ("it searches among points", _OUTSIDE): "interp",
    ("it is a sum over shifted elements", _CONVOLVE): "convolve correlate gradient",
    (_SCALAR, "compose it from other functions"): (
        "nextafter spacing ldexp frexp gcd lcm bitwise_count i0"
    ),
    ("it is a composition of what is built", "write it out, with np.stack, .mean() and @"): (
        "cov corrcoef cross vander meshgrid ediff1d insert delete nanargmax nanargmin real_if_close"
    ),
    (_ORDERED, _LOOP): (
        "add.accumulate multiply.accumulate maximum.accumulate minimum.accumulate add.reduceat "
        "unwrap"
    ),
    (
        "only floats and integers of one size, from 32 bits for floats, share their bits",
        "use .astype, or .real and .imag of complex numbers",
    ): "view",
    ("the bytes of an element are not moved", "use .astype"): "byteswap",
    ("its value is known only when the program runs", _OUTSIDE): "item tolist tobytes",
    ("what runs where is decided for the whole function", "use target="): "to_device",
    ("transforms are not built", "multiply by the matrix of the transform"): (
        "fft.fft fft.ifft fft.rfft fft.irfft fft.fft2 fft.ifft2 fft.fftn fft.ifftn"
    ),
    ("its branches are arrays of one shape", "use np.where or np.select"): "piecewise",
    (_PATTERN, _FIXED): ("setdiag resize eliminate_zeros prune itemset setflags sum_duplicates"),
    (_BUFFERS, _ENTRIES): "getfield setfield dump dumps tofile",
    ("a fold by a function that is not associative has one order only", _LOOP): (
        "subtract.reduce divide.reduce true_divide.reduce power.reduce hypot.reduce gcd.reduce"
    ),
    ("it updates elements at places known only at run time", GATHER): "add.at subtract.at",
    (
        "what it leaves out would be whatever the memory held",
        "use np.where(mask, result, otherwise), or give out=",
    ): "ufunc.where",
    ("it calls a Python function for parts of the array", "write it with axis= or indices"): (
        "apply_along_axis apply_over_axes fromfunction vectorize"
    ),
}

_BY_NAME = {
    name: _Refusal(reason, hint)
    for (reason, hint), names in _ROWS.items()
    for name in names.split()
}

ATTRIBUTES: dict[str, str] = {
    **dict.fromkeys(("data", "indices", "indptr", "row", "col", "coords"), _ENTRIES),
    **dict.fromkeys(("positions", "coordinates", "values"), _ENTRIES),
    **dict.fromkeys(("flat", "base", "flags", "strides", "ctypes", "device"), _OUTSIDE),
    **dict.fromkeys(("format", "blocksize", "offsets"), "the caller's objects know their format"),
    "A": "use .toarray()",
    "H": "use .T.conj()",
}
"""What to do instead of reading an attribute that traced arrays do not have."""


def refused(what: str, name: str, reason: str = "") -> UnsupportedError:
    """Return the error for a function or method that is not built; ``name`` finds its row."""
    row = _BY_NAME.get(name)
    if row is None:
        reasons = (reason,) if reason else ()
        return UnsupportedError(f"{what} is not built", location=caller(), reasons=reasons)
    return UnsupportedError(
        f"{what} is not built", hint=row.hint, location=caller(), reasons=(row.reason,)
    )
