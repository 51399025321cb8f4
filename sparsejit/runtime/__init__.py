"""The runtime: what a machine has, and how launch plans run on it."""

__all__: list[str] = []
