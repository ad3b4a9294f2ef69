"""The controls of forms."""
