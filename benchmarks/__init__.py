"""Benchmarks: sparsejit and its peers in one process, their first calls, and tables of ratios."""
