"""Tests that want a real device: `python -m pytest -m gpu`; `SPARSEJIT_DEVICE=fake` tries them."""
