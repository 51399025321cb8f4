from numpy import empty, float64, full, int32, int64, zeros
from sparsejit.backends.support import assemble_coordinates, assemble_nonunique, assemble_values


def assembled(n0, n1, count, crd0, crd1, values):
    A_slot = zeros(count, int64)
    A_slots = int64(1)
    A_pos0 = empty(int64(A_slots + 1), int32)
    A_slots = assemble_nonunique(A_slot, A_slots, crd0, A_pos0)
    A_crd0 = empty((A_slots, 2), int64)
    assemble_coordinates(A_slot, crd0, A_crd0[:, 0])
    assemble_coordinates(A_slot, crd1, A_crd0[:, 1])
    A_vals = full(A_slots, float64(-1.0), float64)
    assemble_values(A_slot, values, A_vals)
    return (A_pos0, A_crd0, A_vals)
