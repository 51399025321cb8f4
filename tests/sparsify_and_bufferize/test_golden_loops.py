"""The loops, lattices and facts of the named programs, as text."""

import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from sparsejit.ir.loop_printing import print_loops
from sparsejit.sparsify_and_bufferize import StageOptions, sparsify_and_bufferize
from tests.sparsify_and_bufferize.programs import PROGRAMS


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_loops(name: str, file_regression: FileRegressionFixture) -> None:
    lattices: list[str] = []

    def observe(step: str, text: str) -> None:
        if step == "lattices":
            lattices.append(text)

    loops = sparsify_and_bufferize(PROGRAMS[name](), observe=observe)
    facts = [f"{fact.subject}: {fact.kind.value}: {fact.text}" for fact in loops.facts]
    parts = (print_loops(loops).rstrip(), "lattices", *lattices, "facts", *facts)
    file_regression.check("\n".join(parts) + "\n", extension=".txt")


@pytest.mark.parametrize("name", ["add_csr", "spgemm_rows", "sddmm"])
def test_runtime_storage(name: str, file_regression: FileRegressionFixture) -> None:
    loops = sparsify_and_bufferize(PROGRAMS[name](), StageOptions(storage="runtime"))
    file_regression.check(print_loops(loops), extension=".txt")
