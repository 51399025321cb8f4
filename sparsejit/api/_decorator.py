"""``sparse_jit``: the decorator.

In: a Python function and options. Out: a ``CompiledFunction`` that is called like the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from sparsejit.api._function import CompiledFunction
from sparsejit.api._options import Transfer, check_options
from sparsejit.formats import Format

__all__ = ["sparse_jit"]


@overload
def sparse_jit(fn: Callable[..., Any]) -> CompiledFunction: ...


@overload
def sparse_jit(
    fn: None = None,
    *,
    transfer: str | Transfer = ...,
    target: str = ...,
    library: str = ...,
    parallelization: str = ...,
    output: Format | Mapping[int, Format] | None = ...,
    static_argnames: str | Sequence[str] = ...,
    deterministic: bool = ...,
    reassociate: bool = ...,
    check: str = ...,
    cache: bool = ...,
) -> Callable[[Callable[..., Any]], CompiledFunction]: ...


@overload
def sparse_jit(
    fn: Callable[..., Any],
    *,
    transfer: str | Transfer = ...,
    target: str = ...,
    library: str = ...,
    parallelization: str = ...,
    output: Format | Mapping[int, Format] | None = ...,
    static_argnames: str | Sequence[str] = ...,
    deterministic: bool = ...,
    reassociate: bool = ...,
    check: str = ...,
    cache: bool = ...,
) -> CompiledFunction: ...


def sparse_jit(
    fn: Callable[..., Any] | None = None,
    *,
    transfer: str | Transfer = "regular-dma",
    target: str = "auto",
    library: str = "auto",
    parallelization: str = "any-storage-any-loop",
    output: Format | Mapping[int, Format] | None = None,
    static_argnames: str | Sequence[str] = (),
    deterministic: bool = False,
    reassociate: bool = True,
    check: str = "once",
    cache: bool = True,
) -> CompiledFunction | Callable[[Callable[..., Any]], CompiledFunction]:
    """Compile a function of arrays; works bare (``@sparse_jit``) and with arguments.

    The function means what NumPy would compute on the dense equivalents of its operands. It is
    traced once for each kind of operands (formats, dtypes, ranks), whatever the extents.

    - ``transfer``: how host operands reach a device: ``"regular-dma"``, ``"pinned-dma"``,
      ``"zero-copy"``, or a ``Transfer``.
    - ``target``: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"interpreter"``.
    - ``library``: ``"auto"`` uses recognised library kernels, ``"never"`` does not, ``"only"``
      refuses to generate code.
    - ``parallelization``: ``"none"``, ``"dense-outer-loop"``, ``"any-storage-outer-loop"``,
      ``"dense-any-loop"`` or ``"any-storage-any-loop"``.
    - ``output``: the format of results, or a dict from result position to format.
    - ``static_argnames``: arguments that are constants of the trace.
    - ``deterministic``: the same bits on every run.
    - ``reassociate``: whether sums may be computed in another order.
    - ``check``: when the structure of operands is checked: ``"once"``, ``"always"``, ``"never"``.
    - ``cache``: whether compiled kernels are kept on disk.

    Raises ``ValueError`` for a wrong value, naming the choices. Calling the result raises
    ``TraceError`` for what cannot be traced, ``TensorTypeError`` for operands that do not fit,
    ``UnsupportedError`` for what is not built, ``DeviceError`` where a device is missing.

    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> import sparsejit as sj
    >>> @sj.sparse_jit(target="interpreter")
    ... def spmv(A, x):
    ...     return A @ x
    >>> spmv(sp.csr_array([[0.0, 2.0], [3.0, 0.0]]), np.array([1.0, 10.0])).tolist()
    [20.0, 3.0]
    """
    options = check_options(
        transfer=transfer,
        target=target,
        library=library,
        parallelization=parallelization,
        output=output,
        static_argnames=static_argnames,
        deterministic=deterministic,
        reassociate=reassociate,
        check=check,
        cache=cache,
    )

    def decorate(function: Callable[..., Any]) -> CompiledFunction:
        return CompiledFunction(function, options)

    return decorate if fn is None else decorate(fn)
