"""User functions that could not be read: identified, typed and compiled by Numba.

In: a plain Python function of scalars and the dtypes of its operands. Out: a ``UserFunction`` of
the IR, and what each backend calls for it. Numba is imported when the first one comes.
"""

from sparsejit.user_code._compiled import (
    UserCodeError,
    c_function,
    checked_function,
    failure,
    python_function,
    symbol_of,
)
from sparsejit.user_code._identity import UnidentifiedError, digest_of, values_read
from sparsejit.user_code._typing import NotCompilableError, typed_function

__all__ = [
    "NotCompilableError",
    "UnidentifiedError",
    "UserCodeError",
    "c_function",
    "checked_function",
    "digest_of",
    "failure",
    "python_function",
    "symbol_of",
    "typed_function",
    "values_read",
]
