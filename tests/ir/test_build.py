"""The builder derives what follows from the operands, numbers names and symbols, and verifies."""

from __future__ import annotations

import pytest

from sparsejit.affine import Add, Constant, Dim, add
from sparsejit.errors import Location, VerificationError
from sparsejit.formats import CSC, CSR, Dense
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.printing import print_tensor
from sparsejit.ir.scalar import Arg, Binary, Const
from sparsejit.ir.tensor import For, Generic, Materialize, Value
from sparsejit.ir.types import DType, IteratorType

F64 = DType.FLOAT64
ZERO, ONE = Const(0.0, F64), Const(1.0, F64)
PLUS = Binary(BinaryOp.ADD, Arg(0), Arg(1))


def test_types_have_defaults() -> None:
    builder = TensorBuilder("f")
    A = builder.param("A", ("m", 3), F64, CSR, ONE)
    x = builder.param("x", ("m",), DType.INT8)
    assert A.type.shape == (Dim(0), Constant(3))
    assert (A.type.format, A.type.fill) == (CSR, ONE)
    assert (x.type.format, x.type.fill) == (Dense(1), Const(0, DType.INT8))
    assert (A.type.is_dense, x.type.is_dense, A.type.rank) == (False, True, 2)


def test_extents_are_named_once() -> None:
    builder = TensorBuilder("f")
    assert [builder.extent(), builder.extent("n"), builder.extent("d0")] == [Dim(0), Dim(1), Dim(0)]
    builder.param("x", ("d0", "n"), F64)
    assert builder.finish().symbols == ("d0", "n")


def test_loops_follow_from_the_accesses() -> None:
    builder = TensorBuilder("convolve")
    x = builder.param("x", ("n",), F64)
    w = builder.param("w", ("k",), F64)
    y = builder.param("y", ("m",), F64)
    here = Location("conv.py", 3)
    result = builder.generic(
        [(x, (add(Dim(0), Dim(1)),)), (w, (1,))], (y, (0,)), PLUS, location=here
    )
    (op,) = builder.finish(result).ops
    assert isinstance(op, Generic)
    assert op.iterator_types == (IteratorType.PARALLEL, IteratorType.REDUCTION)
    assert op.extents == (Dim(2), Dim(1))
    assert op.indexing_maps[0].results == (Add(Dim(0), Dim(1)),)
    assert op.location == here
    assert (result.type, result.name) == (y.type, "0")


def test_extents_can_be_given() -> None:
    builder = TensorBuilder("f")
    x = builder.param("x", ("n",), F64)
    y = builder.param("y", (), F64)
    shifted = (add(Dim(0), Constant(1)),)
    with pytest.raises(ValueError, match=r"^no operand bounds loop 0: give its extent$"):
        builder.generic([(x, shifted)], (y, ()), PLUS)
    short = add(Dim(0), Constant(-1))
    one = builder.generic([(x, shifted)], (y, ()), PLUS, extents={0: short})
    two = builder.generic([(x, shifted)], (one, ()), PLUS, extents=(short,))
    func = builder.finish(two)
    assert [op.extents for op in func.ops if isinstance(op, Generic)] == [(short,), (short,)]
    assert "(i: reduction < n - 1) ins(%x[i + 1]) outs(%y)" in print_tensor(func)


def test_names_of_parameters_are_left_free() -> None:
    builder = TensorBuilder("f")
    builder.param("0", (), F64)
    assert builder.full((), ONE).name == "2"


def test_convert_changes_the_format_only() -> None:
    builder = TensorBuilder("f")
    A = builder.param("A", ("m", "n"), F64, CSR, ONE)
    B = builder.convert(A, CSC)
    assert (B.type.shape, B.type.fill, B.type.format) == (A.type.shape, ONE, CSC)
    builder.finish(B)


def test_slices() -> None:
    builder = TensorBuilder("f")
    A = builder.param("A", ("m", "n"), F64)
    row = builder.extract_slice(A, [2, 0], [1, Dim(1)], dropped=(0,))
    every = builder.extract_slice(A, [0, 1], [3, 4], [2, 2])
    assert row.type.shape == (Dim(1),)
    assert every.type.shape == (Constant(3), Constant(4))
    builder.finish(builder.insert_slice(row, A, [0, 0], [1, Dim(1)], dropped=(0,)))


def test_a_materialized_parameter_is_assigned() -> None:
    builder = TensorBuilder("f")
    x = builder.param("x", ("n",), F64)
    new = builder.full(x.type.shape, ONE)
    builder.materialize(new, x)
    builder.materialize(new, x)
    func = builder.finish()
    assert func.assigned == (x,)
    assert isinstance(func.ops[-1], Materialize)


def test_induction_variables_follow_the_extents() -> None:
    """Also where an extent is added, or takes the loop's name, after the loop was built."""
    builder = TensorBuilder("f")
    x = builder.param("x", ("n",), F64, assigned=True)

    def outer(i: Dim, carried: tuple[Value, ...]) -> list[Value]:
        assert builder.symbol_names()[i.index] == "i"

        def inner(j: Dim, deeper: tuple[Value, ...]) -> list[Value]:
            part = builder.extract_slice(deeper[0], [j], [add(i, Constant(1))])
            return [builder.insert_slice(part, deeper[0], [i], [add(i, Constant(1))])]

        return list(builder.for_loop(Constant(0), i, carried, inner))

    (result,) = builder.for_loop(Constant(0), Dim(0), [x], outer, name="i")
    late = builder.param("late", ("i", "k"), F64)
    func = builder.finish(result, late)
    assert func.symbols == ("n", "i", "k", "l", "j")
    assert func.num_extents == 3
    (loop,) = func.ops
    assert isinstance(loop, For)
    assert loop.induction == 3
    (nested,) = loop.body
    assert isinstance(nested, For)
    assert (nested.induction, nested.upper) == (4, Dim(3))
    assert nested.body[0].result.type.shape == (add(Dim(3), Constant(1)),)  # type: ignore[union-attr]  # a slice has a result


def test_a_failing_body_leaves_the_builder_as_it_was() -> None:
    builder = TensorBuilder("f")
    x = builder.param("x", ("n",), F64)

    def body(i: Dim, carried: tuple[Value, ...]) -> list[Value]:
        builder.full((), ONE)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        builder.for_loop(Constant(0), Dim(0), [x], body)
    assert builder.finish(x).ops == ()


def test_finish_verifies() -> None:
    builder = TensorBuilder("f")
    x = builder.param("x", ("n",), F64)
    y = builder.generic([(x, (0,))], (x, (0,)), Const(1, DType.INT8))
    with pytest.raises(VerificationError, match=r"'bodies are typed' after building f: %0"):
        builder.finish(y)
