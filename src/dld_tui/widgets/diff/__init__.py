"""The two columns of a comparison of models."""
