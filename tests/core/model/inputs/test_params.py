"""Settings that are declared like those of another class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.model.inputs.settings import InputSettings
from dld_tui.core.params import like, settings_of


@dataclass(frozen=True)
class Fed:
    """A request."""

    inputs: Path | None = like(InputSettings, "inputs", Path("data"))
    shape: tuple[str, ...] = like(InputSettings, "shape", page="Other", help="Of one.")
    seed: int = like(InputSettings, "seed")


DECLARED = {setting.name: setting for setting in settings_of(Fed)}


def test_a_declaration_is_made_and_changed() -> None:
    about = DECLARED["shape"].param
    assert (about.page, about.help, about.kind) == ("Other", "Of one.", "shapes")
    assert DECLARED["seed"].param.minimum == 0
    assert DECLARED["inputs"].param.page == "Common"
    assert DECLARED["inputs"].default == Path("data")
