"""For the tests of routes: a compiled function that counts the calls which go the long way."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.api._function import CompiledFunction

RNG = np.random.default_rng(7)


class Counted:
    """A compiled function, and how many of its calls went the long way."""

    def __init__(self, fn: Callable[..., Any], **options: Any) -> None:
        made = sj.sparse_jit(fn, **options)
        assert isinstance(made, CompiledFunction)
        self.function = made
        self.long = 0
        run = made._run

        def counted(*args: Any, **options: Any) -> Any:
            self.long += 1
            return run(*args, **options)

        made.__dict__["_run"] = counted

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def settle(self, *args: Any, **kwargs: Any) -> None:
        """Call until calls with these arguments take a route."""
        for _ in range(3):
            self(*args, **kwargs)
        before = self.long
        self(*args, **kwargs)
        assert self.long == before, "no route was taken"

    def is_long(self, *args: Any, **kwargs: Any) -> bool:
        before = self.long
        self(*args, **kwargs)
        return self.long > before


def matrix(rows: int = 5, columns: int = 4, kind: str = "csr") -> Any:
    dense = (RNG.random((rows, columns)) < 0.6) * RNG.integers(1, 9, (rows, columns))
    dense[0] = 1
    made: Any = sp.coo_array(dense.astype(float))
    return made.asformat(kind)


def product(A: Any, x: Any) -> Any:
    return A @ x
