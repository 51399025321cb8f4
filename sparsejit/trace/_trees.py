"""Nested containers of arrays: what a loop carries and what a branch returns.

In: tuples, lists, dicts and named tuples of arrays and scalars. Out: the leaves in order, or the
same containers around other leaves. Lists and tuples count as one kind of container.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["leaves", "rebuilt", "structure"]


def _sorted(tree: dict[Any, Any]) -> list[tuple[Any, Any]]:
    return sorted(tree.items(), key=lambda item: repr(item[0]))


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a tree, those of a dict by its keys; None has none.

    >>> leaves((1, [2, {"a": 3}], None))
    [1, 2, 3]
    """
    match tree:
        case None:
            return []
        case tuple() | list():
            return [leaf for item in tree for leaf in leaves(item)]
        case dict():
            return [leaf for _, item in _sorted(tree) for leaf in leaves(item)]
        case _:
            return [tree]


def structure(tree: Any) -> str:
    """Return the containers of a tree as text, ``*`` for each leaf.

    >>> structure((1, [2, {"a": 3}]))
    "(*, (*, {'a': *}))"
    """
    match tree:
        case None:
            return "None"
        case tuple() | list():
            return f"({', '.join(map(structure, tree))})"
        case dict():
            items = (f"{key!r}: {structure(item)}" for key, item in _sorted(tree))
            return f"{{{', '.join(items)}}}"
        case _:
            return "*"


def rebuilt(tree: Any, new: Sequence[Any]) -> Any:
    """Return the containers of ``tree`` around other leaves.

    >>> rebuilt((1, [2]), "xy")
    ('x', ['y'])
    """
    return _rebuilt(tree, iter(new))


def _rebuilt(tree: Any, new: Iterator[Any]) -> Any:
    match tree:
        case None:
            return None
        case tuple() if hasattr(tree, "_fields"):
            return type(tree)(*(_rebuilt(item, new) for item in tree))
        case tuple() | list():
            return type(tree)([_rebuilt(item, new) for item in tree])
        case dict():
            made = {key: _rebuilt(item, new) for key, item in _sorted(tree)}
            return {key: made[key] for key in tree}
        case _:
            return next(new)
