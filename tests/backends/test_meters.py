"""Meters of energy that packages add: the first that knows tells it, a broken one is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from dld_tui.activities.profile.onnxruntime import Request, run
from dld_tui.backends.machine import meters
from dld_tui.backends.machine.meters import Energy, Meter, RunEnergy, Window, energy_of_rails
from dld_tui.core.process import plugins
from dld_tui.core.report.gpu_kernels import Sample
from dld_tui.core.report.report import Report
from tests.support import models


class Fixed:
    def __init__(self, energy: Energy | None, fails: str = "") -> None:
        self.energy, self.fails, self.marks = energy, fails, 0

    def mark(self, passes: int) -> None:
        if self.fails == "mark":
            raise OSError("no counter")
        self.marks = passes

    def read(self, passes: int) -> Energy | None:
        if self.fails == "read":
            raise KeyError("joules")
        return self.energy


def broken(rails: Mapping[str, Sequence[Sample]], window: Window, pass_s: float) -> Energy | None:
    raise ZeroDivisionError("no time")


def test_the_first_that_knows_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Energy(2.0, 5.0, "wall plug")
    silent, fails, late, good = (
        Fixed(None),
        Fixed(known, "mark"),
        Fixed(known, "read"),
        Fixed(known),
    )
    given = [
        plugins.Plugin(f"m{at}", "toy", Meter(lambda gpu, meter=meter: meter))  # type: ignore[misc]
        for at, meter in enumerate((silent, fails, late, good))
    ]
    given.append(plugins.Plugin("rails", "toy", Meter(of_rails=broken)))
    given.append(plugins.Plugin("fine", "toy", Meter(of_rails=lambda rails, window, s: known)))
    monkeypatch.setattr(meters, "plugins", lambda group, kind: given)
    run = RunEnergy()
    run.mark(3)
    assert (silent.marks, good.marks) == (3, 3)
    assert run.read(3) == known
    assert energy_of_rails({}, (0, 1), 1.0) == known
    assert [one.name for one in plugins.skipped()] == ["m1", "m2", "rails"]


def test_nothing_is_known_without_meters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "plugins", lambda group, kind: ())
    run = RunEnergy()
    run.mark(1)
    assert run.read(1) is None
    assert energy_of_rails({"VIN": [(0, 5.0)]}, (0, 1), 1.0) is None


@pytest.mark.broad
def test_what_a_meter_tells_is_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    known = Energy(2.0, 5.0, "wall plug", (1.5, 2.5))
    given = [plugins.Plugin("fixed", "toy", Meter(lambda gpu: Fixed(known)))]
    monkeypatch.setattr(meters, "plugins", lambda group, kind: given)
    output = tmp_path / "r.dldprof"
    list(run(Request(models.write(tmp_path, models.CHAIN), output, iterations=3)))
    with Report.open(output) as report:
        facts = {field.name: report.properties[field.name] for field in fields(Energy)}
    assert facts == {
        "energy_per_inference_j": 2.0, "board_power_w": 5.0, "energy_rails": "wall plug",
        "energy_repeats_j": [1.5, 2.5],
    }  # fmt: skip
