"""The joules of a pass: of counters of processors and GPUs, and of the power of a board."""

from __future__ import annotations

from dld_tui.backends.machine.meters import Meter
from dld_tui.extras.energy.counters import EnergyWatch
from dld_tui.extras.energy.rails import energy_of

METER = Meter(EnergyWatch, energy_of)
