"""Profiles of a model, of its layers and nodes, with each runtime."""
