"""Writes the two data files of the examples, the same bytes on every machine.

`data/matrix.mtx` is a 600 x 600 general real matrix (Matrix Market), `data/tensor.tns` a
40 x 30 x 25 tensor (FROSTT: 1-based coordinates, then the value). Run it only to change them.
"""

import random
from pathlib import Path

DATA = Path(__file__).resolve().parent / "data"
MATRIX_SHAPE, MATRIX_ENTRIES = (600, 600), 4000
TENSOR_SHAPE, TENSOR_ENTRIES = (40, 30, 25), 1500


def draw_coordinates(
    shape: tuple[int, ...], count: int, source: random.Random
) -> list[tuple[int, ...]]:
    """`count` different coordinates in sorted order; some rows have many entries, some none."""
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < count:
        row = int(shape[0] * source.random() ** 1.5)
        drawn.add((row, *(source.randrange(extent) for extent in shape[1:])))
    return sorted(drawn)


def entry_line(coordinate: tuple[int, ...], source: random.Random) -> str:
    """One stored entry as both file formats write it, 1-based."""
    value = source.randrange(-9999, 10000) / 1000 or 1.0
    return " ".join([*(str(index + 1) for index in coordinate), str(value)])


def matrix_text() -> str:
    """The content of `matrix.mtx`."""
    source = random.Random(600)
    coordinates = draw_coordinates(MATRIX_SHAPE, MATRIX_ENTRIES, source)
    rows, columns = MATRIX_SHAPE
    lines = [
        "%%MatrixMarket matrix coordinate real general",
        "% Written by examples/make_data.py.",
        f"{rows} {columns} {MATRIX_ENTRIES}",
        *(entry_line(coordinate, source) for coordinate in coordinates),
    ]
    return "\n".join(lines) + "\n"


def tensor_text() -> str:
    """The content of `tensor.tns`; a last entry in the last corner fixes the shape."""
    source = random.Random(30)
    corner = tuple(extent - 1 for extent in TENSOR_SHAPE)
    coordinates = draw_coordinates(TENSOR_SHAPE, TENSOR_ENTRIES, source)
    lines = [entry_line(coordinate, source) for coordinate in sorted({*coordinates, corner})]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    (DATA / "matrix.mtx").write_text(matrix_text(), encoding="ascii", newline="\n")
    (DATA / "tensor.tns").write_text(tensor_text(), encoding="ascii", newline="\n")
