from numpy import empty, int64
from sparsejit.backends.support import (
    search,
    search_column,
    search_unordered,
    search_unordered_column,
)


def searches(crd, mixed, pairs, keys):
    found = empty(keys.shape[0], int64)
    found_mixed = empty(keys.shape[0], int64)
    found_pairs = empty(keys.shape[0], int64)
    found_last = empty(keys.shape[0], int64)
    for i in range(keys.shape[0]):
        key = keys[i]
        found[i] = search(crd, int64(1), int64(crd.shape[0]), key)
        found_mixed[i] = search_unordered(mixed, int64(1), int64(mixed.shape[0]), key)
        found_pairs[i] = search_column(pairs, int64(1), int64(pairs.shape[0]), key, 0)
        found_last[i] = search_unordered_column(pairs, int64(1), int64(pairs.shape[0]), key, 1)
    return (found, found_mixed, found_pairs, found_last)
