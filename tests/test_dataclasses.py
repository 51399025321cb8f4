"""Dataclasses that are quick to define do what the standard ones do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from sparsejit._dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quick:
    """A class as most of this package are."""

    a: int
    b: str = "two"
    c: list[int] = dataclasses.field(default_factory=list, compare=False)
    d: int = dataclasses.field(default=4, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    """The same, by the standard decorator."""

    a: int
    b: str = "two"
    c: list[int] = dataclasses.field(default_factory=list, compare=False)
    d: int = dataclasses.field(default=4, repr=False)


@dataclass(slots=True)
class Mutable:
    """One that changes."""

    a: int
    total: int = dataclasses.field(default=0, init=False)
    twice: int = dataclasses.field(init=False)
    seen: list[int] = dataclasses.field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.total = self.a + 1
        self.twice = 2 * self.a


@dataclass(frozen=True, slots=True, eq=False)
class Same:
    """One that is equal to itself only."""

    a: int


@dataclass(frozen=True, slots=True)
class Own:
    """One with methods of its own."""

    a: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own)

    def __repr__(self) -> str:
        return "own"


def test_it_looks_like_a_standard_one() -> None:
    given: list[tuple[Any, ...]] = [(1,), (1, "x"), (1, "x", [3], 9)]
    for arguments in given:
        quick, standard = Quick(*arguments), Standard(*arguments)
        other: object = standard
        assert repr(quick) == repr(standard).replace("Standard", "Quick")
        assert dataclasses.astuple(quick) == dataclasses.astuple(standard)
        assert hash(quick) == hash(standard)
        assert quick == Quick(*arguments)
        assert quick != other
        assert dataclasses.replace(quick, a=7).a == 7
    assert dataclasses.is_dataclass(Quick)
    assert Quick.__match_args__ == Standard.__match_args__
    assert Quick(1).c is not Quick(1).c
    assert Quick(1, c=[1]) == Quick(1, c=[2])
    assert Quick(1) != Quick(2)


def test_it_stays_as_it_is() -> None:
    quick: Any = Quick(1)
    for name in ("a", "z"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(quick, name, 2)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'a'"):
        del quick.a
    assert not hasattr(quick, "__dict__")


@pytest.mark.parametrize("arguments", [(), (1, 2, 3, 4, 5)])
def test_wrong_arguments(arguments: tuple[Any, ...]) -> None:
    made: Any = Quick
    with pytest.raises(TypeError):
        made(*arguments)


def test_it_travels() -> None:
    quick = Quick(1, c=[5])
    for found in (pickle.loads(pickle.dumps(quick)), copy.deepcopy(quick), copy.copy(quick)):
        assert found == quick
        assert found.c == [5]


def test_one_that_changes() -> None:
    one = Mutable(1)
    assert repr(one) == "Mutable(a=1, total=2, twice=2, seen=[])"
    one.a = 5
    assert one != Mutable(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_identity_and_methods_of_its_own() -> None:
    same = Same(1)
    assert same == same
    assert same != Same(1)
    assert len({same, Same(1)}) == 2
    assert Own(1) == Own(2)
    assert repr(Own(1)) == "own"
    assert hash(Own(1)) == hash((1,))
