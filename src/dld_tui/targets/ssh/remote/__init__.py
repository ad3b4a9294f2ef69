"""What runs on a target, under its own Python: the standard library is all it needs."""
