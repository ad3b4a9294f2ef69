"""Comparing reports, and comparing models."""
