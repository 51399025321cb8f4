"""How the work of an operation grows, counted in statements, not in seconds."""
