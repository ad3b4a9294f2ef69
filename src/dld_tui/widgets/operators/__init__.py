"""Operators to search and to read."""
