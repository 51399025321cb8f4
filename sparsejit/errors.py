"""The exceptions of sparsejit, and the place in the user's function that they point at.

Every message has up to three lines: what is wrong, where in the user's function, what to do next.
Wrong *values* handed in by a caller (damaged operands and files, a wrong option) are plain
``ValueError``; everything that speaks about the compiler derives from ``SparseJitError``.
"""

from __future__ import annotations

from pathlib import PurePath

from sparsejit._dataclasses import dataclass

__all__ = [
    "AxisError",
    "BackendError",
    "DeviceError",
    "Location",
    "OutOfMemoryError",
    "SparseJitError",
    "SubscriptError",
    "TensorTypeError",
    "TensorValueError",
    "TraceError",
    "UnsupportedError",
    "VerificationError",
    "locate",
]


@dataclass(frozen=True, slots=True)
class Location:
    """A line of the user's source: where an operation was written.

    >>> str(Location("model.py", 7, "spmv"))
    'model.py:7 in spmv'
    """

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}"
        return f"{place} in {self.function}" if self.function else place

    @property
    def short(self) -> str:
        """The file's base name and the line, for texts that must not depend on a machine."""
        return f"{PurePath(self.file).name}:{self.line}"


def locate(what: str, location: Location | None, hint: str) -> str:
    """Return the message of an error: what is wrong, where, and what to do (empty parts left out).

    >>> print(locate("shapes differ", Location("f.py", 3), "transpose one of them"))
    shapes differ
      at f.py:3
      transpose one of them
    """
    lines = [what]
    if location is not None:
        lines.append(f"  at {location}")
    if hint:
        lines.append(f"  {hint}")
    return "\n".join(lines)


class SparseJitError(Exception):
    """The root of all errors that speak about compiling or running a traced function.

    ``what`` says what is wrong, ``location`` where in the user's function (None where there is no
    such place), ``hint`` what to do next.

    >>> str(SparseJitError("no rule for op", hint="report it"))
    'no rule for op\\n  report it'
    """

    def __init__(self, what: str, *, hint: str = "", location: Location | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.location = location

    def __str__(self) -> str:
        return locate(self.what, self.location, self.hint)


class TraceError(SparseJitError):
    """The user's function cannot be traced: a branch on a traced value, an unbound index, ..."""


class TensorTypeError(SparseJitError, TypeError):
    """Ranks, dtypes, shapes or formats do not fit what an operation asks for.

    Where NumPy says ``ValueError`` (extents that do not agree, a reduction of nothing) or
    ``IndexError`` (an element or axis that is not there), it is that too.
    """


class TensorValueError(TensorTypeError, ValueError):
    """Extents that do not agree, a reduction of nothing: a ``ValueError``, as in NumPy.

    >>> isinstance(TensorValueError("shapes differ"), ValueError)
    True
    """


class SubscriptError(TensorTypeError, IndexError):
    """An element that an array does not have: an ``IndexError``, as in NumPy."""


class AxisError(TensorTypeError, ValueError, IndexError):
    """An axis that an array does not have: a ``ValueError`` and ``IndexError``, as in NumPy."""


class UnsupportedError(SparseJitError):
    """The program is legal, but this much is not built; never a bug of the program.

    ``reasons`` lists why each way of doing it was refused.

    >>> print(UnsupportedError("a 2-d workspace is needed", reasons=("loop k is outside i",)))
    a 2-d workspace is needed
      because loop k is outside i
    """

    def __init__(
        self,
        what: str,
        *,
        hint: str = "",
        location: Location | None = None,
        reasons: tuple[str, ...] = (),
    ) -> None:
        super().__init__(what, hint=hint, location=location)
        self.reasons = reasons

    def __str__(self) -> str:
        because = "\n".join(f"  because {reason}" for reason in self.reasons)
        return "\n".join(part for part in (super().__str__(), because) if part)


class VerificationError(SparseJitError):
    """The compiler broke one of its own rules: always a bug of sparsejit.

    ``rule`` names the rule, ``ir_text`` holds the program that breaks it.
    """

    def __init__(self, rule: str, what: str, *, ir_text: str = "", after: str = "") -> None:
        where = f" after {after}" if after else ""
        super().__init__(
            f"broken invariant '{rule}'{where}: {what}",
            hint="this is a bug of sparsejit; please report it with the program",
        )
        self.rule = rule
        self.ir_text = ir_text
        self.after = after


class BackendError(SparseJitError):
    """A tool below (Numba, LLVM, cuSPARSE) refused what sparsejit generated, or a user function
    that a kernel called raised an exception.
    """


class OutOfMemoryError(BackendError, MemoryError):
    """A call needs an array that no memory holds; the message names it. A ``MemoryError`` too."""


class DeviceError(SparseJitError):
    """No usable GPU, out of device memory, or a failed launch; the message names the step."""
