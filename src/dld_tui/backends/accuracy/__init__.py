"""Runs of two sides of a comparison, and the trials of searches."""
