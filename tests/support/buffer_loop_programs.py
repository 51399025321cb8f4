"""The named programs about buffers that have loops."""

from sparsejit.affine import Constant, Dim, add
from sparsejit.formats import CSR
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.scalar import Arg
from sparsejit.ir.tensor import Value
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


@program
def loop_carries_a_tensor(b: TensorBuilder) -> tuple[Value, ...]:
    """`for i: t[i] = element`, in place."""
    t, element = vector(b, "t", assigned=True), b.param("element", (), FLOAT)

    def body(i: Dim, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        return (b.insert(element, carried[0], [i]),)

    return b.for_loop(Constant(0), t.type.shape[0], [t], body)


@program
def loop_start_returned(b: TensorBuilder) -> tuple[Value, ...]:
    """The same, but the tensor as it was before the loop is a result too."""
    t, element = vector(b, "t", assigned=True), b.param("element", (), FLOAT)

    def body(i: Dim, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        return (b.insert(element, carried[0], [i]),)

    return (*b.for_loop(Constant(0), t.type.shape[0], [t], body), t)


@program
def loop_yields_a_new_buffer(b: TensorBuilder) -> tuple[Value, ...]:
    """`x = A @ x`, again and again: each iteration makes a vector and hands it on."""
    A, x = b.param("A", ("m", "m"), FLOAT, CSR), vector(b, "x", assigned=True)

    def body(i: Dim, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        zeros = b.full(x.type.shape, ZERO)
        product = plus(Arg(2), times(Arg(0), Arg(1)))
        return (b.generic([(A, (0, 1)), (carried[0], (1,))], (zeros, (0,)), product),)

    return b.for_loop(Constant(0), Constant(5), [x], body)


@program
def loop_swaps(b: TensorBuilder) -> tuple[Value, ...]:
    """`x, y = y, x`: each is read before either is overwritten."""
    x, y = vector(b, "x", assigned=True), vector(b, "y", assigned=True)
    return b.for_loop(Constant(0), Constant(3), [x, y], lambda i, carried: carried[::-1])


@program
def buffer_written_inside_a_loop(b: TensorBuilder) -> tuple[Value, ...]:
    """A fresh buffer is filled and changed in each iteration: it must not move out of the loop."""
    t, element = vector(b, "t", assigned=True), b.param("element", (), FLOAT)

    def body(i: Dim, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        zeros = b.full((Constant(2),), ZERO)
        marked = b.insert(element, zeros, [0])
        total = b.generic([(marked, (0,))], (b.full((), ZERO), ()), plus(Arg(0), Arg(1)))
        return (b.insert(total, carried[0], [i]),)

    return b.for_loop(Constant(0), t.type.shape[0], [t], body)


@program
def outer_value_written_inside_a_loop(b: TensorBuilder) -> tuple[Value, ...]:
    """A tensor from outside is read and changed in each iteration: the change must not stay."""
    t, w = vector(b, "t", assigned=True), vector(b, "w", assigned=True)

    def body(i: Dim, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        changed = increment(b, w)
        return (b.generic([(changed, (0,))], (carried[0], (0,)), plus(Arg(0), Arg(1))),)

    return b.for_loop(Constant(0), Constant(4), [t], body)


@program
def loop_over_slices(b: TensorBuilder) -> tuple[Value, ...]:
    """Each row is taken out, changed and put back, in place."""
    t = b.param("t", ("m", "n"), FLOAT, assigned=True)
    m, n = t.type.shape

    def body(i: Dim, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        row = increment(b, b.extract_slice(carried[0], [i, 0], [1, n], dropped=[0]))
        return (b.insert_slice(row, carried[0], [i, 0], [1, n], dropped=[0]),)

    return (b.materialize(b.for_loop(Constant(0), m, [t], body)[0], t),)


@program
def loop_reads_the_next_row(b: TensorBuilder) -> tuple[Value, ...]:
    """Row i is set from the row i + 1 of what the loop was given."""
    t = b.param("t", ("m", "n"), FLOAT, assigned=True)
    m, n = t.type.shape

    def body(i: Dim, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        row = b.extract_slice(t, [add(i, Constant(1)), 0], [1, n], dropped=[0])
        return (b.insert_slice(row, carried[0], [i, 0], [1, n], dropped=[0]),)

    upper = add(m, Constant(-1))
    return (b.materialize(b.for_loop(Constant(0), upper, [t], body)[0], t),)


@program
def loop_in_a_loop(b: TensorBuilder) -> tuple[Value, ...]:
    """Two loops carry one matrix, element by element."""
    t, element = b.param("t", ("m", "n"), FLOAT, assigned=True), b.param("element", (), FLOAT)
    m, n = t.type.shape

    def outer(i: Dim, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        def inner(j: Dim, rows: tuple[Value, ...]) -> tuple[Value, ...]:
            return (b.insert(element, rows[0], [i, j]),)

        return b.for_loop(Constant(0), n, carried, inner)

    return (b.materialize(b.for_loop(Constant(0), m, [t], outer)[0], t),)


@program
def loop_that_surely_runs(b: TensorBuilder) -> tuple[Value, ...]:
    """The initial value is overwritten unread in the first of four iterations: no copy of it."""
    x, t = vector(b, "x"), vector(b, "t")

    def body(i: Dim, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        return (double(b, x, carried[0]),)

    return b.for_loop(Constant(0), Constant(4), [t], body)


@program
def loop_yields_the_outside(b: TensorBuilder) -> tuple[Value, ...]:
    """What the loop yields comes from outside it."""
    x, t = vector(b, "x"), vector(b, "t", assigned=True)
    return b.for_loop(Constant(0), Constant(2), [t], lambda i, carried: (x,))
