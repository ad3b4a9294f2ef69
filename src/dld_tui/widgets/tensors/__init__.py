"""Tensors as grids, and the list of initializers."""
