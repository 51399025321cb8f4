"""Every legal function survives ``eval(repr(...))``, prints the same twice, and is accepted."""

from hypothesis import given, settings

from sparsejit import affine, formats
from sparsejit.errors import Location
from sparsejit.ir import facts, loops, ops, scalar, tensor, types
from sparsejit.ir.loop_printing import print_loops
from sparsejit.ir.loop_walk import map_body
from sparsejit.ir.printing import print_tensor
from sparsejit.ir.verify import verify_tensor
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.ir.walk import map_ops
from tests.ir.loop_functions import loop_functions
from tests.ir.tensor_functions import tensor_functions

SHARED = {**vars(affine), **vars(formats), **vars(types), **vars(ops), "Location": Location}
TENSOR = {**SHARED, **vars(scalar), **vars(tensor)}
LOOPS = {**SHARED, **vars(facts), "Const": scalar.Const, **vars(loops)}


@given(tensor_functions())
def test_tensor_functions(func: tensor.TensorFunc) -> None:
    again = eval(repr(func), TENSOR)
    assert again == func
    assert hash(again) == hash(func)
    verify_tensor(again)
    assert print_tensor(again) == print_tensor(func)
    assert map_ops(func.ops, lambda op: (op,)) == func.ops


@settings(max_examples=50)
@given(loop_functions())
def test_loop_functions(func: loops.LoopFunc) -> None:
    again = eval(repr(func), LOOPS)
    assert again == func
    assert hash(again) == hash(func)
    verify_loops(again)
    assert print_loops(again) == print_loops(func)
    assert map_body(func.body) == func.body
