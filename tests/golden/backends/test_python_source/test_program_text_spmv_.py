from numpy import float64, int64, zeros


def spmv(d0, d1, A_pos1, A_crd1, A_vals, x):
    y = zeros(d0, float64)
    for i in range(d0):
        for p in range(int64(A_pos1[i]), int64(A_pos1[i + 1])):
            j = int64(A_crd1[p])
            y[i] += A_vals[p] * x[j]
    return (y,)
