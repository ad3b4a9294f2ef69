"""Conversions of whole models: each creates a copy and reports its changes."""
