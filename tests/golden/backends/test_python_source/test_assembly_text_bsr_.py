from numpy import empty, float64, full, int32, int64, zeros
from sparsejit.backends.support import (
    assemble_compressed,
    assemble_coordinates,
    assemble_dense,
    assemble_values,
)


def assembled(n0, n1, n2, n3, count, crd0, crd1, crd2, crd3, values):
    A_slot = zeros(count, int64)
    A_slots = int64(1)
    A_slots = assemble_dense(A_slot, A_slots, crd0, n0)
    A_pos1 = empty(int64(A_slots + 1), int32)
    A_slots = assemble_compressed(A_slot, A_slots, crd1, A_pos1)
    A_crd1 = empty(A_slots, int64)
    assemble_coordinates(A_slot, crd1, A_crd1)
    A_slots = assemble_dense(A_slot, A_slots, crd2, n2)
    A_slots = assemble_dense(A_slot, A_slots, crd3, n3)
    A_vals = full(A_slots, float64(-1.0), float64)
    assemble_values(A_slot, values, A_vals)
    return (A_pos1, A_crd1, A_vals)
