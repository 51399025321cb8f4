"""Kernels as Numba CUDA: each ``Launch`` of a function as text, as a cubin, and replayed on a host.

Nothing here needs a device, and neither Numba nor CUDA is imported before the first cubin.
"""

from sparsejit.backends.numba_cuda.kernels import kernel_codes as kernel_codes

__all__ = ["kernel_codes"]
