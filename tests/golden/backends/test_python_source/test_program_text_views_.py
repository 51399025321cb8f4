from numpy import empty, float64, full, int64
from sparsejit.backends.support import copy2, float_max, scalar_view


def views(a, r):
    even = a[0 : (int64(a.shape[0]) + 1) // 2 * 2 : 2, 1 : 4]
    back_upward = a[int64(a.shape[0]) - 1 - (a.shape[0] - 1) : int64(a.shape[0]), 1 : 5 : 3]
    back = back_upward[::-1, ::-1]
    row = a[2, 0 : a.shape[1]]
    flip_upward = r[int64(r.shape[0]) - 1 - (r.shape[0] - 1) : int64(r.shape[0])]
    flip = flip_upward[::-1]
    empty__upward = r[0 : 0]
    empty_ = empty__upward[::-1]
    cell = scalar_view(a[1 : 2, 2 : 3])
    copied = empty((back.shape[0], back.shape[1]), float64)
    copy2(copied, back)
    single = full((), float64(2.0), float64)
    single[()] *= cell[()]
    even[1, 2] = -7.0
    cell[()] = float_max(cell[()], float64(50.0))
    for j in range(row.shape[0]):
        row[j] += flip[j]
    scratch = empty(3, float64)
    cell[()] = single[()]
    r[0] += float64(int64(empty_.shape[0]))
    return (copied, single)
