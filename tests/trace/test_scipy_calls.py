"""SciPy's functions on traced arrays: a ``TraceError`` at the user's line, with what to use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
import scipy.sparse.linalg as sla
import scipy.special

import sparsejit as sj
from sparsejit.errors import TraceError, UnsupportedError

CALLS: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda A, x: sp.csr_array(A), r"csr_array takes no traced arrays\n.*\n.*sj\.asarray"),
    (lambda A, x: sp.csc_matrix(A), r"csc_matrix takes no traced arrays\n.*\n.*sj\.asarray"),
    (lambda A, x: sp.bsr_array(A), r"bsr_array takes no traced arrays"),
    (lambda A, x: sp.dia_array(A), r"dia_array takes no traced arrays"),
    (lambda A, x: sp.dok_array(A), r"dok_array takes no traced arrays"),
    (lambda A, x: sp.coo_array(A), r"SciPy's functions take no traced arrays"),
    (lambda A, x: sla.norm(A), r"norm takes no traced arrays\n.*\n  use np\.linalg\.norm"),
    (lambda A, x: sp.diags(x), r"diags takes no traced arrays\n.*\n  use np\.diag"),
    (lambda A, x: sp.diags_array(x), r"diags_array takes no traced arrays\n.*\n  use np\.diag"),
    (lambda A, x: sla.spsolve(A, x), r"spsolve takes no traced arrays\n.*\n.*sj\.while_loop"),
    (lambda A, x: sla.cg(A, x), r"cg takes no traced arrays\n.*\n.*sj\.while_loop"),
    (lambda A, x: sla.gmres(A, x), r"gmres takes no traced arrays\n.*\n.*sj\.while_loop"),
    (lambda A, x: sla.inv(A), r"inv takes no traced arrays\n.*\n.*sj\.while_loop"),
    (lambda A, x: sla.splu(A), r"splu takes no traced arrays"),
    (lambda A, x: sla.aslinearoperator(A), r"aslinearoperator takes no traced arrays"),
    (lambda A, x: sp.vstack([A, A]), r"SciPy's functions take no traced arrays"),
    (lambda A, x: la.norm(x), r"a traced array cannot become a NumPy array"),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_refusal(number: int) -> None:
    call, message = CALLS[number]

    def program(A: Any, x: Any) -> Any:
        return call(A, x)

    A = sp.csr_array(np.array([[4.0, 1], [1, 3]]))
    with pytest.raises(TraceError, match=message) as raised:
        sj.sparse_jit(program, target="interpreter")(A, np.ones(2))
    assert raised.value.location is not None
    assert raised.value.location.file == __file__
    assert raised.value.location.line == call.__code__.co_firstlineno


def test_special_functions() -> None:
    with pytest.raises(UnsupportedError, match=r"special\.expit is not built\n.*\n.*np\.exp"):
        sj.sparse_jit(lambda x: scipy.special.expit(x))(np.ones(2))


def test_what_scipy_refuses_of_its_own_arrays_stays_as_it_is() -> None:
    def program(x: Any) -> Any:
        sp.csr_array(np.ones((2, 2, 2)))
        return x

    with pytest.raises(ValueError, match=r"constructor|CSR arrays|dimension") as raised:
        sj.sparse_jit(program, target="interpreter")(np.ones(2))
    assert not isinstance(raised.value, TraceError)
