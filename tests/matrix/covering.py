"""Covering arrays: few rows in which every pair of choices occurs.

In: for each factor its choices, and pairs that cannot occur. Out: rows, one choice a factor. The
search is greedy and seeded, so the same table gives the same rows everywhere.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

__all__ = ["Row", "covering_rows", "uncovered_pairs"]

Row = dict[str, Any]
Pair = tuple[str, Any, str, Any]


def _pairs(row: Mapping[str, Any], names: Sequence[str]) -> list[Pair]:
    return [(one, row[one], two, row[two]) for one, two in combinations(names, 2)]


def _wanted(factors: Mapping[str, Sequence[Any]]) -> dict[Pair, None]:
    return {
        (one, first, two, second): None
        for one, two in combinations(factors, 2)
        for first in factors[one]
        for second in factors[two]
    }


def uncovered_pairs(factors: Mapping[str, Sequence[Any]], rows: Sequence[Row]) -> list[Pair]:
    """Return the pairs of choices that no row has."""
    wanted = _wanted(factors)
    for row in rows:
        for pair in _pairs(row, list(factors)):
            wanted.pop(pair, None)
    return list(wanted)


def covering_rows(
    factors: Mapping[str, Sequence[Any]],
    seed: int = 0,
    tries: int = 12,
    forbidden: Callable[[Row], bool] = lambda row: False,
) -> list[Row]:
    """Return rows in which every pair of choices occurs at least once.

    Each row starts from a pair that is still missing; of ``tries`` completions the one that covers
    most is taken. ``forbidden`` sees whole rows; a pair that only forbidden rows have stays out.
    """
    rng = random.Random(seed)
    names = list(factors)
    missing = _wanted(factors)
    rows: list[Row] = []
    while missing:
        one, first, two, second = next(iter(missing))
        found: list[tuple[int, Row]] = []
        for number in range(3 * tries):
            if number >= tries and found:
                break
            # Greedy rows first; where all of these are forbidden, any row.
            goal = missing if number < tries else {}
            row = _completed({one: first, two: second}, factors, goal, rng)
            if not forbidden(row):
                found.append((sum(pair in missing for pair in _pairs(row, names)), row))
        if not found:
            del missing[one, first, two, second]
            continue
        best = max(found, key=lambda item: item[0])[1]
        rows.append(best)
        for pair in _pairs(best, names):
            missing.pop(pair, None)
    return rows


def _completed(
    start: Row,
    factors: Mapping[str, Sequence[Any]],
    missing: Mapping[Pair, None],
    rng: random.Random,
) -> Row:
    """Return a whole row: factors in random order, each choice covering most with what is set."""
    names = list(factors)
    row = dict(start)
    order = [name for name in names if name not in row]
    rng.shuffle(order)
    for name in order:
        scores = []
        for choice in factors[name]:
            new = 0
            for other, picked in row.items():
                pair = (
                    (name, choice, other, picked)
                    if names.index(name) < names.index(other)
                    else (other, picked, name, choice)
                )
                new += pair in missing
            scores.append(new)
        best = max(scores)
        row[name] = rng.choice(
            [choice for choice, score in zip(factors[name], scores, strict=True) if score == best]
        )
    return {name: row[name] for name in names}
