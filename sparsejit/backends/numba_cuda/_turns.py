"""Sequential loops that the lanes of a warp share, with the result of their passes in order.

In: a loop like the one that scatters a row into a workspace ::

    for p { let j = crd[p]
            if seen[j] == now { sums[j] += x } else { seen[j] = now; sums[j] = x
                                                      met[number] = j; number = number + 1 } }

Out: ``InTurns``, by which 32 passes run at once, a lane each. Three things could go wrong.

*Two lanes change one element.* Every element that passes store into is picked by the same index
expressions, the *keys*, that are known before anything is stored. Lanes with equal keys take turns,
the lower one first, as the passes do; lanes of one turn have different keys and so touch different
elements. Where the keys are the loop's own variable there is one turn.

*A lane reads before another has stored, or stores before another has read.* Behind each turn the
lanes wait for each other, which orders their memory; so do they around the loop if its arrays are
used elsewhere (``Lowered.must_wait``). A turn is chosen by all lanes together, so all come there.

*Two lanes append at one place.* A variable may only be counted up by one, at one statement, and be
used only as the place of stores in front of it (or for the largest number that it has). A lane
keeps what it appends until all turns are over. Then the lanes vote: each stores behind as many
places as there are lower lanes that append, where the passes in order would. Nothing else in the
loop uses these arrays.

So every sum has its order, and the result is that of one thread, whatever else is promised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparsejit._dataclasses import dataclass
from sparsejit.backends.numba_cuda._memory import Place
from sparsejit.ir.loop_uses import is_pure, loaded, variables
from sparsejit.ir.loop_walk import all_expressions, all_statements, blocks, expressions
from sparsejit.ir.loop_writing import int_, plus
from sparsejit.ir.loops import (
    Assign,
    Binary,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    Memref,
    Search,
    Stmt,
    Store,
    Var,
)
from sparsejit.ir.ops import BinaryOp

__all__ = ["Counter", "InTurns", "in_turns"]

_FEW_PASSES = 8
"""With fewer passes than that, votes cost more than a lane alone."""


@dataclass(frozen=True, slots=True)
class Counter:
    """``step`` counts ``var`` up, behind ``stores`` at the place that it says.

    ``peaks`` remember how high it has come: each is ``peak = max(peak, var + 1)``.
    """

    step: Assign
    stores: tuple[Store, ...]
    peaks: tuple[Assign, ...]

    @property
    def var(self) -> Var:
        """What is counted up."""
        return self.step.var

    @property
    def changed(self) -> tuple[Var, ...]:
        """The variables that are other ones behind the loop."""
        return self.var, *(peak.var for peak in self.peaks)

    @property
    def uses(self) -> Mapping[Var, int]:
        """How often these variables may stand in expressions: only in what is told here."""
        each = {self.var: 1 + len(self.stores) + len(self.peaks)}
        return each | {peak.var: 1 for peak in self.peaks}


@dataclass(frozen=True, slots=True)
class InTurns:
    """A loop that lanes share: ``ready`` is the front of its body, which the ``keys`` need.

    Without keys all passes run in one turn.
    """

    loop: For
    ready: tuple[Let, ...]
    keys: tuple[Expr, ...]
    body: tuple[Stmt, ...]
    counters: tuple[Counter, ...]


def in_turns(loop: For, places: Mapping[str, Place], atomics: frozenset[str]) -> InTurns | None:
    """Return how lanes share a sequential loop, None where its passes need more than turns.

    ``places`` says which memory a memref has; ``atomics`` are updated by single steps.
    """
    inside = list(all_statements(loop.body))
    if not all(isinstance(stmt, Let | Assign | Store | If) for stmt in inside) or _is_short(loop):
        return None
    own = {loop.var.name, *(stmt.var.name for stmt in inside if isinstance(stmt, Let))}
    counters = _counters(loop, own)
    if counters is None:
        return None
    appended = {id(store) for counter in counters for store in counter.stores}
    stored = [stmt for stmt in inside if isinstance(stmt, Store) and id(stmt) not in appended]
    changed = [s.memref for s in stored if s.reduce is None or s.memref.name not in atomics]
    roots = {places[memref.name].pointer.name for memref in changed}
    if not _append_alone(counters, inside, places):
        return None
    ready = _ready(loop, roots, places)
    known = {loop.var.name, *(let.var.name for let in ready)}
    keys = _keys(inside, own, roots, places)
    if keys is None or any(variables(key).keys() & own - known for key in keys):
        return None
    if any(_is_distinct(key, loop.var, own) for key in keys):
        keys = ()
    front = ready if keys else ()
    return InTurns(loop, front, keys, loop.body[len(front) :], counters)


def _is_short(loop: For) -> bool:
    match loop.lower, loop.upper:
        case Lit(lower), Lit(upper):
            return int(upper.value.real) - int(lower.value.real) < _FEW_PASSES
        case _:
            return False


# ---------------------------------------------------------------- counters


def _counters(loop: For, own: set[str]) -> tuple[Counter, ...] | None:
    """What the loop changes of the variables around it, None where it does more than to count."""
    found: list[Counter] = []
    assigned: list[Var] = []
    for block in _blocks((loop,)):
        for place, stmt in enumerate(block):
            if not isinstance(stmt, Assign) or stmt.var.name in own:
                continue
            assigned.append(stmt.var)
            if stmt.value == plus(stmt.var, int_(1)):
                found.append(_counter(stmt, block[:place]))
    changed = [var for counter in found for var in counter.changed]
    if sorted(map(repr, changed)) != sorted(map(repr, set(assigned))):
        return None  # a variable that is more than counted, or by more than one statement
    parts = [
        part
        for stmt in all_statements(loop.body)
        for outer in expressions(stmt)
        for part in all_expressions(outer)
    ]
    if any(parts.count(var) != uses for counter in found for var, uses in counter.uses.items()):
        return None
    return tuple(found)


def _counter(step: Assign, before: Sequence[Stmt]) -> Counter:
    """What stands in front of a step in its block and knows the number that it counts up."""
    var, after = step.var, step.value
    stores, peaks = list[Store](), list[Assign]()
    for stmt in before:
        match stmt:
            case Store(_, indices, _, None) if indices == (var,):
                stores.append(stmt)
            case Assign(peak, Binary(BinaryOp.MAX, lhs, rhs)) if (lhs, rhs) == (peak, after):
                peaks.append(stmt)
            case _:
                pass
    return Counter(step, tuple(stores), tuple(peaks))


def _blocks(body: Sequence[Stmt]) -> list[tuple[Stmt, ...]]:
    return [block for stmt in all_statements(body) for block in blocks(stmt)]


def _append_alone(
    counters: Sequence[Counter], inside: Sequence[Stmt], places: Mapping[str, Place]
) -> bool:
    """Whether no other statement touches an array that is appended to."""
    touched = [places[memref.name].pointer.name for memref, _ in _uses(inside)]
    appended = [store.memref.name for counter in counters for store in counter.stores]
    return all(touched.count(places[name].pointer.name) == 1 for name in appended)


# ---------------------------------------------------------------- keys


def _ready(loop: For, roots: set[str], places: Mapping[str, Place]) -> tuple[Let, ...]:
    """The constants at the front of the body that read nothing of what passes change."""
    found: list[Let] = []
    for stmt in loop.body:
        if not isinstance(stmt, Let) or stmt.mutable:
            break
        if {places[name].pointer.name for name in loaded(stmt.value)} & roots:
            break
        found.append(stmt)
    return tuple(found)


def _keys(
    inside: Sequence[Stmt], own: set[str], roots: set[str], places: Mapping[str, Place]
) -> tuple[Expr, ...] | None:
    """The indices that all uses of changed arrays have alike, but for those that never change.

    None where the uses differ, and where all passes touch one and the same element.
    """
    found: set[tuple[Expr, ...]] = set()
    names: dict[str, str] = {}
    for memref, indices in _uses(inside):
        root = places[memref.name].pointer.name
        if root not in roots:
            continue
        if indices is None or names.setdefault(root, memref.name) != memref.name:
            return None
        varying = tuple(index for index in indices if _varies(index, own, roots, places))
        found.add(varying)
    if not found:
        return ()
    if len(found) > 1:
        return None
    (keys,) = found
    reads = {places[name].pointer.name for key in keys for name in loaded(key)}
    return None if not keys or reads & roots else keys


def _uses(inside: Sequence[Stmt]) -> list[tuple[Memref, tuple[Expr, ...] | None]]:
    """Every use of an element: the array and the indices; None for a search."""
    found: list[tuple[Memref, tuple[Expr, ...] | None]] = []
    for stmt in inside:
        if isinstance(stmt, Store):
            found.append((stmt.memref, stmt.indices))
        for outer in expressions(stmt):
            for part in all_expressions(outer):
                match part:
                    case Load(memref, indices):
                        found.append((memref, indices))
                    case Search(memref):
                        found.append((memref, None))
                    case _:
                        pass
    return found


def _varies(index: Expr, own: set[str], roots: set[str], places: Mapping[str, Place]) -> bool:
    reads = {places[name].pointer.name for name in loaded(index)}
    return bool(variables(index).keys() & own) or bool(reads & roots)


def _is_distinct(index: Expr, var: Var, own: set[str]) -> bool:
    """Whether an index is another one in each pass: the loop's variable, moved by a constant."""
    match index:
        case Var():
            return index == var
        case Binary(BinaryOp.ADD | BinaryOp.SUB, lhs, rhs):
            for moved, by in ((lhs, rhs), (rhs, lhs)):
                fixed = is_pure(by) and not variables(by).keys() & own
                if fixed and _is_distinct(moved, var, own):
                    return True
            return False
        case _:
            return False
