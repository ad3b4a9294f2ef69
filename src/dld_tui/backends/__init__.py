"""The only package that imports inference libraries, each on first use."""
