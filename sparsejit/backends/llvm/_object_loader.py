"""Objects in memory without LLVM: so that a process which finds its kernels on disk is quick.

In: an ELF object for this processor, as ``_compiler`` makes them: code without exceptions and
thread-local variables, and absolute references. Out: the addresses of its symbols. Whatever is not
known here (another format, processor or kind of reference, memory that may not become executable)
is no error: the answer is None, and LLVM loads the object.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from sparsejit._dataclasses import dataclass

__all__ = ["LoadedObject", "load_object"]

_HEADER = struct.Struct("<16xHH20xQ10xHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8
_WRITE, _ALLOC, _EXECUTE, _THREAD_LOCAL = 1, 2, 4, 0x400
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1
_ADDRESS_64 = 1
_UNWINDING = ".eh_frame"
"""Tables for unwinding: no exception passes through this code."""


class _UnknownError(Exception):
    """The object has something that is not known here."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedObject:
    """The addresses of the symbols of an object, which is in memory as long as this is."""

    symbols: Mapping[str, int]
    memory: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int

    @property
    def is_loaded(self) -> bool:
        return bool(self.flags & _ALLOC) and self.size > 0 and self.name != _UNWINDING


def load_object(content: bytes, symbols: Mapping[str, int]) -> LoadedObject | None:
    """Load an object; ``symbols`` are addresses that it may refer to beside the C library's.

    >>> load_object(b"no object", {}) is None
    True
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    try:
        return _Loading(content, symbols).loaded()
    except (_UnknownError, struct.error, OSError, ValueError):
        return None


class _Loading:
    """The loading of one object: place its sections, find its symbols, write the references."""

    def __init__(self, content: bytes, outside: Mapping[str, int]) -> None:
        self._content = content
        self._outside = outside
        if content[:6] != b"\x7fELF\x02\x01":
            raise _UnknownError
        kind, machine, start, size, count, names = _HEADER.unpack_from(content)
        if (kind, machine, size) != (_RELOCATABLE, _X86_64, _SECTION.size):
            raise _UnknownError
        raw = [_SECTION.unpack_from(content, start + size * k) for k in range(count)]
        texts = raw[names][4]
        self._sections = [
            _Section(self._text(texts + name), kind, flags, at, length, link, info, align)
            for name, kind, flags, _, at, length, link, info, align, _ in raw
        ]

    def _text(self, start: int) -> str:
        return self._content[start : self._content.index(b"\0", start)].decode()

    def loaded(self) -> LoadedObject:
        """Return the loaded object."""
        fixed = self._placed(lambda section: not section.flags & _WRITE)
        open_ = self._placed(lambda section: bool(section.flags & _WRITE))
        addresses = {**fixed[1], **open_[1]}
        found = self._symbols(addresses)
        for section in self._sections:
            if section.kind == _RELA and section.info in addresses:
                self._relocate(section, addresses[section.info], found)
        _make_executable(fixed[0])
        named = {name: address for name, address in found if name}
        return LoadedObject(named, (fixed[0], open_[0]))

    def _placed(
        self, is_wanted: Callable[[_Section], bool]
    ) -> tuple[mmap.mmap | None, dict[int, int]]:
        """Return new memory with some of the sections, and their addresses by number."""
        offsets: dict[int, int] = {}
        end = 0
        for number, section in enumerate(self._sections):
            if section.is_loaded and is_wanted(section):
                if section.kind not in (_PROGBITS, _NOBITS) or section.flags & _THREAD_LOCAL:
                    raise _UnknownError
                align = max(section.align, 1)
                offsets[number] = end = -(-end // align) * align
                end += section.size
        if not offsets:
            return None, {}
        memory = mmap.mmap(-1, end, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        base = _address(memory)
        for number, offset in offsets.items():
            section = self._sections[number]
            if section.kind == _PROGBITS:
                part = self._content[section.offset : section.offset + section.size]
                memory[offset : offset + section.size] = part
        return memory, {number: base + offset for number, offset in offsets.items()}

    def _symbols(self, addresses: Mapping[int, int]) -> list[tuple[str, int]]:
        """Return name and address of each symbol, in the order of the table."""
        (table,) = (section for section in self._sections if section.kind == _SYMTAB)
        texts = self._sections[table.link].offset
        found: list[tuple[str, int]] = []
        for at in range(table.offset, table.offset + table.size, _SYMBOL.size):
            name, _, _, section, value, _ = _SYMBOL.unpack_from(self._content, at)
            text = self._text(texts + name)
            if section == _UNDEFINED:
                found.append((text, self._outside_address(text) if text else 0))
            elif section == _ABSOLUTE:
                found.append(("", 0))
            else:
                found.append((text, addresses[section] + value if section in addresses else 0))
        return found

    def _outside_address(self, name: str) -> int:
        address = self._outside.get(name) or _library_address(name)
        if not address:
            raise _UnknownError
        return address

    def _relocate(self, section: _Section, base: int, symbols: list[tuple[str, int]]) -> None:
        for at in range(section.offset, section.offset + section.size, _RELOCATION.size):
            offset, info, addend = _RELOCATION.unpack_from(self._content, at)
            address = symbols[info >> 32][1]
            if info & 0xFFFFFFFF != _ADDRESS_64 or not address:
                raise _UnknownError
            ctypes.c_uint64.from_address(base + offset).value = address + addend


def _address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _make_executable(memory: mmap.mmap | None) -> None:
    if memory is None:
        raise _UnknownError
    if _libraries()[0].mprotect(
        ctypes.c_void_p(_address(memory)),
        ctypes.c_size_t(len(memory)),
        mmap.PROT_READ | mmap.PROT_EXEC,
    ):
        raise _UnknownError


@cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    """Return what is loaded in the process, and the library of mathematics."""
    return ctypes.CDLL(None), ctypes.CDLL("libm.so.6")


@cache
def _library_address(name: str) -> int:
    for library in _libraries():
        function = getattr(library, name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    return 0
