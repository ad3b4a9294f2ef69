"""Whether two runs of a model agree: errors of tensors, tolerances, the first divergence."""
