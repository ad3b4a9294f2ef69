"""Initializers and the tensor editor."""
