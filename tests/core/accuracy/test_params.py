"""What requests that compare results declare alike."""

from __future__ import annotations

from dld_tui.core.accuracy.tolerance import about_atol, about_rtol, about_tolerance


def test_declarations_are_changed_by_arguments() -> None:
    assert about_atol()["spellings"] == ("--atol",)
    assert about_rtol(help="Other.")["help"] == "Other."
    assert about_rtol()["minimum"] == 0
    assert about_tolerance(page="Accuracy") == about_tolerance() | {"page": "Accuracy"}
