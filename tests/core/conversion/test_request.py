"""The settings of conversions: which of them mean something, by what else is set."""

from __future__ import annotations

import pytest

from dld_tui.core.conversion.request import QuantizationSettings, Repair, ValueVerification
from dld_tui.core.errors import UsageError
from dld_tui.core.params import settings_of
from dld_tui.core.types import JSON


def without_meaning(request: type[object], **values: JSON) -> set[str]:
    return {
        setting.name
        for setting in settings_of(request)
        if setting.param.applies is not None and not setting.param.applies(values)
    }


OF_BLOCKS = {"block", "format", "rounding", "lm_head"}
OF_STATIC = {"activations", "calibration", "method"}


def test_quantization_settings_mean_something_for_their_method() -> None:
    nothing: dict[str, JSON] = dict.fromkeys(("list_only", "dynamic", "weights_only"), False)
    said = {
        method: without_meaning(QuantizationSettings, **{**nothing, method: True})
        for method in ("static", *nothing)
    }
    assert said["static"] == OF_BLOCKS
    assert said["list_only"] == OF_BLOCKS | {"calibration", "method"}
    assert said["dynamic"] >= OF_BLOCKS | OF_STATIC
    assert said["weights_only"] & (OF_BLOCKS | OF_STATIC) == OF_STATIC


def test_what_verification_needs_means_nothing_without_it() -> None:
    assert without_meaning(Repair, verify=True, repair=True) == set()
    assert without_meaning(Repair, verify=True) == {"limit"}
    assert without_meaning(Repair, verify=False) >= {
        "values", "shape", "inputs", "tolerance", "keep_wrong", "measure", "repair"
    }  # fmt: skip
    with pytest.raises(UsageError, match="near"):
        ValueVerification(tolerance=("near",)).require()
