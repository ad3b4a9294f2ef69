"""Errors of the outputs of a model: of two runs, on a dataset, and by precision of its nodes."""
