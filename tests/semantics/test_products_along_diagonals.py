"""Products with diagonal matrices: a loop along a diagonal meets a row of another operand again.

Room for the entries of a result was reserved as if each row were met once.
"""

from typing import Any

import numpy as np
import pytest

import sparsejit as sj

RNG = np.random.default_rng(11)
SUBSCRIPTS = [
    "ij,jk->ik", "ij,kj->ik", "ij,ik->jk", "ij,jk->ijk", "ij,kj->ikj", "ij,ik->kji", "ij,ji->ij",
    "ij,ij,jk->ik", "ii,ij,ik->ikj",
]  # fmt: skip
CASES = [
    (("dia", "dia"), "interpreter"), (("dia", "csr"), "interpreter"),
    (("csr", "dia"), "interpreter"), (("csc", "dia"), "interpreter"),
    (("dia", "coo"), "interpreter"), (("dcsr", "dia"), "interpreter"), (("csr", "dia"), "cpu"),
]  # fmt: skip
FORMATS = {"dia": sj.DIA, "csr": sj.CSR, "csc": sj.CSC, "coo": sj.COO(2), "dcsr": sj.DCSR}


def entries(extent: int, density: float) -> Any:
    filled = RNG.random((extent, extent)) < density
    return filled * RNG.integers(1, 9, (extent, extent)).astype(float)


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
@pytest.mark.parametrize(("names", "target"), CASES)
def test_every_entry_has_room(subscripts: str, names: tuple[str, str], target: Any) -> None:
    count = subscripts.count(",") + 1
    arrays = [entries(6, density) for density in (0.7, 0.9, 0.6)[:count]]
    kinds = [FORMATS[name] for name in (*names, names[0])[:count]]
    operands = [sj.asarray(a, format=kind) for a, kind in zip(arrays, kinds, strict=True)]
    wanted = np.einsum(subscripts, *arrays)
    rank = wanted.ndim
    for out in (sj.CSF(rank), sj.Dense(rank)):
        f = sj.sparse_jit(
            lambda *tensors: sj.einsum(subscripts, *tensors), target=target, output=out
        )
        found = f(*operands)
        np.testing.assert_array_equal(sj.asarray(found, format=sj.Dense(rank)).to_numpy(), wanted)
