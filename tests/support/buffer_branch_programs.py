"""The named programs about buffers with branches, loops without a count, and rearrangements."""

from sparsejit.affine import Constant, add, mul
from sparsejit.formats import CSR, SparseVector
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Const
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import DType
from tests.support.buffer_program_parts import (
    FLOAT,
    ZERO,
    double,
    increment,
    plus,
    program,
    times,
    vector,
)


def truth(b: TensorBuilder) -> Value:
    return b.param("p", (), DType.BOOL)


def is_small(b: TensorBuilder, x: Value) -> Value:
    """Whether the sum of a vector is below 100."""
    total = b.generic([(x, (0,))], (b.full((), ZERO), ()), plus(Arg(0), Arg(1)))
    start = b.empty(b.tensor_type((), DType.BOOL))
    return b.generic([(total, ())], (start, ()), Binary(BinaryOp.LT, Arg(0), Const(100.0, FLOAT)))


# ------------------------------------------------------------ branches


@program
def branch_updates(b: TensorBuilder) -> tuple[Value, ...]:
    """`if p: t += 1`, in place: both branches end in the buffer of t."""
    t, p = vector(b, "t", assigned=True), truth(b)
    (new,) = b.branch(p, lambda: (increment(b, t),), lambda: (t,))
    return (b.materialize(new, t),)


@program
def branch_updates_old_value_kept(b: TensorBuilder) -> tuple[Value, ...]:
    """The same, but the old value is a result too: the branches end in different buffers."""
    t, p = vector(b, "t", assigned=True), truth(b)
    return (*b.branch(p, lambda: (increment(b, t),), lambda: (t,)), t)


@program
def branch_chooses(b: TensorBuilder) -> tuple[Value, ...]:
    """`x if p else y`, then changed: neither argument may be."""
    x, y, p = vector(b, "x"), vector(b, "y"), truth(b)
    (chosen,) = b.branch(p, lambda: (x,), lambda: (y,))
    return (increment(b, chosen),)


@program
def branches_write_one_buffer(b: TensorBuilder) -> tuple[Value, ...]:
    """Each branch writes the same fresh buffer; only one of them runs."""
    x, p = vector(b, "x"), truth(b)
    fresh = b.empty(x.type)
    return b.branch(p, lambda: (double(b, x, fresh),), lambda: (increment(b, double(b, x, fresh)),))


@program
def branch_read_in_one_written_in_other(b: TensorBuilder) -> tuple[Value, ...]:
    """One branch reads what the other one changes in place."""
    t, p = vector(b, "t", assigned=True), truth(b)

    def then() -> tuple[Value, ...]:
        return (increment(b, t),)

    def orelse() -> tuple[Value, ...]:
        return (double(b, t, b.empty(t.type)),)

    (new,) = b.branch(p, then, orelse)
    return (b.materialize(new, t),)


@program
def branch_in_a_loop(b: TensorBuilder) -> tuple[Value, ...]:
    """`for i: if p: t += x`, all in place."""
    t, x, p = vector(b, "t", assigned=True), vector(b, "x"), truth(b)

    def body(i: object, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        def then() -> tuple[Value, ...]:
            return (b.generic([(x, (0,))], (carried[0], (0,)), plus(Arg(0), Arg(1))),)

        return b.branch(p, then, lambda: carried)

    return (b.materialize(b.for_loop(Constant(0), Constant(3), [t], body)[0], t),)


@program
def branch_of_a_sparse_tensor(b: TensorBuilder) -> tuple[Value, ...]:
    """Both branches hand on the same sparse tensor."""
    S, p = b.param("S", ("m", "n"), FLOAT, CSR), truth(b)
    return b.branch(p, lambda: (S,), lambda: (S,))


# ------------------------------------------------------------ loops without a count


@program
def while_updates(b: TensorBuilder) -> tuple[Value, ...]:
    """`while sum(t) < 100: t += 1`, in place."""
    t = vector(b, "t", assigned=True)
    (new,) = b.while_loop(
        [t], lambda carried: is_small(b, carried[0]), lambda carried: (increment(b, carried[0]),)
    )
    return (b.materialize(new, t),)


@program
def while_start_returned(b: TensorBuilder) -> tuple[Value, ...]:
    """The value before the loop is a result too: the loop gets a copy."""
    t = vector(b, "t", assigned=True)
    made = b.while_loop(
        [t], lambda carried: is_small(b, carried[0]), lambda carried: (increment(b, carried[0]),)
    )
    return (*made, t)


@program
def while_test_changes_its_copy(b: TensorBuilder) -> tuple[Value, ...]:
    """The test computes with the carried value in place of it: that needs a copy."""
    t = vector(b, "t", assigned=True)

    def condition(carried: tuple[Value, ...]) -> Value:
        return is_small(b, increment(b, carried[0]))

    return b.while_loop([t], condition, lambda carried: (increment(b, carried[0]),))


@program
def while_yields_a_new_buffer(b: TensorBuilder) -> tuple[Value, ...]:
    """`while small: x = A @ x`: each round makes a vector, copied to where the loop started."""
    A, x = b.param("A", ("m", "m"), FLOAT, CSR), vector(b, "x", assigned=True)

    def body(carried: tuple[Value, ...]) -> tuple[Value, ...]:
        product = plus(Arg(2), times(Arg(0), Arg(1)))
        zeros = b.full(x.type.shape, ZERO)
        return (b.generic([(A, (0, 1)), (carried[0], (1,))], (zeros, (0,)), product),)

    return b.while_loop([x], lambda carried: is_small(b, carried[0]), body)


@program
def while_swaps(b: TensorBuilder) -> tuple[Value, ...]:
    """`x, y = y, x + 1`, a round at a time."""
    x, y = vector(b, "x", assigned=True), vector(b, "y", assigned=True)

    def body(carried: tuple[Value, ...]) -> tuple[Value, ...]:
        return carried[1], increment(b, carried[0])

    return b.while_loop([x, y], lambda carried: is_small(b, carried[0]), body)


# ------------------------------------------------------------ rearrangements


@program
def reshaped_and_changed(b: TensorBuilder) -> tuple[Value, ...]:
    """A reshape is changed, and its source is read afterwards."""
    x = b.param("x", ("m", 4), FLOAT, assigned=True)
    flat = increment(b, b.reshape(x, (b.extent("m"), 2, 2)))
    return flat, x


@program
def arranged_and_changed(b: TensorBuilder) -> tuple[Value, ...]:
    """Concatenations and paddings are new tensors, changed in place."""
    x, S = vector(b, "x"), b.param("S", ("m", "n"), FLOAT, CSR)
    both = increment(b, b.concat([x, x], 0))
    padded = increment(b, b.pad(x, [1], [1]))
    m, n = S.type.shape
    flat = b.reshape(b.concat([S, S], 1), (mul(m, add(n, n)),), SparseVector)
    return both, padded, flat, b.pad(S, [1, 0], [0, 1]), x
