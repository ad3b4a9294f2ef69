"""Comparison of two runs of a model: errors of tensors, tolerances, the first divergence."""
