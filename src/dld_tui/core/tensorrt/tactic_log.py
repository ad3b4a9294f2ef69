"""What a build with an editable timing cache logs: the tactics that were measured for each layer.

The lines are those of TensorRT 10.8 and later, at the verbose level::

    Autotuning op matMul1(key: 0x1814870c44ff0f8574df6e3dda04cbd7):
    Sorted table of all evaluated tactics:
    tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, …
       3, 0.0112640, 1.00000, 0.50673, sm80_xmma_gemm_…, 0x665ded9abbf88,
    The selected tactic is (tactic hash, cost(in ms)):0x665ded9abbf88,  0.011264
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from dld_tui.core.tensorrt.tactics import Tactic, by_time

_LAYER = re.compile(r"Autotuning op (.*)\(key: (0x[0-9a-fA-F]+)\)")
_ROW = re.compile(
    r"^\D{0,12}?\s*\d+,\s*([\d.eE+-]+),\s*[\d.eE+-]+,\s*[^,]*,\s*([^,]*),\s*(0x[0-9a-fA-F]+)"
)
_END = re.compile(r"The selected tactic is ")


@dataclass
class Measured:
    """One layer of a log."""

    layer: str
    """As the library names it. Foreign text."""
    tactics: list[Tactic] = field(default_factory=list)


def measured_tactics(lines: Iterable[str]) -> dict[str, Measured]:
    """Return what was measured, by the text of the layer's key in the timing cache."""
    found: dict[str, Measured] = {}
    current: Measured | None = None
    for line in lines:
        head = _LAYER.search(line)
        if head is not None:
            current = found.setdefault(head[2].lower(), Measured(head[1].strip()))
        elif current is not None and (row := _ROW.match(line)) is not None:
            time = _number(row[1])
            current.tactics.append(Tactic(int(row[3], 16), name=row[2].strip(), ms=time))
        elif _END.search(line):
            current = None
    for one in found.values():
        one.tactics = list(by_time(one.tactics))
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
