"""Language models that write token after token: their folders, inputs, figures and budgets.

- :mod:`.folder`: what the folder of a model says of it.
- :mod:`.feeds`: what a decoder is fed with at any length of its cache.
- :mod:`.figures`: what was measured of prefill and decode.
"""
