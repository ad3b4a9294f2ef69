"""What activities that run a model declare alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.accuracy import Request as AccuracyRequest
from dld_tui.activities.profile_onnxruntime import Request as ProfileRequest
from dld_tui.core.inputs.shapes import about_inputs, about_seed, about_shape
from dld_tui.core.params import param, settings_of


@dataclass(frozen=True)
class Fed:
    """A request."""

    inputs: Path | None = param(None, **about_inputs())
    shape: tuple[str, ...] = param((), **about_shape(page="Other", help="Of one."))
    seed: int = param(0, **about_seed())


DECLARED = {setting.name: setting for setting in settings_of(Fed)}


def test_a_declaration_is_made_and_changed() -> None:
    about = DECLARED["shape"].param
    assert (about.page, about.help, about.kind) == ("Other", "Of one.", "shapes")
    assert DECLARED["seed"].param.minimum == 0
    assert DECLARED["inputs"].param.page == "Common"


@pytest.mark.parametrize("request_class", [AccuracyRequest, ProfileRequest])
def test_requests_have_them_alike(request_class: type[Any]) -> None:
    found = {setting.name: setting for setting in settings_of(request_class)}
    for name, setting in DECLARED.items():
        mine = found[name]
        assert (mine.type, mine.default) == (setting.type, setting.default)
        assert mine.param.spellings == setting.param.spellings
        assert mine.param.label == setting.param.label
