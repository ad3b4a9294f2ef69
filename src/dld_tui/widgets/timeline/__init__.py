"""The timeline of one pass."""
