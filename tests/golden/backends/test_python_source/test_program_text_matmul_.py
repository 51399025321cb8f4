from numpy import float64


def matmul(a, b, c):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = float64(0.0)
            for k in range(a.shape[1]):
                s = s + a[i, k] * b[k, j]
            c[i, j] += s
    return ()
