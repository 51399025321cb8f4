from numpy import empty, float64, full, int64, zeros
from sparsejit.backends.support import assemble_dense, assemble_structured, assemble_values


def assembled(n0, n1, n2, count, crd0, crd1, crd2, values):
    A_slot = zeros(count, int64)
    A_slots = int64(1)
    A_slots = assemble_dense(A_slot, A_slots, crd0, n0)
    A_slots = assemble_dense(A_slot, A_slots, crd1, n1)
    A_crd2 = empty(A_slots * 2, int64)
    A_slots = assemble_structured(A_slot, A_slots, crd2, A_crd2, int64(2), int64(4))
    A_vals = full(A_slots, float64(-1.0), float64)
    assemble_values(A_slot, values, A_vals)
    return (A_crd2, A_vals)
