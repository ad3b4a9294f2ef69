"""The cost of a model's nodes: multiply-accumulates, operations, bytes, parameters.

- :mod:`.operators`: the work of one call of an operator, from its shapes (:mod:`.call_shapes`);
  :mod:`.attention`: that of attention.
- :mod:`.nodes`: all nodes of a model, including subgraphs and functions.
- :mod:`.memory`: the memory of a run, by the lifetimes of its tensors.
- :mod:`.forecast`: what a run takes, before the model is loaded.
"""
