"""The table of layers."""
