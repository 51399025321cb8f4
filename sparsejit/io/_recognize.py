"""Which kind of file a path holds: told by its name, else by its content.

What enters is a path and perhaps the user's word; what leaves is a ``FileKind``.
"""

from __future__ import annotations

import enum
import re
from pathlib import Path

__all__ = ["FileKind", "kind_by_content", "kind_by_name", "kind_by_word"]


class FileKind(enum.Enum):
    """The kinds of files, by the word that ``format=`` takes."""

    MATRIX_MARKET = "mtx"
    FROSTT = "tns"
    SMTX = "smtx"
    NPZ = "npz"
    BINSPARSE = "binsparse"


_TEXT_SUFFIXES = {
    ".mtx": FileKind.MATRIX_MARKET,
    ".tns": FileKind.FROSTT,
    ".smtx": FileKind.SMTX,
}
_BINARY_SUFFIXES = {
    ".npz": FileKind.NPZ,
    ".h5": FileKind.BINSPARSE,
    ".hdf5": FileKind.BINSPARSE,
}
_ZIP = b"PK\x03\x04"
_EMPTY_ZIP = b"PK\x05\x06"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_COMMAS = re.compile(rb"(?:\s*%[^\n]*\n)*\s*[0-9]+[ \t]*,[ \t]*[0-9]+[ \t]*,[ \t]*[0-9]+\s*\n")


def kind_by_word(word: str) -> FileKind:
    """Return the kind that ``format=word`` asks for; ``ValueError`` names the choices."""
    for kind in FileKind:
        if kind.value == word:
            return kind
    choices = ", ".join(repr(kind.value) for kind in FileKind)
    raise ValueError(f"format must be one of {choices}, not {word!r}")


def kind_by_name(path: Path) -> FileKind | None:
    """Return the kind that the suffix tells, else None; text may have ``.gz`` behind it.

    >>> kind_by_name(Path("a.tns.gz")), kind_by_name(Path("a.txt"))
    (<FileKind.FROSTT: 'tns'>, None)
    """
    name = path.name.lower()
    bare = name.removesuffix(".gz")
    suffix = Path(bare).suffix
    if suffix in _TEXT_SUFFIXES:
        return _TEXT_SUFFIXES[suffix]
    return _BINARY_SUFFIXES.get(suffix) if bare == name else None


def suffixes() -> str:
    """Return the suffixes that tell a kind, for messages."""
    text = [f"{suffix}[.gz]" for suffix in _TEXT_SUFFIXES]
    return ", ".join([*text, *_BINARY_SUFFIXES])


def kind_by_content(path: Path, raw: bytes) -> FileKind:
    """Return the kind that unmistakable content tells; ``ValueError`` where there is none.

    Plain columns of numbers (edge lists, triplets, FROSTT without a head) look alike and are not
    guessed.

    >>> kind_by_content(Path("a.txt"), b"%%MatrixMarket matrix array real general\\n1 1\\n2\\n")
    <FileKind.MATRIX_MARKET: 'mtx'>
    """
    if raw.startswith((_ZIP, _EMPTY_ZIP)):
        return FileKind.NPZ
    if raw.startswith(_HDF5):
        return FileKind.BINSPARSE
    start = raw[:1000].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if start.startswith(b"%%matrixmarket"):
        return FileKind.MATRIX_MARKET
    if start.startswith(b"# sparsejit shape ") or re.match(rb"sptensor\s", start):
        return FileKind.FROSTT
    if _COMMAS.match(raw):
        return FileKind.SMTX
    choices = ", ".join(repr(kind.value) for kind in FileKind)
    raise ValueError(
        f"{path}: neither name nor content tells the kind of this file; "
        f"pass format= with one of {choices}"
    )
