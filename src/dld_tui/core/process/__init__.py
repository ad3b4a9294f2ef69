"""This process of Python: its garbage collector, its terminal, and packages that extend it."""
