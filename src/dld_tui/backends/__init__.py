"""The only rooms that import an inference library; each does it on first use."""
