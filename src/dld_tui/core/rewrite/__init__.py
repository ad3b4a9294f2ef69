"""Patterns over graphs, queries over nodes, and rules that rewrite what a pattern finds."""
