"""Conversions: each writes another model, and shows that its values are right."""
