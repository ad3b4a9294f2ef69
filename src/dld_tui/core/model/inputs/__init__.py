"""Inputs of model runs: shapes, generated data, data from files."""
