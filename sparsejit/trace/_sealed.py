"""What cannot be assigned to, and the error that says so.

NumPy's read-only results, and results of which only the layout in memory tells whether NumPy would
have made a view or a copy: assigning would be right for one of them only.
"""

from __future__ import annotations

from sparsejit._dataclasses import dataclass
from sparsejit.errors import Location, TensorValueError, UnsupportedError

__all__ = ["LAYOUT", "READ_ONLY", "VIEW_OF_SUM", "Sealed"]


@dataclass(frozen=True, slots=True)
class Sealed:
    """Why a dense value cannot be assigned; without a ``reason`` it is read-only in NumPy too."""

    what: str
    hint: str
    reason: str = ""

    def error(self, location: Location | None) -> TensorValueError | UnsupportedError:
        """Return the error for an assignment."""
        if not self.reason:
            return TensorValueError(self.what, hint=self.hint, location=location)
        reasons = (self.reason,)
        return UnsupportedError(self.what, hint=self.hint, location=location, reasons=reasons)


READ_ONLY = Sealed("assignment destination is read-only", "assign to a copy: np.copy(...)")
LAYOUT = Sealed(
    "assignment to a reshape of a transposed or sliced array is not built",
    "reshape a copy, x.copy().reshape(...), or assign to the array itself",
    "only the layout in memory tells whether NumPy gives a view or a copy",
)
VIEW_OF_SUM = Sealed(
    "assignment to an einsum that sums nothing is not built",
    "assign to the array itself, or to a copy: np.copy(...)",
    "it is a view of the operand in NumPy",
)
