"""The tactic of each layer, how a library lets the user choose it, and the logs of builds.

A library lets tactics be chosen in one of two ways. TensorRT 8 to 10 asks an algorithm selector for
each layer (:data:`REPLAY`); from 10.8 on, the timing cache of a build can be edited
(:data:`CACHE`), and from 11 on that is the only way.

The log lines are those of TensorRT 10.8 and later, at the verbose level::

    Autotuning op matMul1(key: 0x1814870c44ff0f8574df6e3dda04cbd7):
    Sorted table of all evaluated tactics:
    tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, …
       3, 0.0112640, 1.00000, 0.50673, sm80_xmma_gemm_…, 0x665ded9abbf88,
    The selected tactic is (tactic hash, cost(in ms)):0x665ded9abbf88,  0.011264
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
from dld_tui.core.types import JSON

REPLAY, CACHE = "replay", "cache"
"""Ways to choose tactics: by an algorithm selector; by an edited timing cache."""
_SELECTOR = ("IAlgorithmSelector", "IBuilderConfig.algorithm_selector")
_EDITING = tuple(f"ITimingCache.{name}" for name in ("queryKeys", "query", "update"))
_CLASS = "polygraphy_class"


@dataclass(frozen=True)
class TensorForm:
    """How an implementation takes or gives a tensor."""

    dtype: str
    """The library's name, such as ``HALF``."""
    strides: tuple[int, ...] = ()
    vectorized: int | None = None
    """The dimension whose elements are grouped; -1 for none, None if unknown."""
    components: int | None = None
    """The number of elements in a group."""


@dataclass(frozen=True)
class Tactic:
    """One implementation of a layer; its name and time do not count when two are compared."""

    tactic: int
    """The number, or in a timing cache the hash."""
    implementation: int = 0
    """The family; a timing cache has none."""
    inputs: tuple[TensorForm, ...] = ()
    outputs: tuple[TensorForm, ...] = ()
    name: str = field(default="", compare=False)
    """The kernel, if known. Untrusted text."""
    ms: float | None = field(default=None, compare=False)
    """Its measured time."""

    @property
    def shown(self) -> str:
        """Return for example ``sm80_xmma_gemm (0x665ded9abbf88)``. Untrusted text."""
        number = f"{self.tactic & 0xFFFFFFFFFFFFFFFF:#x}"
        family = f"{self.implementation & 0xFFFFFFFFFFFFFFFF:#x}:" if self.implementation else ""
        types = ""
        if self.inputs or self.outputs:
            taken, output = (
                "+".join(f.dtype.lower() for f in s) for s in (self.inputs, self.outputs)
            )
            types = f" {taken}→{output}"
        return f"{self.name} ({family}{number})" if self.name else f"{family}{number}{types}"


Choices: TypeAlias = "Mapping[str, Tactic]"
"""A tactic by layer: by its name, or by the text of its key in a timing cache."""
Offers: TypeAlias = "Mapping[str, tuple[Tactic, ...]]"
"""All that a library measured for a layer, the fastest first."""


def reason_against(way: str, capabilities: LibraryCapabilities) -> str:
    """Return why a library's tactics cannot be chosen in a way; empty when they can."""
    if way == REPLAY:
        if all(name in capabilities.has for name in _SELECTOR):
            return ""
        return "it has no algorithm selector"
    if capabilities.module == "tensorrt_rtx":
        return "its timing cache does nothing"  # as it says itself since 1.2
    if "EDITABLE_TIMING_CACHE" in capabilities.flags and all(
        name in capabilities.has for name in _EDITING
    ):
        return ""
    return "its timing cache cannot be edited"


def replay_text(choices: Choices) -> str:
    """Return a replay file, which Polygraphy reads as well (``--load-tactics``)."""
    replay = {layer: _algorithm(tactic) for layer, tactic in choices.items()}
    return json.dumps({"replay": replay, _CLASS: "TacticReplayData"}, indent=1)


def parse_replay(text: str, where: str) -> dict[str, Tactic]:
    """Return the choices of a replay file of this program or of Polygraphy.

    Raises:
        InputError: It is not a replay file.
    """
    try:
        data = json.loads(text)
        return {str(layer): _tactic(choice) for layer, choice in data["replay"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError("is not a tactic replay file", where=where) from None


def _algorithm(tactic: Tactic) -> JSON:
    return {
        "implementation": tactic.implementation,
        "tactic": tactic.tactic,
        "inputs": [_info(form) for form in tactic.inputs],
        "outputs": [_info(form) for form in tactic.outputs],
        _CLASS: "Algorithm",
    }


def _info(form: TensorForm) -> JSON:
    return {
        "dtype": f"DataType.{form.dtype}",
        "strides": list[JSON](form.strides),
        "vectorized_dim": form.vectorized,
        "components_per_element": form.components,
        _CLASS: "TensorInfo",
    }


def _tactic(data: Mapping[str, Any]) -> Tactic:
    inputs, outputs = (
        tuple(
            TensorForm(
                str(format_["dtype"]).rpartition(".")[2],
                tuple(int(stride) for stride in format_["strides"]),
                format_.get("vectorized_dim"),
                format_.get("components_per_element"),
            )
            for format_ in data[side]
        )
        for side in ("inputs", "outputs")
    )
    return Tactic(int(data["tactic"]), int(data["implementation"]), inputs, outputs)


def by_time(tactics: Sequence[Tactic]) -> tuple[Tactic, ...]:
    """Return distinct tactics, the fastest first; those without a time last."""
    ordered = sorted(tactics, key=lambda tactic: (tactic.ms is None, tactic.ms or 0.0))
    return tuple(dict.fromkeys(ordered))


_LAYER = re.compile(r"Autotuning op (.*)\(key: (0x[0-9a-fA-F]+)\)")
_ROW = re.compile(
    r"^\D{0,12}?\s*\d+,\s*([\d.eE+-]+),\s*[\d.eE+-]+,\s*[^,]*,\s*([^,]*),\s*(0x[0-9a-fA-F]+)"
)
_END = re.compile(r"The selected tactic is ")


@dataclass
class MeasuredTactics:
    """One layer of a log."""

    layer: str
    """As the library names it. Untrusted text."""
    tactics: list[Tactic] = field(default_factory=list)


def measured_tactics(lines: Iterable[str]) -> dict[str, MeasuredTactics]:
    """Return the measured tactics, by the text of the layer's key in the timing cache."""
    by_layer: dict[str, MeasuredTactics] = {}
    current: MeasuredTactics | None = None
    for line in lines:
        head = _LAYER.search(line)
        if head is not None:
            current = by_layer.setdefault(head[2].lower(), MeasuredTactics(head[1].strip()))
        elif current is not None and (row := _ROW.match(line)) is not None:
            time = _number(row[1])
            current.tactics.append(Tactic(int(row[3], 16), name=row[2].strip(), ms=time))
        elif _END.search(line):
            current = None
    for measured in by_layer.values():
        measured.tactics = list(by_time(measured.tactics))
    return by_layer


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
