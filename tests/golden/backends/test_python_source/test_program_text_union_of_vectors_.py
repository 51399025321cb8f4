from numpy import empty, float32, int32, int64
from sparsejit.backends.support import grow, resize


def union(a_crd0, a_vals, b_crd0, b_vals):
    c_crd0 = empty(0, int32)
    c_vals = empty(1, float32)
    p = int64(0)
    q = int64(0)
    count = int64(0)
    while (p < a_crd0.shape[0]) | (q < b_crd0.shape[0]):
        ia = int64(int64(a_crd0[p]) if p < a_crd0.shape[0] else 4611686018427387904)
        ib = int64(int64(b_crd0[q]) if q < b_crd0.shape[0] else 4611686018427387904)
        i = min(ia, ib)
        in_a = ia == i
        in_b = ib == i
        total = float32(0.0)
        if in_a:
            total = total + a_vals[p]
            p = p + 1
        if in_b:
            total = total + b_vals[q]
            q = q + 1
        if count >= c_crd0.size:
            c_crd0 = grow(c_crd0, count)
        c_crd0[count] = int32(i)
        if count >= c_vals.size:
            c_vals = grow(c_vals, count)
        c_vals[count] = total
        count = count + 1
    c_crd0 = resize(c_crd0, count)
    c_vals = resize(c_vals, count)
    return (c_crd0, c_vals)
