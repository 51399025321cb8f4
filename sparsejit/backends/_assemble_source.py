"""The text of ``Assemble``: one call of the support library a level, and the arrays between them.

In: the statement and names. Out: lines of Python that define its targets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from sparsejit.backends._expressions import Names, constant, typed
from sparsejit.backends._layout import Atom, Call, Node
from sparsejit.backends._spellings import constructor
from sparsejit.errors import UnsupportedError
from sparsejit.formats import Format, LevelKind
from sparsejit.ir.loops import Assemble, Memref

__all__ = ["assemble_statements"]

Emit = Callable[[str, Node], None]
"""Called with a target (``""`` for a bare call) and the value."""


def _names(*names: str) -> tuple[Node, ...]:
    return tuple(map(Atom, names))


def assemble_statements(
    stmt: Assemble, names: Names, fresh: Callable[[str], str]
) -> list[tuple[str, Node]]:
    """Return the assignments ``(target, value)`` that build the storage, in order.

    Raises ``UnsupportedError`` for targets that are not the arrays of the format.
    """
    _check(stmt)
    lines: list[tuple[str, Node]] = []

    def emit(target: str, value: Node) -> None:
        lines.append((target, value))

    base = names[stmt.targets[-1].name].removesuffix("_vals")
    slot, slots = fresh(f"{base}_slot"), fresh(f"{base}_slots")
    emit(slot, Call("zeros", (typed(stmt.count, names), Atom("int64"))))
    emit(slots, Call("int64", (Atom("1"),)))
    arrays = list(stmt.targets)
    level = 0
    while level < stmt.format.num_levels:
        level += _level(stmt, level, (slot, slots), arrays, names, fresh, emit)
    target = arrays.pop(0)
    dtype = constructor(target.dtype)
    emit(names[target.name], Call("full", (Atom(slots), constant(stmt.fill), Atom(dtype))))
    values = (slot, names[stmt.values.name], names[target.name])
    emit("", Call("assemble_values", _names(*values)))
    return lines


def _level(
    stmt: Assemble,
    number: int,
    state: tuple[str, str],
    arrays: list[Memref],
    names: Names,
    fresh: Callable[[str], str],
    emit: Emit,
) -> int:
    """Emit the level ``number``, or a whole array-of-structs tail; return how many levels."""
    slot, slots = state
    crd = names[stmt.coordinates[number].name]
    level = stmt.format.levels[number].type
    now = _names(slot, slots, crd)
    match level.kind:
        case LevelKind.DENSE | LevelKind.BATCH | LevelKind.RANGE:
            extent = typed(stmt.level_extents[number], names)
            emit(slots, Call("assemble_dense", (*now, extent)))
            return 1
        case LevelKind.COMPRESSED | LevelKind.LOOSE_COMPRESSED:
            positions = arrays.pop(0)
            loose = level.kind is LevelKind.LOOSE_COMPRESSED
            pos = fresh(f"{names[positions.name]}_dense") if loose else names[positions.name]
            dtype = Atom("int64") if loose else Atom(constructor(positions.dtype))
            emit(pos, Call("empty", (Call("int64", (Atom(f"{slots} + 1"),)), dtype)))
            builder = "assemble_nonunique" if level.nonunique else "assemble_compressed"
            if loose:
                _bounds(positions, slots, names, emit)
                made = fresh(f"{slots}_above")
                emit(made, Atom(slots))
            operands = (*now, Atom(pos))
            run = _run_before_more(stmt.format, number)
            if run > 1:
                columns = tuple(names[crd.name] for crd in stmt.coordinates[number : number + run])
                builder = "assemble_run"
                operands = (*_names(slot, slots), Call("", _names(*columns)), Atom(pos))
            emit(slots, Call(builder, operands))
            if loose:
                emit("", Call("assemble_loose", _names(made, pos, names[positions.name])))
            return _coordinates(stmt, number, state, arrays, names, emit)
        case LevelKind.SINGLETON:
            return _coordinates(stmt, number, state, arrays, names, emit)
        case LevelKind.STRUCTURED | LevelKind.PADDED:
            array = arrays.pop(0)
            size = tuple(Call("int64", (Atom(str(part)),)) for part in level.size)
            shape = Atom(f"{slots} * {level.size[0]}")
            emit(names[array.name], Call("empty", (shape, Atom(constructor(array.dtype)))))
            operands = (*now, Atom(names[array.name]), *size)
            emit(slots, Call(f"assemble_{level.kind.value}", operands))
            return 1
        case _:
            assert_never(level.kind)


def _bounds(positions: Memref, slots: str, names: Names, emit: Emit) -> None:
    shape = Atom(f"({slots}, 2)")
    emit(names[positions.name], Call("empty", (shape, Atom(constructor(positions.dtype)))))


def _coordinates(
    stmt: Assemble,
    number: int,
    state: tuple[str, str],
    arrays: list[Memref],
    names: Names,
    emit: Emit,
) -> int:
    """Emit the coordinates of one level, or of all levels that share an array of structs."""
    slot, slots = state
    array = arrays.pop(0)
    name, dtype = names[array.name], Atom(constructor(array.dtype))
    levels = _levels_in_array(stmt.format, number)
    shape = slots if levels == 1 and array.rank == 1 else f"({slots}, {levels})"
    emit(name, Call("empty", (Atom(shape), dtype)))
    for column in range(levels):
        crd = names[stmt.coordinates[number + column].name]
        target = name if array.rank == 1 else f"{name}[:, {column}]"
        emit("", Call("assemble_coordinates", _names(slot, crd, target)))
    return levels


def _levels_in_array(fmt: Format, number: int) -> int:
    """How many levels keep their coordinates in the array of level ``number``."""
    return fmt.num_levels - number if fmt.is_aos and number == fmt.coo_start else 1


def _run_before_more(fmt: Format, number: int) -> int:
    """How many levels share slots with a compressed one, if others follow them; else 1."""
    end = number + 1
    while end < fmt.num_levels and fmt.levels[end].type.kind is LevelKind.SINGLETON:
        end += 1
    return end - number if end < fmt.num_levels else 1


def _check(stmt: Assemble) -> None:
    """Refuse a list of targets that does not fit the format."""
    wanted: list[int] = []  # ranks
    number = 0
    while number < stmt.format.num_levels:
        level = stmt.format.levels[number].type
        levels = _levels_in_array(stmt.format, number)
        if level.has_positions:
            wanted.append(2 if level.kind is LevelKind.LOOSE_COMPRESSED else 1)
        if level.has_coordinates:
            wanted.append(2 if levels > 1 else 1)
        number += levels
    wanted.append(1)
    given = [memref.rank for memref in stmt.targets]
    if given != wanted:
        raise UnsupportedError(
            f"storage of ({stmt.format}) has arrays of ranks {wanted}, not {given}",
            hint="this is a bug of sparsejit; please report it with the program",
        )
