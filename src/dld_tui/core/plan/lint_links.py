"""How the layers of an engine hang together, for the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dld_tui.core.plan.macs import is_convolution, is_product

if TYPE_CHECKING:
    from dld_tui.core.plan.model import EngineLayer, EnginePlan

_MOST_STEPS = 64
_MOST_LINKS = 8
"""Layers that are followed from one tensor."""


class Links:
    """The layers that write and read each tensor; layers go by their place in ``plan.layers``."""

    def __init__(self, plan: EnginePlan) -> None:
        self.layers = plan.layers
        self._makers: dict[str, list[int]] = {}
        self._readers: dict[str, list[int]] = {}
        for place, layer in enumerate(plan.layers):
            for tensor in layer.outputs:
                self._makers.setdefault(tensor.name, []).append(place)
            for tensor in layer.inputs:
                for name in tensor.source_names:
                    self._readers.setdefault(name, []).append(place)
        self._ends = {
            mode: {tensor.name for tensor in plan.bindings if tensor.mode == mode}
            for mode in ("input", "output")
        }
        # A log's table of layers has no bindings: they are what nobody writes, or nobody reads.
        self._ends["input"] = self._ends["input"] or self._readers.keys() - self._makers.keys()
        self._ends["output"] = self._ends["output"] or self._makers.keys() - self._readers.keys()

    def before(self, place: int) -> list[int]:
        """Return the layers that write what a layer reads."""
        names = (name for tensor in self.layers[place].inputs for name in tensor.source_names)
        return [maker for name in names for maker in self._makers.get(name, ())[:_MOST_LINKS]]

    def after(self, place: int) -> list[int]:
        """Return the layers that read what a layer writes."""
        names = (tensor.name for tensor in self.layers[place].outputs)
        return [reader for name in names for reader in self._readers.get(name, ())[:_MOST_LINKS]]

    def is_at_input(self, place: int) -> bool:
        """Tell whether a layer reads an input of the engine, with no heavy layer in between."""
        return self._is_at_end(place, self.before, "input")

    def is_at_output(self, place: int) -> bool:
        """Tell whether what a layer makes goes to an output of the engine and no heavy layer."""
        return self._is_at_end(place, self.after, "output")

    def _is_at_end(self, start: int, step: Callable[[int], list[int]], mode: str) -> bool:
        ends = self._ends[mode]
        seen, waiting = {start}, [start]
        reached = False
        while waiting:
            place = waiting.pop()
            layer = self.layers[place]
            if place != start and is_heavy(layer):
                return False
            names = self._names(layer, mode)
            reached |= not ends.isdisjoint(names)
            for other in step(place):
                if other not in seen:
                    if len(seen) >= _MOST_STEPS:
                        return False
                    seen.add(other)
                    waiting.append(other)
        return reached

    @staticmethod
    def _names(layer: EngineLayer, mode: str) -> Sequence[str]:
        if mode == "output":
            return [tensor.name for tensor in layer.outputs]
        return [name for tensor in layer.inputs for name in tensor.source_names]

    def reaches_product(self, start: int, step: Callable[[int], list[int]], near: int) -> bool:
        """Tell whether a matrix product is at most `near` layers away."""
        seen, ring = {start}, [start]
        for _ in range(near):
            ring = [other for place in ring for other in step(place) if other not in seen]
            if any(is_product(self.layers[place]) for place in ring):
                return True
            if len(seen) > _MOST_STEPS:
                return False
            seen.update(ring)
        return False


def is_heavy(layer: EngineLayer) -> bool:
    """Tell whether a layer is a convolution or a matrix product."""
    return is_convolution(layer) or is_product(layer)
