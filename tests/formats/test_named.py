"""The named formats are spellings of texts; identity is structural."""

import pytest

from sparsejit.formats import (
    BSR,
    COO,
    CSC,
    CSF,
    CSR,
    DCSC,
    DCSR,
    DIA,
    ELL,
    NV24,
    Batched,
    Dense,
    Format,
    SparseVector,
)

TEXTS = [
    (Dense(0), "() -> ()"),
    (Dense(1), "(i) -> (i : dense)"),
    (Dense(3), "(i, j, k) -> (i : dense, j : dense, k : dense)"),
    (CSR, "(i, j) -> (i : dense, j : compressed)"),
    (CSC, "(i, j) -> (j : dense, i : compressed)"),
    (DCSR, "(i, j) -> (i : compressed, j : compressed)"),
    (DCSC, "(i, j) -> (j : compressed, i : compressed)"),
    (COO(1), "(i) -> (i : compressed)"),
    (COO(2), "(i, j) -> (i : compressed(nonunique), j : singleton(soa))"),
    (
        COO(3),
        "(i, j, k) -> (i : compressed(nonunique), j : singleton(nonunique, soa), "
        "k : singleton(soa))",
    ),
    (CSF(1), "(i) -> (i : compressed)"),
    (CSF(3), "(i, j, k) -> (i : compressed, j : compressed, k : compressed)"),
    (
        BSR(2, 3),
        "(i, j) -> (i floordiv 2 : dense, j floordiv 3 : compressed, i mod 2 : dense, "
        "j mod 3 : dense)",
    ),
    (
        BSR(1, 3),
        "(i, j) -> (i : dense, j floordiv 3 : compressed, i mod 1 : dense, j mod 3 : dense)",
    ),
    (DIA, "(i, j) -> (j - i : compressed, j : range)"),
    (ELL(4), "(i, j) -> (i : dense, j : padded[4])"),
    (NV24, "(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4])"),
    (SparseVector, "(i) -> (i : compressed)"),
    (Batched(CSR), "(b, i, j) -> (b : batch, i : dense, j : compressed)"),
    (Batched(SparseVector, 2), "(a, b, i) -> (a : batch, b : batch, i : compressed)"),
    (Batched(DIA), "(b, i, j) -> (b : batch, j - i : compressed, j : range)"),
]


@pytest.mark.parametrize(("named", "text"), TEXTS)
def test_name_and_text_are_one_format(named: Format, text: str) -> None:
    written = Format(text)
    assert named == written
    assert hash(named) == hash(written)
    assert eval(repr(named), {"Format": Format}) == named


def test_names_of_dimensions_do_not_matter_but_their_order_does() -> None:
    assert Format("(row, col) -> (row : dense, col : compressed)") == CSR
    assert Format("(col, row) -> (row : dense, col : compressed)") == CSC
    assert CSR != CSC


def test_batched_keeps_widths() -> None:
    assert Batched(CSR.with_widths(32, 16)) == Batched(CSR).with_widths(32, 16)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dense(-1), "Dense(n) needs an integer of at least 0, not -1"),
        (lambda: COO(0), "COO(n) needs an integer of at least 1, not 0"),
        (lambda: COO(True), "COO(n) needs an integer of at least 1, not True"),
        (lambda: CSF(0), "CSF(n) needs an integer of at least 1, not 0"),
        (lambda: BSR(0, 2), "BSR(r, c) needs an integer of at least 1, not 0"),
        (lambda: BSR(2, -3), "BSR(r, c) needs an integer of at least 1, not -3"),
        (lambda: ELL(0), "ELL(k) needs an integer of at least 1, not 0"),
        (lambda: Batched(CSR, 0), "Batched(fmt, n) needs an integer of at least 1, not 0"),
    ],
)
def test_wrong_sizes(make: object, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        make()  # type: ignore[operator]  # the table holds functions of no arguments
    assert str(caught.value) == message
