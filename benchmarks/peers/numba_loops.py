"""The loops of the Numba peer, as a good engineer writes them: chunks of equal entries."""

import os

import numpy as np
from numba import njit, prange

THREADS = int(os.environ.get("BENCHMARK_THREADS", "2"))
CH = 4 * THREADS
_o = {"parallel": True, "fastmath": True, "nogil": True}


@njit(inline="always")
def bounds_loops(ptr, ch):
    m = ptr.size - 1
    b = np.empty(ch + 1, np.int64)
    b[0] = 0
    b[ch] = m
    for c in range(1, ch):
        b[c] = min(m, np.searchsorted(ptr, (np.int64(ptr[m]) * c) // ch))
    return b


@njit(**_o)
def spmv_loops(ptr, idx, val, x, ch):
    m = ptr.size - 1
    y = np.empty(m, val.dtype)
    b = bounds_loops(ptr, ch)
    for c in prange(ch):
        for i in range(b[c], b[c + 1]):
            s = val.dtype.type(0)
            for p in range(ptr[i], ptr[i + 1]):
                s += val[p] * x[idx[p]]
            y[i] = s
    return y


@njit(**_o)
def spmm_loops(ptr, idx, val, X, ch):
    m = ptr.size - 1
    k = X.shape[1]
    Y = np.empty((m, k), val.dtype)
    b = bounds_loops(ptr, ch)
    for c in prange(ch):
        for i in range(b[c], b[c + 1]):
            y = Y[i]
            for r in range(k):
                y[r] = 0
            for p in range(ptr[i], ptr[i + 1]):
                v = val[p]
                xr = X[idx[p]]
                for r in range(k):
                    y[r] += v * xr[r]
    return Y


@njit(**_o)
def sddmm_loops(ptr, idx, val, U, V, ch):
    k = U.shape[1]
    out = np.empty(val.size, val.dtype)
    b = bounds_loops(ptr, ch)
    for c in prange(ch):
        for i in range(b[c], b[c + 1]):
            u = U[i]
            for p in range(ptr[i], ptr[i + 1]):
                v = V[idx[p]]
                s = val.dtype.type(0)
                for r in range(k):
                    s += u[r] * v[r]
                out[p] = val[p] * s
    return out


@njit(**_o)
def inner_loops(ptr, idx, val, U, V, ch):
    k = U.shape[1]
    part = np.zeros(ch * 8)
    b = bounds_loops(ptr, ch)
    for c in prange(ch):
        tot = 0.0
        for i in range(b[c], b[c + 1]):
            u = U[i]
            for p in range(ptr[i], ptr[i + 1]):
                v = V[idx[p]]
                s = val.dtype.type(0)
                for r in range(k):
                    s += u[r] * v[r]
                tot += val[p] * s
        part[c * 8] = tot
    return part.sum()


@njit(**_o)
def attn_loops(ptr, idx, val, Q, K, V, ch):  # noqa: C901 one kernel is one function
    m = ptr.size - 1
    k = Q.shape[1]
    d = V.shape[1]
    Y = np.empty((m, d), val.dtype)
    b = bounds_loops(ptr, ch)
    for c in prange(ch):
        mxw = 0
        for i in range(b[c], b[c + 1]):
            mxw = max(mxw, ptr[i + 1] - ptr[i])
        buf = np.empty(mxw, val.dtype)
        for i in range(b[c], b[c + 1]):
            s0 = ptr[i]
            n = ptr[i + 1] - s0
            y = Y[i]
            for r in range(d):
                y[r] = 0
            if n == 0:
                continue
            q = Q[i]
            mx = val.dtype.type(-np.inf)
            for t in range(n):
                kk = K[idx[s0 + t]]
                s = val.dtype.type(0)
                for r in range(k):
                    s += q[r] * kk[r]
                s *= val[s0 + t]
                buf[t] = s
                mx = max(mx, s)
            tot = val.dtype.type(0)
            for t in range(n):
                buf[t] = np.exp(buf[t] - mx)
                tot += buf[t]
            for t in range(n):
                w = buf[t] / tot
                v = V[idx[s0 + t]]
                for r in range(d):
                    y[r] += w * v[r]
    return Y


@njit(**_o)
def spgemm_count_loops(ap, ai, bp, bi, n, ch):
    m = ap.size - 1
    cnt = np.zeros(m + 1, np.int64)
    b = bounds_loops(ap, ch)
    for c in prange(ch):
        mark = np.full(n, -1, np.int32)
        for i in range(b[c], b[c + 1]):
            q = 0
            for p in range(ap[i], ap[i + 1]):
                k = ai[p]
                for t in range(bp[k], bp[k + 1]):
                    j = bi[t]
                    if mark[j] != i:
                        mark[j] = i
                        q += 1
            cnt[i + 1] = q
    return cnt


@njit(**_o)
def spgemm_num_loops(ap, ai, av, bp, bi, bv, n, cp, ch):
    ci = np.empty(cp[-1], np.int32)
    cv = np.empty(cp[-1], av.dtype)
    b = bounds_loops(ap, ch)
    for c in prange(ch):
        pos = np.full(n, -1, np.int64)
        for i in range(b[c], b[c + 1]):
            base = cp[i]
            w = base
            for p in range(ap[i], ap[i + 1]):
                k = ai[p]
                v = av[p]
                for t in range(bp[k], bp[k + 1]):
                    j = bi[t]
                    q = pos[j]
                    if q < base:
                        pos[j] = w
                        ci[w] = j
                        cv[w] = v * bv[t]
                        w += 1
                    else:
                        cv[q] += v * bv[t]
    return ci, cv


@njit(**_o)
def masked_loops(mp, mi, mv, ap, ai, av, bp, bi, bv, n, ch):
    out = np.zeros(mv.size, mv.dtype)
    b = bounds_loops(mp, ch)
    for c in prange(ch):
        pos = np.full(n, -1, np.int64)
        for i in range(b[c], b[c + 1]):
            s, e = mp[i], mp[i + 1]
            for p in range(s, e):
                pos[mi[p]] = p
            for p in range(ap[i], ap[i + 1]):
                k = ai[p]
                v = av[p]
                for t in range(bp[k], bp[k + 1]):
                    q = pos[bi[t]]
                    if q >= s:
                        out[q] += v * bv[t]
            for p in range(s, e):
                out[p] *= mv[p]
    return out


@njit(**_o)
def union_count_loops(ap, ai, bp, bi, inter, ch):
    m = ap.size - 1
    cnt = np.zeros(m + 1, np.int64)
    b = bounds_loops(ap, ch)
    for c in prange(ch):
        for i in range(b[c], b[c + 1]):
            p, pe, q, qe, x = ap[i], ap[i + 1], bp[i], bp[i + 1], 0
            tot = (pe - p) + (qe - q)
            while p < pe and q < qe:
                u, v = ai[p], bi[q]
                x += u == v
                p += u <= v
                q += v <= u
            cnt[i + 1] = x if inter else tot - x
    return cnt


@njit(**_o)
def add_loops(ap, ai, av, bp, bi, bv, cp, ch):
    ci = np.empty(cp[-1], np.int32)
    cv = np.empty(cp[-1], av.dtype)
    b = bounds_loops(ap, ch)
    for c in prange(ch):
        for i in range(b[c], b[c + 1]):
            p, pe, q, qe, w = ap[i], ap[i + 1], bp[i], bp[i + 1], cp[i]
            while p < pe and q < qe:
                u, v = ai[p], bi[q]
                if u == v:
                    ci[w] = u
                    cv[w] = av[p] + bv[q]
                    p += 1
                    q += 1
                elif u < v:
                    ci[w] = u
                    cv[w] = av[p]
                    p += 1
                else:
                    ci[w] = v
                    cv[w] = bv[q]
                    q += 1
                w += 1
            while p < pe:
                ci[w] = ai[p]
                cv[w] = av[p]
                p += 1
                w += 1
            while q < qe:
                ci[w] = bi[q]
                cv[w] = bv[q]
                q += 1
                w += 1
    return ci, cv


@njit(**_o)
def mul_loops(ap, ai, av, bp, bi, bv, cp, ch):
    ci = np.empty(cp[-1], np.int32)
    cv = np.empty(cp[-1], av.dtype)
    b = bounds_loops(ap, ch)
    for c in prange(ch):
        for i in range(b[c], b[c + 1]):
            p, pe, q, qe, w = ap[i], ap[i + 1], bp[i], bp[i + 1], cp[i]
            while p < pe and q < qe:
                u, v = ai[p], bi[q]
                if u == v:
                    ci[w] = u
                    cv[w] = av[p] * bv[q]
                    w += 1
                p += u <= v
                q += v <= u
    return ci, cv


@njit(**_o)
def aa_tail_loops(ptr, idx, val, x, z, ch):
    m = ptr.size - 1
    y = np.empty(m, val.dtype)
    b = bounds_loops(ptr, ch)
    for c in prange(ch):
        for i in range(b[c], b[c + 1]):
            s = val.dtype.type(0)
            for p in range(ptr[i], ptr[i + 1]):
                s += val[p] * x[idx[p]]
            y[i] = s + 2 * z[i]
    return y


@njit(**_o)
def mttkrp_loops(iidx, jpos, jidx, kpos, kidx, val, U, V, I, ch):
    R = U.shape[1]
    out = np.zeros((I, R), val.dtype)
    n = iidx.size
    for c in prange(ch):
        tmp = np.empty(R, val.dtype)
        for a in range(n * c // ch, n * (c + 1) // ch):
            o = out[iidx[a]]
            for f in range(jpos[a], jpos[a + 1]):
                for r in range(R):
                    tmp[r] = 0
                for p in range(kpos[f], kpos[f + 1]):
                    v = val[p]
                    vr = V[kidx[p]]
                    for r in range(R):
                        tmp[r] += v * vr[r]
                u = U[jidx[f]]
                for r in range(R):
                    o[r] += tmp[r] * u[r]
    return out


@njit(**_o)
def mttkrp_coo_loops(i, j, k, val, U, V, I, ch):
    R = U.shape[1]
    part = np.zeros((ch, I, R), val.dtype)
    n = val.size
    for c in prange(ch):
        P = part[c]
        for p in range(n * c // ch, n * (c + 1) // ch):
            o = P[i[p]]
            u = U[j[p]]
            w = V[k[p]]
            v = val[p]
            for r in range(R):
                o[r] += v * u[r] * w[r]
    for c in range(1, ch):
        part[0] += part[c]
    return part[0]


@njit(**_o)
def ttv_loops(iidx, jpos, jidx, kpos, kidx, val, v, I, J, ch):
    out = np.zeros((I, J), val.dtype)
    n = iidx.size
    for c in prange(ch):
        for a in range(n * c // ch, n * (c + 1) // ch):
            o = out[iidx[a]]
            for f in range(jpos[a], jpos[a + 1]):
                s = val.dtype.type(0)
                for p in range(kpos[f], kpos[f + 1]):
                    s += val[p] * v[kidx[p]]
                o[jidx[f]] = s
    return out


@njit(**_o)
def ttm_loops(iidx, jpos, jidx, kpos, kidx, val, W, I, J, ch):
    R = W.shape[1]
    out = np.zeros((I, J, R), val.dtype)
    n = iidx.size
    for c in prange(ch):
        for a in range(n * c // ch, n * (c + 1) // ch):
            for f in range(jpos[a], jpos[a + 1]):
                o = out[iidx[a], jidx[f]]
                for p in range(kpos[f], kpos[f + 1]):
                    v = val[p]
                    w = W[kidx[p]]
                    for r in range(R):
                        o[r] += v * w[r]
    return out
