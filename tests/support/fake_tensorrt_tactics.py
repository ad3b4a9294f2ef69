"""Tactics of the fake of TensorRT: an algorithm selector, and an editable timing cache.

Use::

    trt = fake_tensorrt()
    tactics = simulate(trt, wrong={("last", 102)})   # engines compute; this tactic spoils them
    tactics.fastest = [{}, {"last": 102}]            # of the second build that is left alone

Each layer has the tactics of :data:`NUMBERS`. See :mod:`tests.support.fake_tensorrt`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.support.fake_tensorrt_network import log

NUMBERS = (101, 102, 103)
"""Tactics of a layer, the fastest first unless a test says otherwise."""
INVALID = (1 << 64) - 1
"""The hash that a cache gives for a key that it does not have."""


@dataclass
class Tactics:
    """What the fake knows of tactics; tests change it."""

    wrong: set[tuple[str, int]] = field(default_factory=set)
    """(layer, tactic) that makes every result wrong."""
    sometimes: set[tuple[str, int]] = field(default_factory=set)
    """(layer, tactic) that makes every second run wrong."""
    fastest: list[dict[str, int]] = field(default_factory=list)
    """Of each build, layers whose fastest tactic is another one; the last holds from then on."""
    without: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Tactics that a layer does not have."""
    refused: set[tuple[str, int]] = field(default_factory=set)
    """(layer, tactic) of a timing cache that no engine can be built with."""
    builds: int = 0
    runs: int = 0
    taken: list[dict[str, int]] = field(default_factory=list)
    """By layer, of each build."""

    def offered(self, layer: str) -> list[tuple[int, float]]:
        first = self.fastest[min(self.builds, len(self.fastest)) - 1] if self.fastest else {}
        numbers = [one for one in NUMBERS if one not in self.without.get(layer, ())]
        times = {one: 0.1 * (at + 1) for at, one in enumerate(numbers)}
        if layer in first:
            times[first[layer]] = 0.05
        return sorted(times.items(), key=lambda item: item[1])


def simulate(
    trt: Any, wrong: Collection[tuple[str, int]] = (), sometimes: Collection[tuple[str, int]] = ()
) -> Tactics:
    """Give the layers of a fake tactics, and let its engines compute what these make of it."""
    tactics = Tactics(set(wrong), set(sometimes))
    trt.fake.tactics = tactics

    def values(name: str, exact: Any) -> Any:
        taken = set(trt.fake.running["tactics"].items())
        tactics.runs += 1
        is_wrong = taken & tactics.wrong or (taken & tactics.sometimes and tactics.runs % 2)
        return np.asarray(exact) + 100 if is_wrong else exact

    trt.fake.values = values
    return tactics


def taken_tactics(builder: Any, network: Any, config: Any) -> dict[str, int] | str:
    """Return the tactic of each layer, or why there is none; nothing where none are simulated."""
    tactics: Tactics | None = builder._maker.state.tactics
    if tactics is None:
        return {}
    tactics.builds += 1
    names = [layer.name for layer in network._layers]
    offered = {name: tactics.offered(name) for name in names}
    taken: dict[str, int] | str
    if getattr(config, "_value_algorithm_selector", None) is not None:
        taken = _select(config.algorithm_selector, network, offered)
    elif any(flag.name == "EDITABLE_TIMING_CACHE" for flag in config._flags):
        taken = _look_up(builder, config.get_timing_cache(), offered, tactics.refused)
    else:
        taken = {name: many[0][0] for name, many in offered.items()}
    if isinstance(taken, dict):
        tactics.taken.append(taken)
    return taken


def _select(
    selector: Any, network: Any, offered: dict[str, list[tuple[int, float]]]
) -> dict[str, int]:
    maker, contexts, chosen = network._maker, [], []
    for layer in network._layers:
        tensors = [*(one for one in layer._inputs if one is not None), *layer._outputs]
        count = len(layer._outputs)
        context = maker.new(
            "IAlgorithmContext", name=layer.name, inputs=len(tensors) - count, outputs=count
        )
        many = [
            maker.new("IAlgorithm", tensors=tensors, number=number, ms=ms)
            for number, ms in reversed(offered[layer.name])
        ]
        picked = [many[at] for at in selector.select_algorithms(context, many)] or many
        contexts.append(context)
        chosen.append(min(picked, key=lambda one: float(one.timing_msec)))
    selector.report_algorithms(contexts, chosen)
    pairs = zip(contexts, chosen, strict=True)
    return {context.name: int(one.algorithm_variant.tactic) for context, one in pairs}


def _look_up(
    builder: Any,
    cache: Any,
    offered: dict[str, list[tuple[int, float]]],
    refused: set[tuple[str, int]],
) -> dict[str, int] | str:
    """Take what the cache says; measure the rest, say so in the log, and put it there."""
    taken = {}
    for name, many in offered.items():
        text = key_of(name)
        if text not in cache._tactics:
            log(builder, "VERBOSE", f"Autotuning op {name}(key: {text}):")
            log(builder, "VERBOSE", "Sorted table of all evaluated tactics:")
            log(builder, "VERBOSE", "tactic_id, cost(in ms), cost/fastest_cost, kernel_name, …")
            for at, (number, ms) in enumerate(many):
                row = f"{at}, {ms:.5f}, {ms / many[0][1]:.5f}, 0.5, kernel_{number}, {number:#x},"
                log(builder, "VERBOSE", f"   {row}")
            best, ms = many[0]
            line = f"The selected tactic is (tactic hash, cost(in ms)):{best:#x},  {ms:.6f}"
            log(builder, "VERBOSE", line)
            cache._tactics[text] = [best, ms]
        number = int(cache._tactics[text][0])
        if number not in dict(many) or (name, number) in refused:
            return f"Error Code 10: the tactic {number:#x} cannot be used for {name}"
        taken[name] = number
    return taken


def key_of(layer: str) -> str:
    """Return the text of a layer's key in a timing cache."""
    return f"0x{hashlib.sha256(layer.encode()).hexdigest()[:32]}"


class IAlgorithmContext:
    """A layer that is about to get a tactic."""

    name = property(lambda self: self._name)
    num_inputs = property(lambda self: self._inputs)
    num_outputs = property(lambda self: self._outputs)


class IAlgorithm:
    """A tactic that was measured."""

    timing_msec = property(lambda self: self._ms)
    algorithm_variant = property(
        lambda self: self._maker.new("IAlgorithmVariant", number=self._number)
    )

    def get_algorithm_io_info(self: Any, index: int) -> Any:
        return self._maker.new("IAlgorithmIOInfo", tensor=self._tensors[index])


class IAlgorithmVariant:
    """The identity of a tactic."""

    implementation = property(lambda self: -2147483648 + 7)
    tactic = property(lambda self: self._number)


class IAlgorithmIOInfo:
    """A tensor's type and layout."""

    dtype = property(lambda self: self._tensor.dtype)
    strides = property(lambda self: tuple(range(len(self._tensor.shape), 0, -1)))
    vectorized_dim = property(lambda self: -1)
    components_per_element = property(lambda self: 1)


class TimingCacheKey:
    """A layer of a timing cache."""

    def __str__(self: Any) -> str:
        return str(self._text)

    def parse(self: Any, text: str) -> Any:
        return self.new("TimingCacheKey", text=text)


class TimingCacheValue:
    """A tactic of a timing cache."""

    def __init__(self: Any, arg0: int, arg1: float) -> None:
        if not 0 <= arg0 <= INVALID:
            raise TypeError("incompatible constructor arguments")
        self.tacticHash, self.timingMSec = arg0, arg1


def query(cache: Any, key: Any) -> Any:
    """Return an entry of a cache, an invalid one for a key that it does not have."""
    number, ms = cache._tactics.get(str(key), (INVALID, -1.0))
    made = cache._maker.made["TimingCacheValue"]
    return made(int(number), float(ms))


def update(cache: Any, key: Any, value: Any) -> bool:
    """Change an entry that is there."""
    if str(key) not in cache._tactics or value.tacticHash == INVALID or value.timingMSec < 0:
        return False
    cache._tactics[str(key)] = [value.tacticHash, value.timingMSec]
    return True


BEHAVIOURS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(IAlgorithmContext, IAlgorithm, IAlgorithmVariant, IAlgorithmIOInfo),
        *(TimingCacheKey, TimingCacheValue),
    )
}
