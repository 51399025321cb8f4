"""Named programs in which the sharing of buffers matters, built on the tensor IR.

Each is a situation that upstream's tests or our design name. Golden files pin what we decide about
them; `mlir-opt` is asked about the same ones. Those with loops are in `buffer_loop_programs`.
"""

import tests.support.buffer_branch_programs
import tests.support.buffer_loop_programs  # noqa: F401 - both add their programs to the table
from sparsejit.affine import Constant, Dim, add, mul
from sparsejit.formats import CSR, DCSR, SparseVector
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.scalar import Arg, Const, Nothing, Select, Stored
from sparsejit.ir.tensor import Value
from tests.support.buffer_program_parts import (
    FLOAT,
    ONE,
    PROGRAMS,
    REFUSED_PROGRAMS,
    ZERO,
    double,
    increment,
    plus,
    program,
    refused,
    times,
    vector,
)

__all__ = ["PROGRAMS", "REFUSED_PROGRAMS"]

# ------------------------------------------------------------ reads after writes


@program
def insert_and_return_both(b: TensorBuilder) -> tuple[Value, ...]:
    """The new tensor and the old one are both wanted: the insert needs a copy."""
    t, element = vector(b, "t", assigned=True), b.param("element", (), FLOAT)
    return b.insert(element, t, [0]), t


@program
def insert_and_return_new(b: TensorBuilder) -> tuple[Value, ...]:
    """Nobody wants the old tensor: the insert is in place."""
    t, element = vector(b, "t", assigned=True), b.param("element", (), FLOAT)
    return (b.insert(element, t, [0]),)


@program
def element_moved_inside(b: TensorBuilder) -> tuple[Value, ...]:
    """`t[0] = t[1]`: the element is read before the store."""
    t = vector(b, "t", assigned=True)
    element = b.extract_slice(t, [1], [1], dropped=[0])
    return (b.insert(element, t, [0]),)


@program
def sparse_update_not_in_place(b: TensorBuilder) -> tuple[Value, ...]:
    """A sparse vector is added onto a dense one that is returned as well."""
    dense = vector(b, "dense", assigned=True)
    sparse = b.param("sparse", ("m",), FLOAT, SparseVector)
    total = b.generic([(sparse, (0,))], (dense, (0,)), plus(Arg(0), Arg(1)))
    return total, dense


@program
def argument_not_assigned(b: TensorBuilder) -> tuple[Value, ...]:
    """A parameter that the function does not assign is read only, so its update needs a copy."""
    return (increment(b, vector(b, "t")),)


@program
def overwritten_without_reading(b: TensorBuilder) -> tuple[Value, ...]:
    """Out of place, but nobody reads what was there: an allocation without a copy."""
    x, t = vector(b, "x"), vector(b, "t", assigned=True)
    return double(b, x, t), t


@program
def matrix_times_destination(b: TensorBuilder) -> tuple[Value, ...]:
    """`y[i] = A[i, j] * y[j]`: elements of y are read after others were written."""
    A = b.param("A", ("m", "m"), FLOAT, CSR)
    y = vector(b, "y", assigned=True)
    out = b.full(y.type.shape, ZERO)
    product = plus(Arg(2), times(Arg(0), Arg(1)))
    out = b.generic([(A, (0, 1)), (y, (1,))], (out, (0,)), product)
    return (b.materialize(out, y),)


@program
def matrix_times_destination_unchecked(b: TensorBuilder) -> tuple[Value, ...]:
    """The same with y itself as the destination."""
    A = b.param("A", ("m", "m"), FLOAT, CSR)
    y = vector(b, "y", assigned=True)
    product = times(Arg(0), Arg(1))
    new = b.generic([(A, (0, 1)), (y, (1,))], (y, (0,)), product)
    return (b.materialize(new, y),)


@program
def elementwise_in_place(b: TensorBuilder) -> tuple[Value, ...]:
    """Every element is read before it is written."""
    x, y = vector(b, "x"), vector(b, "y", assigned=True)
    new = b.generic([(x, (0,)), (y, (0,))], (y, (0,)), times(Arg(0), Arg(1)))
    return (b.materialize(new, y),)


@program
def reversed_in_place(b: TensorBuilder) -> tuple[Value, ...]:
    """`y[i] = y[7 - i]` is elementwise, but not at its own place."""
    y = b.param("y", (8,), FLOAT, assigned=True)
    mirrored = add(mul(Constant(-1), Dim(0)), Constant(7))
    new = b.generic([(y, (mirrored,))], (y, (0,)), Arg(0))
    return (b.materialize(new, y),)


@program
def same_array_twice(b: TensorBuilder) -> tuple[Value, ...]:
    """`C = C @ C`: one value in both places and as the destination."""
    C = b.param("C", ("m", "m"), FLOAT, assigned=True)
    product = plus(Arg(2), times(Arg(0), Arg(1)))
    new = b.generic([(C, (0, 2)), (C, (2, 1))], (C, (0, 1)), product)
    return (b.materialize(new, C),)


@program
def same_array_twice_elementwise(b: TensorBuilder) -> tuple[Value, ...]:
    """`y = y * y`."""
    y = vector(b, "y", assigned=True)
    new = b.generic([(y, (0,)), (y, (0,))], (y, (0,)), times(Arg(0), Arg(1)))
    return (b.materialize(new, y),)


@program
def sparse_is_not_elementwise(b: TensorBuilder) -> tuple[Value, ...]:
    """A buffer is filled, multiplied into, and overwritten under a sparse operand."""
    S = b.param("S", ("m", "m"), FLOAT, CSR)
    B = b.param("B", ("m", "m"), FLOAT)
    fresh = b.empty(B.type)
    zeros = b.generic([], (fresh, (0, 1)), ZERO)
    product = plus(Arg(2), times(Arg(0), Arg(1)))
    square = b.generic([(B, (0, 2)), (B, (2, 1))], (zeros, (0, 1)), product)
    scaled = times(Arg(0), Arg(1))
    return (b.generic([(S, (0, 1)), (square, (0, 1))], (fresh, (0, 1)), scaled),)


@program
def two_results_of_one_buffer(b: TensorBuilder) -> tuple[Value, ...]:
    """A value is doubled twice: the second needs the first no more, the third still does."""
    x = vector(b, "x")
    first = double(b, x, b.empty(x.type))
    second = increment(b, first)
    third = increment(b, second)
    return second, third


# ------------------------------------------------------------ arguments and results


@program
def result_is_an_argument(b: TensorBuilder) -> tuple[Value, ...]:
    """An argument is returned as it is."""
    return (vector(b, "x"),)


@program
def result_is_an_assigned_argument(b: TensorBuilder) -> tuple[Value, ...]:
    """`y += 1; return y`: the result lives in the argument."""
    y = vector(b, "y", assigned=True)
    return (b.materialize(increment(b, y), y),)


@program
def result_returned_twice(b: TensorBuilder) -> tuple[Value, ...]:
    """One value stands twice in the result."""
    x = vector(b, "x")
    new = double(b, x, b.empty(x.type))
    return new, new


@program
def materialize_copies(b: TensorBuilder) -> tuple[Value, ...]:
    """The new value of y is read with the old one, so it is made elsewhere and copied."""
    x, y = vector(b, "x"), vector(b, "y", assigned=True)
    new = double(b, x, b.empty(x.type))
    both = b.generic([(y, (0,)), (new, (0,))], (b.empty(x.type), (0,)), plus(Arg(0), Arg(1)))
    return b.materialize(new, y), both


@program
def old_value_used_before(b: TensorBuilder) -> tuple[Value, ...]:
    """`z = 2 y; y += 1; return y, z`: the read comes first, so y is written in place."""
    y = vector(b, "y", assigned=True)
    z = double(b, y, b.empty(y.type))
    return b.materialize(increment(b, y), y), z


@refused
def old_value_returned(b: TensorBuilder) -> tuple[Value, ...]:
    """The old value of an assigned argument is a result: no copy can save it there."""
    x, y = vector(b, "x"), vector(b, "y", assigned=True)
    return b.materialize(x, y), y


# ------------------------------------------------------------ slices


@program
def slice_updated_whole_returned(b: TensorBuilder) -> tuple[Value, ...]:
    """A slice is changed while the whole is returned: the slice alone is copied."""
    t = b.param("t", ("m", "n"), FLOAT, assigned=True)
    row = b.extract_slice(t, [2, 0], [1, t.type.shape[1]], dropped=[0])
    return increment(b, row), t


@program
def slice_changed_and_put_back(b: TensorBuilder) -> tuple[Value, ...]:
    """Taken out, changed and put back at one place: all in place."""
    t = b.param("t", ("m", "n"), FLOAT, assigned=True)
    where = ([2, 0], [1, t.type.shape[1]])
    row = increment(b, b.extract_slice(t, *where, dropped=[0]))
    return (b.materialize(b.insert_slice(row, t, *where, dropped=[0]), t),)


@program
def slice_put_back_elsewhere(b: TensorBuilder) -> tuple[Value, ...]:
    """Put back at another place, the source of the slice must stay as it was."""
    t = b.param("t", ("m", "n"), FLOAT, assigned=True)
    size = [1, t.type.shape[1]]
    row = increment(b, b.extract_slice(t, [2, 0], size, dropped=[0]))
    return (b.materialize(b.insert_slice(row, t, [3, 0], size, dropped=[0]), t),)


@program
def overlapping_views(b: TensorBuilder) -> tuple[Value, ...]:
    """Two overlapping slices, one is changed while the other is still read."""
    t = b.param("t", (8,), FLOAT, assigned=True)
    left, right = b.extract_slice(t, [0], [4]), b.extract_slice(t, [2], [4])
    changed = increment(b, left)
    return (b.generic([(changed, (0,)), (right, (0,))], (changed, (0,)), plus(Arg(0), Arg(1))),)


@program
def view_of_a_view(b: TensorBuilder) -> tuple[Value, ...]:
    """A slice of a slice is changed while the outer slice is returned."""
    t = b.param("t", (8,), FLOAT, assigned=True)
    outer = b.extract_slice(t, [1], [6])
    inner = b.extract_slice(outer, [1], [2])
    return increment(b, inner), outer


@program
def sparse_slice(b: TensorBuilder) -> tuple[Value, ...]:
    """A slice of a sparse tensor is a tensor of its own; nothing of it reaches the whole."""
    S = b.param("S", ("m", "n"), FLOAT, CSR)
    part = b.extract_slice(S, [1, 0], [2, S.type.shape[1]])
    return b.generic([], (part, (0, 1)), times(Arg(0), Const(2.0, FLOAT))), S


# ------------------------------------------------------------ allocations


@program
def sparse_allocations(b: TensorBuilder) -> tuple[Value, ...]:
    """A sparse tensor without entries, converted; the sparse one ends with the function."""
    A = b.param("A", ("m", "n"), FLOAT)
    nothing = b.empty(b.tensor_type(A.type.shape, FLOAT, DCSR))
    return (b.convert(nothing, A.type.format),)


@program
def undefined_contents(b: TensorBuilder) -> tuple[Value, ...]:
    """A fresh tensor is wanted for two results: the second allocation copies nothing."""
    x = vector(b, "x")
    fresh = b.empty(x.type)
    first = double(b, x, fresh)
    second = increment(b, fresh)
    return first, second


@program
def copies_that_stay_and_go(b: TensorBuilder) -> tuple[Value, ...]:
    """Two copies: one is returned, one is read and freed."""
    t = vector(b, "t")
    kept = increment(b, t)
    inner = increment(b, t)
    square = b.generic(
        [(inner, (0,)), (kept, (0,))], (b.empty(t.type), (0,)), times(Arg(0), Arg(1))
    )
    return kept, square


@program
def sddmm(b: TensorBuilder) -> tuple[Value, ...]:
    """The sampled product: `S * (A @ B)` in one operation, into a fresh sparse tensor."""
    S = b.param("S", ("m", "n"), FLOAT, CSR)
    A, B = b.param("A", ("m", "k"), FLOAT), b.param("B", ("k", "n"), FLOAT)
    product = times(times(Arg(0), Arg(1)), Arg(2))
    accesses = [(S, (0, 1)), (A, (0, 2)), (B, (2, 1))]
    return (b.generic(accesses, (b.empty(S.type), (0, 1)), plus(Arg(3), product)),)


@program
def where_stored(b: TensorBuilder) -> tuple[Value, ...]:
    """`where_stored(S, A + 1)`: the structure of S, computed at its entries."""
    S, A = b.param("S", ("m", "n"), FLOAT, CSR), b.param("A", ("m", "n"), FLOAT)
    body = Select(Stored(0), plus(Arg(1), ONE), Nothing(FLOAT))
    return (b.generic([(S, (0, 1)), (A, (0, 1))], (b.empty(S.type), (0, 1)), body),)


@program
def sparse_argument_assigned(b: TensorBuilder) -> tuple[Value, ...]:
    """The stored values of a sparse argument are doubled in place."""
    S = b.param("S", ("m", "n"), FLOAT, CSR, assigned=True)
    new = b.generic([], (S, (0, 1)), plus(Arg(0), Arg(0)))
    return (b.materialize(new, S),)
