"""What the nodes of a model cost: multiply-accumulates, operations, bytes, parameters.

- :mod:`.counts`: numbers that may hold symbolic dimensions.
- :mod:`.operators`: what one call of an operator computes, by its shapes.
- :mod:`.nodes`: all nodes of a model, with what is inside of them.
- :mod:`.roofline`: how near to what a machine can do a measured layer comes.
- :mod:`.sharing`: how the time of a fused layer is shared among its nodes.
"""
