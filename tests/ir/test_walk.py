"""Walks over the tensor IR see every operation and value, and rebuild what they are told to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparsejit.affine import Constant, Dim
from sparsejit.formats import CSR, Dense
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary
from sparsejit.ir.tensor import (
    AllocTensor,
    Concat,
    Convert,
    Empty,
    ExtractSlice,
    For,
    Generic,
    If,
    Insert,
    InsertSlice,
    Materialize,
    Op,
    Pad,
    Reshape,
    TensorFunc,
    Value,
    While,
)
from sparsejit.ir.types import DType
from sparsejit.ir.verify import verify_tensor
from sparsejit.ir.walk import (
    affine_of,
    all_ops,
    all_values,
    defined_by,
    definitions,
    map_ops,
    operands_of,
    replace_values,
    results_of,
    substitute_symbols,
    uses,
    yields_of,
)

F64 = DType.FLOAT64


@pytest.fixture
def func() -> TensorFunc:
    """A function with one operation of every kind, most of them in a loop."""
    builder = TensorBuilder("f")
    A = builder.param("A", ("n", "n"), F64, CSR)
    x = builder.param("x", ("n",), F64, assigned=True)

    def body(i: Dim, carried: tuple[Value, ...]) -> list[Value]:
        dense = builder.convert(A, Dense(2))
        start = builder.empty(x.type)
        plus = Binary(BinaryOp.ADD, Arg(2), Binary(BinaryOp.MUL, Arg(0), Arg(1)))
        product = builder.generic([(dense, (0, 1)), (carried[0], (1,))], (start, (0,)), plus)
        part = builder.extract_slice(product, [i], [1], dropped=(0,))
        whole = builder.insert_slice(part, product, [i], [1], dropped=(0,))
        return [builder.insert(part, whole, [i])]

    (y,) = builder.for_loop(Constant(0), Dim(0), [builder.alloc_tensor(x.type)], body)
    builder.materialize(y, x)
    return builder.finish(y)


def names(values: tuple[Value, ...]) -> list[str]:
    return [value.name for value in values]


def test_every_kind_of_operation(func: TensorFunc) -> None:
    kinds = [type(op) for op in all_ops(func.ops)]
    loop = [Convert, Empty, Generic, ExtractSlice, InsertSlice, Insert]
    assert kinds == [AllocTensor, For, *loop, Materialize]


def test_operands_and_results(func: TensorFunc) -> None:
    ops = {type(op): op for op in all_ops(func.ops)}
    table = {
        kind.__name__: (names(operands_of(op)), names(results_of(op))) for kind, op in ops.items()
    }
    assert table == {
        "AllocTensor": ([], ["0"]),
        "For": (["0"], ["8"]),
        "Convert": (["A"], ["2"]),
        "Empty": ([], ["3"]),
        "Generic": (["2", "1", "3"], ["4"]),
        "ExtractSlice": (["4"], ["5"]),
        "InsertSlice": (["5", "4"], ["6"]),
        "Insert": (["5", "6"], ["7"]),
        "Materialize": (["8", "x"], ["9"]),
    }
    assert operands_of(AllocTensor(func.params[0], func.params[1])) == (func.params[1],)


def test_expressions(func: TensorFunc) -> None:
    ops = {type(op).__name__: affine_of(op) for op in all_ops(func.ops)}
    n, i = Dim(0), Dim(1)
    assert ops.pop("For") == (Constant(0), n)
    assert ops.pop("Generic") == (n, n)
    assert ops.pop("ExtractSlice") == ops.pop("InsertSlice") == (i, Constant(1))
    assert ops.pop("Insert") == (i,)
    assert set(ops.values()) == {()}


def test_values_definitions_and_uses(func: TensorFunc) -> None:
    found = [value.name for value in all_values(func)]
    assert found == ["A", "x", "0", "1", "8", "2", "3", "4", "5", "6", "7", "9"]
    defined = definitions(func)
    assert sorted(defined) == sorted(set(found) - {"A", "x", "1"})
    assert isinstance(defined["4"], Generic)
    kinds = {
        name: [type(op).__name__ for op in taken if op is not None]
        for name, taken in uses(func).items()
    }
    assert kinds["A"] == ["Convert"]
    assert kinds["5"] == ["InsertSlice", "Insert"]
    assert kinds["7"] == ["For"]
    assert kinds["9"] == []
    assert uses(func)["8"] == (func.ops[-1], None)


@pytest.fixture
def nested() -> TensorFunc:
    """A branch in a loop without a count, whose test reads a padded and reshaped concatenation."""
    builder = TensorBuilder("g")
    x = builder.param("x", ("n",), F64)
    p = builder.param("p", (), DType.BOOL)
    n = x.type.shape[0]

    def condition(carried: tuple[Value, ...]) -> Value:
        long = builder.pad(builder.concat([carried[0], x], 0), [n], [0])
        builder.reshape(long, (n, 3))
        return p

    def body(carried: tuple[Value, ...]) -> tuple[Value, ...]:
        return builder.branch(p, lambda: carried, lambda: (x,))

    (y,) = builder.while_loop([x], condition, body)
    return builder.finish(y)


def test_walks_go_into_all_blocks(nested: TensorFunc) -> None:
    kinds = [type(op) for op in all_ops(nested.ops)]
    assert kinds == [While, Concat, Pad, Reshape, If]
    loop, *_, branch = all_ops(nested.ops)
    assert [value.name for value in all_values(nested)] == ["x", "p", *"046123", "5"]
    assert names(operands_of(branch)) == ["p"]
    assert names(yields_of(branch)) == ["4", "x"]
    assert names(yields_of(loop)) == ["p", "0", "5"]
    assert names(defined_by(loop)) == ["0", "4", "6"]
    assert affine_of(loop) == affine_of(branch) == ()
    taken = {name: [type(op) for op in ops if op is not None] for name, ops in uses(nested).items()}
    assert taken["x"] == [While, Concat, If]
    assert taken["p"] == [While, If]
    assert map_ops(nested.ops, lambda op: (op,)) == nested.ops
    inserted = map_ops(nested.ops, lambda op: (op, op) if isinstance(op, Concat | If) else (op,))
    assert [type(op) for op in all_ops(inserted)] == [While, Concat, Concat, Pad, Reshape, If, If]


def test_replacing_reaches_all_blocks(nested: TensorFunc) -> None:
    (loop,) = nested.ops
    renamed = replace_values(loop, lambda value: Value(f"v{value.name}", value.type))
    before, after = (
        [v.name for op in all_ops((top,)) for v in (*operands_of(op), *yields_of(op))]
        for top in (loop, renamed)
    )
    assert after == [f"v{name}" for name in before]
    for op in all_ops((substitute_symbols(loop, {0: Constant(5)}),)):
        shapes = [extent for value in defined_by(op) for extent in value.type.shape]
        assert all(isinstance(expr, Constant) for expr in (*affine_of(op), *shapes))


def test_replacing_values_reaches_every_place(func: TensorFunc) -> None:
    def rename(value: Value) -> Value:
        return Value(f"v{value.name}", value.type)

    ops = tuple(replace_values(op, rename) for op in func.ops)
    again = replace(
        func,
        params=tuple(map(rename, func.params)),
        ops=ops,
        results=tuple(map(rename, func.results)),
        assigned=tuple(map(rename, func.assigned)),
    )
    verify_tensor(again)
    assert [value.name for value in all_values(again)] == [
        f"v{value.name}" for value in all_values(func)
    ]
    copy = AllocTensor(func.params[0], func.params[0])
    assert replace_values(copy, rename) == AllocTensor(
        rename(func.params[0]), rename(func.params[0])
    )


def test_mapping_operations_goes_inside_out(func: TensorFunc) -> None:
    seen: list[Op] = []

    def note(op: Op) -> list[Op]:
        seen.append(op)
        return [] if isinstance(op, Materialize) else [op]

    assert map_ops(func.ops, note) == func.ops[:-1]
    assert [type(op).__name__ for op in seen[1:8]] == [
        *("Convert", "Empty", "Generic", "ExtractSlice", "InsertSlice", "Insert", "For")
    ]

    def double(op: Op) -> list[Op]:
        return [op, op] if isinstance(op, Insert) else [op]

    loop = map_ops(func.ops, double)[1]
    assert isinstance(loop, For)
    assert [type(op).__name__ for op in loop.body[-2:]] == ["Insert", "Insert"]


def test_substituting_symbols_reaches_types_and_indices(func: TensorFunc) -> None:
    """With 5 for the extent and 3 for the variable no operation reads a symbol any more."""
    values = {0: Constant(5), 1: Constant(3)}
    for op in (substitute_symbols(op, values) for op in func.ops):
        for inner in all_ops((op,)):
            shapes = [extent for value in results_of(inner) for extent in value.type.shape]
            for expr in (*affine_of(inner), *shapes):
                assert isinstance(expr, Constant)
