"""Operators: signatures, defaults, documentation, categories."""
