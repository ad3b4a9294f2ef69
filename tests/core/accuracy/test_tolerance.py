from __future__ import annotations

import numpy as np
import pytest

from dld_tui.core.accuracy.statistics import Tolerance, compare, parse_tolerances
from dld_tui.core.errors import UsageError


def problem(tolerance: Tolerance, reference: list[float], other: list[float]) -> str | None:
    return tolerance.problem(compare(np.array(reference), np.array(other), tolerance))


def test_elements_may_differ_by_both_parts_together() -> None:
    tolerance = Tolerance(0.1, 0.01)
    assert problem(tolerance, [100.0], [101.1]) is None
    told = problem(tolerance, [100.0, 1.0], [101.2, 1.0])
    assert told == "1 of 2 elements are outside of atol 0.1, rtol 0.01"


def test_special_values_are_never_within() -> None:
    assert "NaN" in (problem(Tolerance(1e9), [1.0], [np.nan]) or "")
    assert problem(Tolerance(), [np.nan, np.inf], [np.nan, np.inf]) is None
    assert "shape" in (problem(Tolerance(), [1.0], [1.0, 2.0]) or "")


def test_figures_instead_of_elements() -> None:
    tolerance = Tolerance(cosine=0.99)
    assert problem(tolerance, [1.0, 2.0], [1.1, 2.1]) is None
    assert "the cosine is" in (problem(tolerance, [1.0, 0.0], [0.0, 1.0]) or "")
    near = problem(Tolerance(cosine=0.99999999), [1.0, 0.0], [1.0, 5e-4])
    assert near == "the cosine is 0.999999875, less than 0.99999999"
    assert "unknown" in (problem(tolerance, [1.0], [0.0]) or "")
    assert problem(Tolerance(snr_db=20), [10.0], [10.5]) is None
    assert "26.0 dB, less than 30" in (problem(Tolerance(snr_db=30), [10.0], [10.5]) or "")
    assert problem(Tolerance(cosine=0.9, snr_db=9), [0.0], [0.0]) is None


def test_specs_are_for_all_values_or_for_one() -> None:
    found = parse_tolerances(["rtol=0.5", "a:0:atol=1e-3,cosine=0.9"], absolute=2.0)
    assert found.of("other") == Tolerance(2.0, 0.5)
    assert found.of("a:0") == Tolerance(1e-3, 0.5, 0.9)
    assert parse_tolerances([], relative=0.0).every.relative == 0.0


@pytest.mark.parametrize(
    "spec", ["", "atol", "atol=", "atol=x", "atol=-1", "size=3", "NAME:", "atol=nan", "rtol=inf"]
)
def test_specs_that_make_no_sense(spec: str) -> None:
    with pytest.raises(UsageError):
        parse_tolerances([spec])
