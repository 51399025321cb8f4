"""The rules of the tensor IR."""

from __future__ import annotations

from sparsejit.ir.tensor import TensorFunc

__all__ = ["verify_tensor"]


def verify_tensor(func: TensorFunc, after: str = "") -> None:
    """Raise ``VerificationError`` where ``func`` breaks a rule; ``after`` names the pass before."""
