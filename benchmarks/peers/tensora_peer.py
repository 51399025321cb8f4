"""tensora, a compiler in the manner of TACO with an LLVM back end: float64, one thread."""

import numpy as np
import scipy.sparse as sp
from tensora import Tensor, tensor_method
from tensora.compile import _cffi_ownership as own

NAME, REQUIRES = "tensora", "tensora"
ffi = own.tensor_cdefs


def _mk(levels, vals, dims, order=None):
    """levels: list of None (dense) or (pos, crd); zero-copy views of numpy arrays."""
    if vals.dtype != np.float64:
        raise NotImplementedError("float64 only")
    modes = tuple(0 if l is None else 1 for l in levels)
    t = own.allocate_taco_structure(modes, tuple(dims), order or tuple(range(len(dims))))
    keep = own.global_weakkeydict[t]
    idx = ffi.cast("int32_t***", t.indices)
    held = [vals]
    for n, l in enumerate(levels):
        if l is not None:
            for q, arr in enumerate(l):
                arr = np.ascontiguousarray(arr, np.int32)
                held.append(arr)
                idx[n][q] = ffi.cast("int32_t*", arr.ctypes.data)
    t.vals = ffi.cast("double*", vals.ctypes.data)
    keep["numpy"] = held
    return Tensor(t)


def _m(A):
    return _mk([None, (A.indptr, A.indices)], A.data, A.shape)


def _csc(A):
    C = A.tocsc()
    C.sort_indices()
    return _mk([None, (C.indptr, C.indices)], C.data, A.shape, (1, 0))


def _d(x):
    return _mk([None] * x.ndim, x.ravel(), x.shape)


def _arr(p, n, dt):
    return (
        np.frombuffer(ffi.buffer(p, n * np.dtype(dt).itemsize), dt).copy() if n else np.empty(0, dt)
    )


def _nd(t):
    d = t.dimensions
    return _arr(ffi.cast("double*", t.cffi_tensor.vals), int(np.prod(d)), np.float64).reshape(d)


def _sp(t):
    m, n = t.dimensions
    ix = ffi.cast("int32_t***", t.cffi_tensor.indices)
    ptr = _arr(ix[1][0], m + 1, np.int32)
    z = int(ptr[-1])
    return sp.csr_matrix(
        (
            _arr(ffi.cast("double*", t.cffi_tensor.vals), z, np.float64),
            _arr(ix[1][1], z, np.int32),
            ptr,
        ),
        shape=(m, n),
    )


def spmv(a):
    f = tensor_method("y(i)=A(i,j)*x(j)", {"A": "ds", "x": "d", "y": "d"})
    A, x = _m(a.A), _d(a.x)
    return (lambda: f(A=A, x=x)), _nd


def spmm(a):
    f = tensor_method("Y(i,k)=A(i,j)*X(j,k)", {"A": "ds", "X": "dd", "Y": "dd"})
    A, X = _m(a.A), _d(a.X)
    return (lambda: f(A=A, X=X)), _nd


def sddmm(a):
    f = tensor_method("C(i,j)=S(i,j)*U(i,k)*V(j,k)", {"S": "ds", "U": "dd", "V": "dd", "C": "ds"})
    S, U, V = _m(a.S), _d(a.U), _d(a.V)
    return (lambda: f(S=S, U=U, V=V)), _sp


def add(a):
    f = tensor_method("C(i,j)=A(i,j)+B(i,j)", {"A": "ds", "B": "ds", "C": "ds"})
    A, B = _m(a.A), _m(a.B)
    return (lambda: f(A=A, B=B)), _sp


def mul(a):
    f = tensor_method("C(i,j)=A(i,j)*B(i,j)", {"A": "ds", "B": "ds", "C": "ds"})
    A, B = _m(a.A), _m(a.B)
    return (lambda: f(A=A, B=B)), _sp


def masked(a):
    f = tensor_method("C(i,j)=M(i,j)*A(i,k)*B(k,j)", {"M": "ds", "A": "ds", "B": "d1s0", "C": "ds"})
    M, A, B = _m(a.M), _m(a.A), _csc(a.B)
    return (lambda: f(M=M, A=A, B=B)), _sp


def fused_aa(a):
    f = tensor_method("y(i)=A(i,j)*x(j)", {"A": "ds", "x": "d", "y": "d"})
    g = tensor_method("y(i)=A(i,j)*x(j)+2.0*z(i)", {"A": "ds", "x": "d", "z": "d", "y": "d"})
    A, B, x, z = _m(a.A), _m(a.B), _d(a.x), _d(a.z)
    return (lambda: g(A=A, x=f(A=B, x=x), z=z)), _nd


def fused_inner(a):
    f = tensor_method("s()=S(i,j)*U(i,k)*V(j,k)", {"S": "ds", "U": "dd", "V": "dd", "s": ""})
    S, U, V = _m(a.S), _d(a.U), _d(a.V)
    return (lambda: f(S=S, U=U, V=V)), lambda t: float(t)


def _t(T):
    return _mk([(T.ipos, T.iidx), (T.jpos, T.jidx), (T.kpos, T.kidx)], T.vals, T.shape)


def mttkrp(a):
    formats = {"T": "sss", "U": "dd", "V": "dd", "C": "dd"}
    f = tensor_method("C(i,r)=T(i,j,k)*U(j,r)*V(k,r)", formats)
    T, U, V = _t(a.T), _d(a.U), _d(a.V)
    return (lambda: f(T=T, U=U, V=V)), _nd


def ttv(a):
    f = tensor_method("C(i,j)=T(i,j,k)*v(k)", {"T": "sss", "v": "d", "C": "dd"})
    T, v = _t(a.T), _d(a.v)
    return (lambda: f(T=T, v=v)), _nd


def ttm(a):
    f = tensor_method("C(i,j,r)=T(i,j,k)*W(k,r)", {"T": "sss", "W": "dd", "C": "ddd"})
    T, W = _t(a.T), _d(a.W)
    return (lambda: f(T=T, W=W)), _nd
