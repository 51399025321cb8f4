"""What a drawn program contains, by name: so that a test can count that nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.programs.forms import FORMS, SEMIRINGS
from tests.programs.index_drawing import REDUCTIONS
from tests.programs.language import (
    Apply,
    Coord,
    Expr,
    IndexExpr,
    IndexUpdate,
    Item,
    Let,
    Load,
    Loop,
    Over,
    Program,
    Statement,
    Update,
    children,
)

__all__ = ["ALL_FEATURES", "features_of"]

_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_STRUCTURE = (
    "sparse format", "sparse of rank 3", "sparse of rank 4", "fill value", "mixed dtypes",
    "overlapping views", "object passed twice", "number", "output of rank 1", "output of rank 2",
    "output of rank 3", "runtime storage", "inline storage", "results in a dict",
    "results in a list", "packed arguments", "keyword arguments", "loop carries sparse",
    "for", "while", "cond", "view", "rebound argument", "update of a sparse argument",
    "where_stored into the argument itself", "index update of a sparse argument",
    "einsum of one", "einsum of two", "einsum of three", "einsum diagonal", "one tensor twice",
    "slice with a step", "reversed slice", "constant index", "offset index", "strided index",
    "two indices in one place", "coordinate as value", "pattern in index notation", "sum of terms",
    "scatter to rank 3", "several results",
)  # fmt: skip
ALL_FEATURES = (
    *(f"form {form.template}" for forms in FORMS.values() for form in forms),
    *(f"semiring {name}" for name in SEMIRINGS),
    *(f"over {name}" for name in dict.fromkeys(REDUCTIONS)),
    *_DTYPES,
    *_STRUCTURE,
)
"""Every feature that the programs are to have."""

_FORMS = {form.template for forms in FORMS.values() for form in forms}


def features_of(program: Program) -> set[str]:
    """Return the names of what a program contains."""
    found = {base.dtype for base in program.bases}
    found |= set(_of_arguments(program)) | set(_of_call(program))
    sparse = {
        param.name
        for param in program.params
        if param.object is not None and program.objects[param.object].format
    }
    for statement in program.statements:
        found |= set(_of_statement(statement, sparse))
    if {s.name for s in program.statements if isinstance(s, Let)} & {
        param.name for param in program.params
    }:
        found.add("rebound argument")
    return found


def _of_arguments(program: Program) -> Iterator[str]:
    ranks = {len(program.bases[o.base].shape) for o in program.objects if o.format}
    yield from (f"sparse of rank {rank}" for rank in ranks)
    if ranks:
        yield "sparse format"
    if any(program.bases[o.base].fill for o in program.objects if o.format):
        yield "fill value"
    if len({base.dtype for base in program.bases}) > 1:
        yield "mixed dtypes"
    if len({o.base for o in program.objects}) < len(program.objects):
        yield "overlapping views"
    numbers = [param.object for param in program.params if param.object is not None]
    if len(set(numbers)) < len(numbers):
        yield "object passed twice"
    if len(numbers) < len(program.params):
        yield "number"


def _of_call(program: Program) -> Iterator[str]:
    call = program.call
    yield f"{call.storage} storage"
    yield f"results in a {call.results}"
    if call.packed:
        yield "packed arguments"
    if call.keywords:
        yield "keyword arguments"
    if len(program.returns) > 1:
        yield "several results"
    for _, fmt in call.outputs:
        levels = re.findall(r"\d", fmt)
        rank = 1 if fmt == "SparseVector" or levels[:1] == ["1"] else 3 if "3" in levels else 2
        yield f"output of rank {rank}"


def _of_statement(  # noqa: C901 - one case for each kind
    statement: Statement, sparse: set[str]
) -> Iterator[str]:
    match statement:
        case Let(_, value):
            yield from _of_expr(value)
            if isinstance(value, Item):
                yield "view"
        case Update(name, key, _, value):
            yield from _of_expr(value)
            if name in sparse:
                yield "update of a sparse argument"
                if isinstance(value, Apply) and value.template.startswith("sj.where_stored"):
                    yield "where_stored into the argument itself"
            yield from _of_key(key or ())
        case IndexUpdate(name, at, _, terms, _):
            if name in sparse:
                yield "index update of a sparse argument"
            if len(at) == 3:
                yield "scatter to rank 3"
            if len(terms) > 1:
                yield "sum of terms"
            yield from _of_index_expr(Load(name, at))
            for _, term in terms:
                yield from _of_index_expr(term)
        case Loop(kind, _, inits, _, bodies, _, _):
            yield kind
            if any(name in sparse for init in inits for name in _names(init)):
                yield "loop carries sparse"
            for inner in (inner for body in bodies for inner in body):
                yield from _of_statement(inner, set())


def _names(expr: Expr) -> Iterator[str]:
    name = getattr(expr, "name", None)
    if name is not None:
        yield name
    for part in children(expr):
        yield from _names(part)  # type: ignore[arg-type]  # parts of an Expr


def _of_key(key: tuple[object, ...]) -> Iterator[str]:
    for part in key:
        match part:
            case (_, _, 2):
                yield "slice with a step"
            case (_, _, -1):
                yield "reversed slice"
            case _:
                pass


def _of_expr(expr: Expr) -> Iterator[str]:
    match expr:
        case Apply(template, args):
            if template in _FORMS:
                yield f"form {template}"
            if template.startswith("sj.einsum"):
                yield from _of_einsum(template, [str(arg) for arg in args])
        case Item(_, key):
            yield from _of_key(key)
        case _:
            pass
    for part in children(expr):
        yield from _of_expr(part)  # type: ignore[arg-type]  # parts of an Expr


def _of_einsum(template: str, names: list[str]) -> Iterator[str]:
    text = template.split("'")[1]
    terms = text.split("->")[0].split(",")
    yield f"einsum of {('one', 'two', 'three')[len(terms) - 1]}"
    if any(len(set(term)) < len(term) for term in terms):
        yield "einsum diagonal"
    if len(set(names)) < len(names):
        yield "one tensor twice"
    if "semiring" in template:
        yield f"semiring {template.split('semiring=')[1].strip(')').strip(chr(39))}"


def _of_index_expr(  # noqa: C901 - one case for each kind
    expr: IndexExpr,
) -> Iterator[str]:
    match expr:
        case Coord():
            yield "coordinate as value"
        case Load(_, at):
            for place in at:
                if not place.index:
                    yield "constant index"
                elif place.other:
                    yield "two indices in one place"
                elif place.stride > 1:
                    yield "strided index"
                elif place.offset:
                    yield "offset index"
        case Over(template, _, index, reduction):
            if index:
                yield f"over {reduction}"
            if "where_stored" in template:
                yield "pattern in index notation"
        case _:
            pass
    for part in children(expr):
        yield from _of_index_expr(part)  # type: ignore[arg-type]  # parts of an IndexExpr
