"""What users run instead of sparsejit: a module for each, with a function for each kernel."""
