"""Decoder language models: their folders, inputs and budgets.

- :mod:`.folder`: the folder of a model and its configuration.
- :mod:`.feeds`: the inputs of a decoder at any length of its cache.
"""
