"""The cost of a model's nodes: multiply-accumulates, operations, bytes, parameters.

- :mod:`.operators`: the work of one call of an operator, from its shapes.
- :mod:`.nodes`: all nodes of a model, including subgraphs and functions.
"""
