"""The support library of generated Python: plain functions that Numba compiles as they stand.

Reading order: ``arrays`` (growth, search, scans), ``halves`` (16-bit floats), ``integers``,
``floats``, ``complexes`` (arithmetic the way NumPy does it), ``assembly`` (level storage). The
scalar functions take and give scalars of the dtypes they name.
"""

from sparsejit.backends.support.arrays import copy1 as copy1
from sparsejit.backends.support.arrays import copy2 as copy2
from sparsejit.backends.support.arrays import copy3 as copy3
from sparsejit.backends.support.arrays import grow as grow
from sparsejit.backends.support.arrays import resize as resize
from sparsejit.backends.support.arrays import scalar_view as scalar_view
from sparsejit.backends.support.arrays import scan_max as scan_max
from sparsejit.backends.support.arrays import scan_sum as scan_sum
from sparsejit.backends.support.arrays import search as search
from sparsejit.backends.support.arrays import search_column as search_column
from sparsejit.backends.support.arrays import search_unordered as search_unordered
from sparsejit.backends.support.arrays import search_unordered_column as search_unordered_column
from sparsejit.backends.support.assembly import assemble_compressed as assemble_compressed
from sparsejit.backends.support.assembly import assemble_coordinates as assemble_coordinates
from sparsejit.backends.support.assembly import assemble_dense as assemble_dense
from sparsejit.backends.support.assembly import assemble_loose as assemble_loose
from sparsejit.backends.support.assembly import assemble_nonunique as assemble_nonunique
from sparsejit.backends.support.assembly import assemble_padded as assemble_padded
from sparsejit.backends.support.assembly import assemble_run as assemble_run
from sparsejit.backends.support.assembly import assemble_structured as assemble_structured
from sparsejit.backends.support.assembly import assemble_values as assemble_values
from sparsejit.backends.support.complex_functions import complex_arccos as complex_arccos
from sparsejit.backends.support.complex_functions import complex_arccosh as complex_arccosh
from sparsejit.backends.support.complex_functions import complex_arcsin as complex_arcsin
from sparsejit.backends.support.complex_functions import complex_arcsinh as complex_arcsinh
from sparsejit.backends.support.complex_functions import complex_arctan as complex_arctan
from sparsejit.backends.support.complex_functions import complex_arctanh as complex_arctanh
from sparsejit.backends.support.complex_functions import complex_cos as complex_cos
from sparsejit.backends.support.complex_functions import complex_cosh as complex_cosh
from sparsejit.backends.support.complex_functions import complex_exp as complex_exp
from sparsejit.backends.support.complex_functions import complex_exp2 as complex_exp2
from sparsejit.backends.support.complex_functions import complex_expm1 as complex_expm1
from sparsejit.backends.support.complex_functions import complex_log as complex_log
from sparsejit.backends.support.complex_functions import complex_log1p as complex_log1p
from sparsejit.backends.support.complex_functions import complex_log2 as complex_log2
from sparsejit.backends.support.complex_functions import complex_log10 as complex_log10
from sparsejit.backends.support.complex_functions import complex_sin as complex_sin
from sparsejit.backends.support.complex_functions import complex_sinh as complex_sinh
from sparsejit.backends.support.complex_functions import complex_sqrt as complex_sqrt
from sparsejit.backends.support.complex_functions import complex_tan as complex_tan
from sparsejit.backends.support.complex_functions import complex_tanh as complex_tanh
from sparsejit.backends.support.complexes import complex_div as complex_div
from sparsejit.backends.support.complexes import complex_fmax as complex_fmax
from sparsejit.backends.support.complexes import complex_fmin as complex_fmin
from sparsejit.backends.support.complexes import complex_greater as complex_greater
from sparsejit.backends.support.complexes import complex_greater_equal as complex_greater_equal
from sparsejit.backends.support.complexes import complex_less as complex_less
from sparsejit.backends.support.complexes import complex_less_equal as complex_less_equal
from sparsejit.backends.support.complexes import complex_max as complex_max
from sparsejit.backends.support.complexes import complex_min as complex_min
from sparsejit.backends.support.complexes import complex_pow as complex_pow
from sparsejit.backends.support.complexes import complex_rint as complex_rint
from sparsejit.backends.support.complexes import complex_sign as complex_sign
from sparsejit.backends.support.floats import float32_bits as float32_bits
from sparsejit.backends.support.floats import float32_from_bits as float32_from_bits
from sparsejit.backends.support.floats import float64_bits as float64_bits
from sparsejit.backends.support.floats import float64_from_bits as float64_from_bits
from sparsejit.backends.support.floats import float_floordiv as float_floordiv
from sparsejit.backends.support.floats import float_fmax as float_fmax
from sparsejit.backends.support.floats import float_fmin as float_fmin
from sparsejit.backends.support.floats import float_max as float_max
from sparsejit.backends.support.floats import float_min as float_min
from sparsejit.backends.support.floats import float_pow as float_pow
from sparsejit.backends.support.floats import float_rem as float_rem
from sparsejit.backends.support.floats import float_sign as float_sign
from sparsejit.backends.support.halves import bf16_to_f32 as bf16_to_f32
from sparsejit.backends.support.halves import f16_to_f32 as f16_to_f32
from sparsejit.backends.support.halves import f32_to_bf16 as f32_to_bf16
from sparsejit.backends.support.halves import f32_to_f16 as f32_to_f16
from sparsejit.backends.support.halves import f64_to_f16 as f64_to_f16
from sparsejit.backends.support.integers import float_to_int8 as float_to_int8
from sparsejit.backends.support.integers import float_to_int16 as float_to_int16
from sparsejit.backends.support.integers import float_to_int32 as float_to_int32
from sparsejit.backends.support.integers import float_to_int64 as float_to_int64
from sparsejit.backends.support.integers import float_to_uint8 as float_to_uint8
from sparsejit.backends.support.integers import float_to_uint16 as float_to_uint16
from sparsejit.backends.support.integers import float_to_uint32 as float_to_uint32
from sparsejit.backends.support.integers import float_to_uint64 as float_to_uint64
from sparsejit.backends.support.integers import int_abs as int_abs
from sparsejit.backends.support.integers import int_floordiv as int_floordiv
from sparsejit.backends.support.integers import int_fmod as int_fmod
from sparsejit.backends.support.integers import int_pow as int_pow
from sparsejit.backends.support.integers import int_rem as int_rem
from sparsejit.backends.support.integers import int_shl as int_shl
from sparsejit.backends.support.integers import int_shr as int_shr
from sparsejit.backends.support.integers import int_sign as int_sign
from sparsejit.backends.support.integers import uint_floordiv as uint_floordiv
from sparsejit.backends.support.integers import uint_fmod as uint_fmod
from sparsejit.backends.support.integers import uint_neg as uint_neg
from sparsejit.backends.support.integers import uint_not as uint_not
from sparsejit.backends.support.integers import uint_pow as uint_pow
from sparsejit.backends.support.integers import uint_rem as uint_rem
from sparsejit.backends.support.integers import uint_shl as uint_shl
from sparsejit.backends.support.integers import uint_shr as uint_shr
from sparsejit.backends.support.integers import uint_sign as uint_sign
from sparsejit.backends.support.sorting import sort_entries as sort_entries
from sparsejit.backends.support.sorting import sort_prefix as sort_prefix

__all__ = [
    "assemble_compressed",
    "assemble_coordinates",
    "assemble_dense",
    "assemble_loose",
    "assemble_nonunique",
    "assemble_padded",
    "assemble_run",
    "assemble_structured",
    "assemble_values",
    "bf16_to_f32",
    "complex_arccos",
    "complex_arccosh",
    "complex_arcsin",
    "complex_arcsinh",
    "complex_arctan",
    "complex_arctanh",
    "complex_cos",
    "complex_cosh",
    "complex_div",
    "complex_exp",
    "complex_exp2",
    "complex_expm1",
    "complex_fmax",
    "complex_fmin",
    "complex_greater",
    "complex_greater_equal",
    "complex_less",
    "complex_less_equal",
    "complex_log",
    "complex_log1p",
    "complex_log2",
    "complex_log10",
    "complex_max",
    "complex_min",
    "complex_pow",
    "complex_rint",
    "complex_sign",
    "complex_sin",
    "complex_sinh",
    "complex_sqrt",
    "complex_tan",
    "complex_tanh",
    "copy1",
    "copy2",
    "copy3",
    "f16_to_f32",
    "f32_to_bf16",
    "f32_to_f16",
    "f64_to_f16",
    "float32_bits",
    "float32_from_bits",
    "float64_bits",
    "float64_from_bits",
    "float_floordiv",
    "float_fmax",
    "float_fmin",
    "float_max",
    "float_min",
    "float_pow",
    "float_rem",
    "float_sign",
    "float_to_int8",
    "float_to_int16",
    "float_to_int32",
    "float_to_int64",
    "float_to_uint8",
    "float_to_uint16",
    "float_to_uint32",
    "float_to_uint64",
    "grow",
    "int_abs",
    "int_floordiv",
    "int_fmod",
    "int_pow",
    "int_rem",
    "int_shl",
    "int_shr",
    "int_sign",
    "resize",
    "scalar_view",
    "scan_max",
    "scan_sum",
    "search",
    "search_column",
    "search_unordered",
    "search_unordered_column",
    "sort_entries",
    "sort_prefix",
    "uint_floordiv",
    "uint_fmod",
    "uint_neg",
    "uint_not",
    "uint_pow",
    "uint_rem",
    "uint_shl",
    "uint_shr",
    "uint_sign",
]
