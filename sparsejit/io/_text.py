"""The text of one file: its bytes with ``\\n`` line ends, walked line by line.

What enters is a path, gzip-compressed or not; what leaves is a ``Text``, its ``Line``s that hold
data, and errors that name file and line. Readers never see a file handle.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from sparsejit._dataclasses import dataclass
from sparsejit.errors import UnsupportedError

__all__ = ["Line", "Text", "check_rank", "clip", "data_lines", "load_bytes", "load_text"]

_MOST_DIMENSIONS = 64
_GZIP_MAGIC = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Text:
    """A text file in memory; ``data`` is empty or ends with a line end.

    >>> str(Text("a.mtx", b"").error(3, "expected a number"))
    'a.mtx, line 3: expected a number'
    """

    name: str
    data: bytes = field(repr=False)

    def error(self, line: int, problem: str) -> ValueError:
        """Return the error that says what is wrong in ``line`` (counted from 1) of this file."""
        return ValueError(f"{self.name}, line {line}: {problem}")

    @property
    def last_line(self) -> int:
        """The number of the last line, 1 for an empty file."""
        return max(1, self.data.count(b"\n"))


@dataclass(frozen=True, slots=True)
class Line:
    """A line with data: its number from 1, the offset behind it, and its words."""

    number: int
    end: int
    words: list[bytes]


def clip(word: bytes) -> str:
    """Return a word of a file as it is shown in a message: printable and not too long.

    >>> clip(b"12x")
    "'12x'"
    """
    return repr(word if len(word) <= 40 else word[:37] + b"...")[1:]


def load_bytes(path: Path) -> bytes:
    """Return the content of ``path``, decompressed where it is gzip (told by its first bytes).

    Raises ``ValueError`` for a damaged gzip file, and for a name that ends in ``.gz`` over content
    that is not gzip; ``OSError`` where the file cannot be read.
    """
    raw = path.read_bytes()
    if not raw.startswith(_GZIP_MAGIC):
        if path.suffix.lower() == ".gz":
            raise ValueError(f"{path}: the name says gzip, but the content is not gzip")
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, zlib.error, gzip.BadGzipFile) as damage:
        raise ValueError(f"{path}: damaged gzip data ({damage})") from damage


def load_text(name: str, raw: bytes) -> Text:
    """Return ``raw`` as a text: all line ends become ``\\n``, a UTF-8 mark is dropped.

    Raises ``ValueError`` for a NUL byte: binary content, or text in UTF-16.

    >>> load_text("a.tns", b"1 1 2.5\\r\\n").data
    b'1 1 2.5\\n'
    """
    data = raw.removeprefix(_UTF8_MARK)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if data and not data.endswith(b"\n"):
        data += b"\n"
    text = Text(name, data)
    nul = data.find(b"\0")
    if nul >= 0:
        number = data.count(b"\n", 0, nul) + 1
        raise text.error(number, "a NUL byte; expected plain text")
    return text


def check_rank(text: Text, ndim: int) -> None:
    """Raise ``UnsupportedError`` where a file holds more dimensions than NumPy arrays can have."""
    if ndim > _MOST_DIMENSIONS:
        raise UnsupportedError(
            f"{text.name} holds a tensor of rank {ndim}",
            hint=f"NumPy arrays, and so tensors here, have at most {_MOST_DIMENSIONS} dimensions",
        )


def data_lines(text: Text, comment: bytes, start: int = 0, number: int = 1) -> Iterator[Line]:
    """Yield the lines from offset ``start`` on that are neither blank nor begin with ``comment``.

    ``number`` is the number of the line at ``start``.

    >>> [line.words for line in data_lines(Text("a", b"# x\\n\\n1 2\\n"), b"#")]
    [[b'1', b'2']]
    """
    data = text.data
    while start < len(data):
        end = data.index(b"\n", start) + 1
        words = data[start:end].split()
        if words and not words[0].startswith(comment):
            yield Line(number, end, words)
        start = end
        number += 1
