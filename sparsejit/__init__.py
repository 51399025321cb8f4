"""Sparse kernels from formulas: traced Python functions, lowered as MLIR's sparse compiler does."""

__all__ = ["__version__"]

__version__ = "0.1.0"
