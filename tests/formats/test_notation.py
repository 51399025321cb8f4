"""The format notation: what is accepted, and the exact message for each thing that is not."""

import pytest

from sparsejit.affine import Add, Constant, Dim, FloorDiv, Mod, Mul
from sparsejit.formats import CSR, Format, Level, LevelKind, LevelType


def rejection(text: object, **widths: int) -> str:
    with pytest.raises(ValueError) as caught:
        Format(text, **widths)  # type: ignore[arg-type]  # wrong types are among the rejects
    return str(caught.value)


EXAMPLE = "\n  write for example '(i, j) -> (i : dense, j : compressed)'"


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("(i) -> (i : dense)", Level(Dim(0), LevelType(LevelKind.DENSE))),
        ("(i) -> (i : batch)", Level(Dim(0), LevelType(LevelKind.BATCH))),
        ("(i) -> (i : compressed)", Level(Dim(0), LevelType(LevelKind.COMPRESSED))),
        (
            "(i) -> (i : loose_compressed)",
            Level(Dim(0), LevelType(LevelKind.LOOSE_COMPRESSED)),
        ),
        ("(i) -> (i : padded[3])", Level(Dim(0), LevelType(LevelKind.PADDED, size=(3,)))),
        (
            "(i) -> (i : compressed(nonunique, nonordered))",
            Level(Dim(0), LevelType(LevelKind.COMPRESSED, nonunique=True, nonordered=True)),
        ),
        (
            "(i) -> (i : compressed(nonordered,nonunique))",
            Level(Dim(0), LevelType(LevelKind.COMPRESSED, nonunique=True, nonordered=True)),
        ),
        ("  ( i )->(i:dense)  ", Level(Dim(0), LevelType(LevelKind.DENSE))),
        ("(long_name_1) -> (long_name_1 : dense)", Level(Dim(0), LevelType(LevelKind.DENSE))),
        ("(i) -> ((i) : dense)", Level(Dim(0), LevelType(LevelKind.DENSE))),
        ("(i) -> (i floordiv 1 : dense)", Level(Dim(0), LevelType(LevelKind.DENSE))),
        ("(i) -> (1 * i : dense)", Level(Dim(0), LevelType(LevelKind.DENSE))),
        ("(i) -> (i + 0 : dense)", Level(Dim(0), LevelType(LevelKind.DENSE))),
    ],
)
def test_one_level(text: str, level: Level) -> None:
    assert Format(text).levels == (level,)


def test_expressions_of_levels() -> None:
    blocks = Format("(i) -> (i floordiv 2 : compressed, i mod 2 : structured[1, 2])")
    assert [level.expr for level in blocks.levels] == [FloorDiv(Dim(0), 2), Mod(Dim(0), 2)]
    assert blocks.levels[1].type == LevelType(LevelKind.STRUCTURED, size=(1, 2))
    diagonals = Format("(i, j) -> (j - i : compressed, j : range)")
    assert diagonals.levels[0].expr == Add(Dim(1), Mul(Constant(-1), Dim(0)))
    assert diagonals.levels[1].type == LevelType(LevelKind.RANGE)


def test_soa_belongs_to_singletons() -> None:
    soa = Format("(i, j) -> (i : compressed(nonunique), j : singleton(soa))")
    assert soa.levels[1].type == LevelType(LevelKind.SINGLETON, soa=True)
    assert soa != Format("(i, j) -> (i : compressed(nonunique), j : singleton)")


def test_rank_zero() -> None:
    scalar = Format("() -> ()")
    assert (scalar.ndim, scalar.levels, scalar.is_dense) == (0, (), True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected '(', found the end at column 1 of ''"),
        ("i -> (i : dense)", "expected '(', found 'i' at column 1 of 'i -> (i : dense)'"),
        ("(i, i) -> (i : dense)", "'i' is not a new dimension name at column 6 of "
         "'(i, i) -> (i : dense)'"),
        ("(2) -> (2 : dense)", "'2' is not a new dimension name at column 3 of "
         "'(2) -> (2 : dense)'"),
        ("(mod) -> (mod : dense)", "'mod' is not a new dimension name at column 5 of "
         "'(mod) -> (mod : dense)'"),
        ("(i j) -> (i : dense)", "expected ',', found 'j' at column 4 of '(i j) -> (i : dense)'"),
        ("(i) (i : dense)", "expected '->', found '(' at column 5 of '(i) (i : dense)'"),
        ("(i) -> (i dense)", "expected ':', found 'dense' at column 11 of '(i) -> (i dense)'"),
        ("(i) -> (i : dense", "expected ',', found the end at column 18 of '(i) -> (i : dense'"),
        ("(i) -> (i : dense) x", "unexpected 'x' at column 20 of '(i) -> (i : dense) x'"),
        ("(i) -> (j : dense)", "unknown dimension 'j' at column 10 of '(i) -> (j : dense)'"),
        ("(i) -> (-i : dense)", "unknown dimension '-' at column 10 of '(i) -> (-i : dense)'"),
        ("(i) -> (i : sparse)", "unknown level type 'sparse'; one of dense, batch, compressed, "
         "loose_compressed, singleton, structured, range, padded at column 19 of "
         "'(i) -> (i : sparse)'"),
        ("(i) -> (i : Dense)", "unknown level type 'Dense'; one of dense, batch, compressed, "
         "loose_compressed, singleton, structured, range, padded at column 18 of "
         "'(i) -> (i : Dense)'"),
        ("(i) -> (i : compressed(sorted))", "unknown property 'sorted'; nonunique, nonordered or "
         "soa at column 30 of '(i) -> (i : compressed(sorted))'"),
        ("(i) -> (i : compressed())", "unknown property ')'; nonunique, nonordered or soa at "
         "column 25 of '(i) -> (i : compressed())'"),
        ("(i) -> (i : compressed(nonunique, nonunique))", "property 'nonunique' is given twice at "
         "column 44 of '(i) -> (i : compressed(nonunique, nonunique))'"),
        ("(i) -> (i floordiv 0 : dense)", "floordiv needs a positive number, found '0' at column "
         "21 of '(i) -> (i floordiv 0 : dense)'"),
        ("(i) -> (i mod j : dense)", "mod needs a positive number, found 'j' at column 16 of "
         "'(i) -> (i mod j : dense)'"),
        ("(i) -> (i mod ² : dense)", "mod needs a positive number, found '²' at column 16 of "
         "'(i) -> (i mod ² : dense)'"),
        ("(i) -> (i mod 99999999999999999999 : dense)", "mod needs a positive number, found "
         "'99999999999999999999' at column 35 of '(i) -> (i mod 99999999999999999999 : dense)'"),
        ("(i) -> (i : padded)", "expected '[', found ')' at column 19 of '(i) -> (i : padded)'"),
        ("(i) -> (i : padded[0])", "padded needs positive sizes, found '0' at column 21 of "
         "'(i) -> (i : padded[0])'"),
        ("(i) -> (i : structured[2])", "expected ',', found ']' at column 25 of "
         "'(i) -> (i : structured[2])'"),
        ("(i) -> (i : dense[2])", "expected ',', found '[' at column 18 of "
         "'(i) -> (i : dense[2])'"),
    ],
)  # fmt: skip
def test_text_that_is_no_format(text: str, message: str) -> None:
    assert rejection(text) == f"not a format: {message}{EXAMPLE}"


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    text = "(i) -> (" + "(" * 5000 + "i" + ")" * 5000 + " : dense)"
    assert rejection(text).startswith("not a format: more than 50 nested parentheses")


def test_a_format_is_text() -> None:
    assert rejection(7) == "a format is written as text, not 7"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(i, j) -> (i : dense)", "the levels of ((d0, d1) -> (d0 : dense)) do not determine "
         "dimension d1"),
        ("(i) -> (i floordiv 2 : dense)", "the levels of ((d0) -> (d0 floordiv 2 : dense)) do not "
         "determine dimension d0"),
        ("(i) -> (i floordiv 2 : dense, i mod 3 : dense)", "the levels of ((d0) -> "
         "(d0 floordiv 2 : dense, d0 mod 3 : dense)) do not determine dimension d0"),
        ("(i) -> (i : dense, i : dense)", "the levels of ((d0) -> (d0 : dense, d0 : dense)) "
         "determine a dimension twice"),
        ("(i) -> (i : dense, i floordiv 2 : dense, i mod 2 : dense)", "the levels of ((d0) -> "
         "(d0 : dense, d0 floordiv 2 : dense, d0 mod 2 : dense)) determine a dimension twice"),
        ("(i, j) -> (i : dense, j : dense, j - i : compressed)", "the levels of ((d0, d1) -> "
         "(d0 : dense, d1 : dense, d1 - d0 : compressed)) determine a dimension twice"),
        ("(i, j) -> (i + j : compressed, j : dense)", "level 0 of ((d0, d1) -> (d0 + d1 : "
         "compressed, d1 : dense)): a level stores d, d floordiv c, d mod c or d - e, not d0 + d1"),
        ("(i) -> (2 * i : dense)", "level 0 of ((d0) -> (2 * d0 : dense)): a level stores d, "
         "d floordiv c, d mod c or d - e, not 2 * d0"),
        ("(i) -> (i floordiv 2 floordiv 2 : dense)", "level 0 of ((d0) -> ((d0 floordiv 2) "
         "floordiv 2 : dense)): a level stores d, d floordiv c, d mod c or d - e, not "
         "(d0 floordiv 2) floordiv 2"),
        ("(i) -> (1 : dense, i : dense)", "level 0 of ((d0) -> (1 : dense, d0 : dense)): a level "
         "stores d, d floordiv c, d mod c or d - e, not 1"),
        ("(i) -> (i : singleton)", "level 0 of ((d0) -> (d0 : singleton)): a singleton level "
         "follows a compressed or singleton level"),
        ("(i, j) -> (i : dense, j : singleton)", "level 1 of ((d0, d1) -> (d0 : dense, d1 : "
         "singleton)): a singleton level follows a compressed or singleton level"),
        ("(i, j) -> (i : compressed, j : singleton)", "level 1 of ((d0, d1) -> (d0 : compressed, "
         "d1 : singleton)): the level before a singleton must be nonunique"),
        ("(i, j, k) -> (i : compressed(nonunique), j : singleton(nonunique, soa), k : singleton)",
         "level 2 of ((d0, d1, d2) -> (d0 : compressed(nonunique), d1 : singleton(nonunique, soa), "
         "d2 : singleton)): all singleton levels are soa, or none is"),
        ("(i) -> (i : compressed(soa))", "level 0 of ((d0) -> (d0 : compressed(soa))): only a "
         "singleton level can be soa"),
        ("(i, j) -> (i : dense, j : batch)", "level 1 of ((d0, d1) -> (d0 : dense, d1 : batch)): "
         "batch levels come first"),
        ("(i) -> (i floordiv 2 : batch, i mod 2 : dense)", "level 0 of ((d0) -> (d0 floordiv 2 : "
         "batch, d0 mod 2 : dense)): a batch level stores a dimension of its own"),
        ("(i) -> (i : structured[2, 4])", "level 0 of ((d0) -> (d0 : structured[2, 4])): "
         "structured[2, 4] needs an expression 'd mod 4', n <= m"),
        ("(i) -> (i floordiv 4 : dense, i mod 4 : structured[5, 4])", "level 1 of ((d0) -> "
         "(d0 floordiv 4 : dense, d0 mod 4 : structured[5, 4])): structured[5, 4] needs an "
         "expression 'd mod 4', n <= m"),
        ("(i) -> (i : range)", "level 0 of ((d0) -> (d0 : range)): a range level follows a "
         "diagonal level such as 'j - i'"),
        ("(i, j, k) -> (j - i : compressed, k : range, j : dense)", "level 1 of ((d0, d1, d2) -> "
         "(d1 - d0 : compressed, d2 : range, d1 : dense)): a range level follows a diagonal level "
         "such as 'j - i'"),
        ("(i, j) -> (j - i : dense, j : range)", "level 0 of ((d0, d1) -> (d1 - d0 : dense, "
         "d1 : range)): a diagonal level such as 'j - i' is compressed"),
        ("(i, j) -> (j - i : padded[3], j : range)", "level 0 of ((d0, d1) -> (d1 - d0 : "
         "padded[3], d1 : range)): a diagonal level such as 'j - i' is compressed"),
        ("(i) -> (i : dense(nonunique))", "level 0 of ((d0) -> (d0 : dense(nonunique))): a dense "
         "level is always unique and ordered"),
        ("(i) -> (i : batch(nonordered))", "level 0 of ((d0) -> (d0 : batch(nonordered))): a "
         "batch level is always unique and ordered"),
    ],
)  # fmt: skip
def test_levels_that_store_no_tensor(text: str, message: str) -> None:
    assert rejection(text) == message


@pytest.mark.parametrize("width", [1, 7, 24, 128, -8, True])
def test_widths(width: int) -> None:
    text = "(i) -> (i : compressed)"
    assert rejection(text, pos_width=width) == (
        f"pos_width must be one of (0, 8, 16, 32, 64), not {width}"
    )
    assert rejection(text, crd_width=width) == (
        f"crd_width must be one of (0, 8, 16, 32, 64), not {width}"
    )


def test_widths_are_part_of_the_format() -> None:
    narrow = Format("(i, j) -> (i : dense, j : compressed)", pos_width=32, crd_width=8)
    assert (narrow.pos_width, narrow.crd_width) == (32, 8)
    assert narrow != CSR
    assert narrow.with_widths(0, 0) == CSR
    assert repr(narrow) == 'Format("(d0, d1) -> (d0 : dense, d1 : compressed)", 32, 8)'
