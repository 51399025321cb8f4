from numpy import full, int64, int8
from sparsejit.backends.support import int_floordiv


def narrow(x):
    total = full(1, int8(-100), int8)
    s = int8(5)
    for i in range(x.shape[0]):
        v = x[i]
        total[0] += int8(v * int8(v + v))
        s = max(int8(s * v), int8(-v))
        x[i] = int8(int_floordiv(int64(int8(v * int8(v + v))), int64(s)))
    total[0] = int8(total[0] ^ s)
    return (total,)
