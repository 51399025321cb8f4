"""Tensors at the border: storage of every format, and the objects that callers hand over.

What enters are NumPy, SciPy, CuPy, pydata and torch objects; what leaves are ``Operand``s, uniform
descriptions whose buffers are shared with the caller's object, and results in the caller's kind of
object. ``SparseTensor`` holds any format.
"""

from sparsejit.tensors._asarray import asarray as asarray
from sparsejit.tensors._asarray import prune as prune
from sparsejit.tensors._asarray import to_device as to_device
from sparsejit.tensors._canonical import canonical_format as canonical_format
from sparsejit.tensors._concrete import concrete as concrete
from sparsejit.tensors._convert import drops_fill as drops_fill
from sparsejit.tensors._convert import fitted as fitted
from sparsejit.tensors._create import from_coo as from_coo
from sparsejit.tensors._create import from_dense as from_dense
from sparsejit.tensors._dtypes import VALUE_TYPES as VALUE_TYPES
from sparsejit.tensors._interop import Check as Check
from sparsejit.tensors._interop import describe as describe
from sparsejit.tensors._interop import operand_of as operand_of
from sparsejit.tensors._operand import Operand as Operand
from sparsejit.tensors._ready import LOOKS as LOOKS
from sparsejit.tensors._ready import Ready as Ready
from sparsejit.tensors._ready import ready_of as ready_of
from sparsejit.tensors._results import Like as Like
from sparsejit.tensors._results import result_maker as result_maker
from sparsejit.tensors._results import wrap_result as wrap_result
from sparsejit.tensors._sparse_tensor import SparseTensor as SparseTensor
from sparsejit.tensors._sparse_tensor import convert_in_numpy as convert_in_numpy
from sparsejit.tensors._sparse_tensor import host_tensor as host_tensor
from sparsejit.tensors._sparse_tensor import install_convert as install_convert
from sparsejit.tensors._sparse_tensor import trusted_tensor as trusted_tensor
from sparsejit.tensors._storage import Structure as Structure
from sparsejit.tensors._storage import buffer_names as buffer_names
from sparsejit.tensors._storage import join_buffers as join_buffers
from sparsejit.tensors._storage import scipy_index_dtype as scipy_index_dtype
from sparsejit.tensors._storage import split_buffers as split_buffers
from sparsejit.tensors._stored_facts import stored_facts as stored_facts
from sparsejit.tensors._values import ValuePlan as ValuePlan

__all__ = [
    "LOOKS",
    "VALUE_TYPES",
    "Like",
    "Operand",
    "Ready",
    "SparseTensor",
    "Structure",
    "ValuePlan",
    "asarray",
    "buffer_names",
    "canonical_format",
    "concrete",
    "convert_in_numpy",
    "describe",
    "drops_fill",
    "fitted",
    "from_coo",
    "from_dense",
    "host_tensor",
    "install_convert",
    "join_buffers",
    "operand_of",
    "prune",
    "ready_of",
    "result_maker",
    "scipy_index_dtype",
    "split_buffers",
    "stored_facts",
    "to_device",
    "trusted_tensor",
    "wrap_result",
]
