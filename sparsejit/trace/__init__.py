"""Tracing: from a Python function over arrays to the tensor IR.

What enters is the user's function with its arguments as ``Slot``s; what leaves is a ``Traced``.
Reading order: ``_interface``, ``_trace``, ``_context``, ``_pointwise``, ``_array``, ``_tracer``;
then ``_einsum``, ``_elementwise``, ``_reduce``, ``_indexed``, ``_statements``, ``_assignment``,
``_emit``.
"""

from sparsejit.trace._arg_reductions import argmax as argmax
from sparsejit.trace._arg_reductions import argmin as argmin
from sparsejit.trace._context import current_trace as current_trace
from sparsejit.trace._context import is_tracing as is_tracing
from sparsejit.trace._context import trace_in_progress as trace_in_progress
from sparsejit.trace._control import cond as cond
from sparsejit.trace._control import fori_loop as fori_loop
from sparsejit.trace._control import while_loop as while_loop
from sparsejit.trace._elementwise import maximum as maximum
from sparsejit.trace._elementwise import minimum as minimum
from sparsejit.trace._elementwise import where as where
from sparsejit.trace._elementwise import where_stored as where_stored
from sparsejit.trace._fold import reduce as reduce
from sparsejit.trace._indexed import indices as indices
from sparsejit.trace._interface import ArgumentKind as ArgumentKind
from sparsejit.trace._interface import ArgumentSpec as ArgumentSpec
from sparsejit.trace._interface import ResultRef as ResultRef
from sparsejit.trace._interface import Slot as Slot
from sparsejit.trace._interface import Traced as Traced
from sparsejit.trace._interface import TraceOptions as TraceOptions
from sparsejit.trace._interface import guards_hold as guards_hold
from sparsejit.trace._outputs import output as output
from sparsejit.trace._pattern_ops import binary as binary
from sparsejit.trace._pattern_ops import select as select
from sparsejit.trace._pattern_ops import unary as unary
from sparsejit.trace._reduce import all as all
from sparsejit.trace._reduce import any as any
from sparsejit.trace._reduce import max as max
from sparsejit.trace._reduce import mean as mean
from sparsejit.trace._reduce import min as min
from sparsejit.trace._reduce import prod as prod
from sparsejit.trace._reduce import sum as sum
from sparsejit.trace._semirings import einsum as einsum
from sparsejit.trace._softmax import softmax as softmax
from sparsejit.trace._trace import trace as trace
from sparsejit.trace._tracer import ArrayTracer as ArrayTracer
from sparsejit.trace._update import update as update
