"""Where a user function is written: its syntax tree.

In: a plain Python function (``def`` or ``lambda``). Out: its node in the tree of the file that it
comes from. A lambda is found by the columns that its instructions carry, so several on one line are
told apart; the node is compiled again and compared, so that a file edited meanwhile is noticed.
"""

from __future__ import annotations

import ast
import dis
import linecache
import types
from collections.abc import Iterator
from functools import lru_cache

from sparsejit.errors import Location, UnsupportedError

__all__ = ["FunctionNode", "UnreadableError", "location_of", "node_of"]

FunctionNode = ast.FunctionDef | ast.Lambda

_UNPLACED = frozenset({"RESUME", "COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR", "NOP"})
"""Instructions that stand for no text of their own."""


class UnreadableError(UnsupportedError):
    """A user function has no scalar expression; Numba may compile it all the same."""


def location_of(fn: types.FunctionType, node: ast.AST | None = None) -> Location:
    """Return the place of a node of ``fn``, by default of its definition."""
    code = fn.__code__
    line = getattr(node, "lineno", code.co_firstlineno)
    name = "" if code.co_name == "<lambda>" else code.co_name
    return Location(code.co_filename, line, name)


def node_of(fn: types.FunctionType) -> FunctionNode:
    """Return the syntax tree of a function.

    Raises ``UnreadableError`` where the source is not at hand, or is not what runs.
    """
    code = fn.__code__
    text = "".join(linecache.getlines(code.co_filename, fn.__globals__))
    if not text:
        raise _unreadable(fn, "its source is not at hand: it was made by eval, exec or a prompt")
    try:
        tree = _parsed(text)
    except SyntaxError:
        raise _unreadable(fn, "its file is not Python any more") from None
    found = _definition(tree, fn) if code.co_name != "<lambda>" else _lambda(tree, code)
    if found is None:
        raise _unreadable(fn, "it is not found in its source")
    if not _is_same(found, code):
        raise _unreadable(fn, "its source has changed since it was loaded")
    return found


def _unreadable(fn: types.FunctionType, reason: str) -> UnreadableError:
    return UnreadableError(
        f"the user function {fn.__name__} cannot be read",
        hint="define it with def or lambda in a file",
        reasons=(reason,),
        location=location_of(fn),
    )


@lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _definition(tree: ast.Module, fn: types.FunctionType) -> FunctionNode | None:
    code = fn.__code__
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    return None


def _lambda(tree: ast.Module, code: types.CodeType) -> FunctionNode | None:
    """Return the lambda around most of the instructions; the innermost of equals."""
    places = list(_places(code))
    names = code.co_varnames[: code.co_argcount]
    best: tuple[int, tuple[int, int], ast.Lambda] | None = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Lambda) or tuple(a.arg for a in _arguments(node)) != names:
            continue
        start = (node.body.lineno, node.body.col_offset)
        end = (node.body.end_lineno or 0, node.body.end_col_offset or 0)
        inside = sum(start <= first and last <= end for first, last in places)
        if inside and (best is None or (inside, start) > best[:2]):
            best = (inside, start, node)
    return None if best is None else best[2]


def _arguments(node: FunctionNode) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args]


def _places(code: types.CodeType) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    for instruction in dis.get_instructions(code):
        place = instruction.positions
        if instruction.opname in _UNPLACED or place is None:
            continue
        match place:
            case (int() as line, int() as end_line, int() as column, int() as end_column):
                yield (line, column), (end_line, end_column)
            case _:
                pass


def _is_same(node: FunctionNode, code: types.CodeType) -> bool:
    """Whether a node reads the names and constants that the code reads."""
    if isinstance(node, ast.Lambda):
        module = compile(ast.Expression(node), code.co_filename, "eval", dont_inherit=True)
    else:
        bare = ast.FunctionDef(**{**dict(ast.iter_fields(node)), "decorator_list": []})
        bare = ast.copy_location(bare, node)
        body = ast.Module([bare], [])
        module = compile(body, code.co_filename, "exec", dont_inherit=True)
    inner = [c for c in module.co_consts if isinstance(c, types.CodeType)]
    return any(_reads(one) == _reads(code) for one in inner)


def _reads(code: types.CodeType) -> tuple[object, ...]:
    names = {*code.co_names, *code.co_freevars}
    constants = {repr(c) for c in code.co_consts if not isinstance(c, types.CodeType)}
    return code.co_varnames, names, constants
