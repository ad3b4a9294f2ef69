"""Tools of the user: programs that are given a model."""
