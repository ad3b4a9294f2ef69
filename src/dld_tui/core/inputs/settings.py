"""What a run feeds a model with, declared once; without NumPy, which ``--help`` has no need of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.params import param

SHAPE_HELP = (
    "Shape of an input, as NAME:1x3x224x224 or NAME:[1,3,224,224]; several may be separated by"
    " commas. What no given shape tells is guessed from names and from what the graph demands."
)
VERIFIED_HELP = f"{SHAPE_HELP} The result is run with it."
FOLDER_HELP = "Folder with input_0.pb, … or NAME.npy, or with folders test_data_set_0, … of these."


@dataclass(frozen=True)
class InputSettings:
    """What a run feeds a model with; requests declare theirs like these."""

    shape: tuple[str, ...] = param(
        (),
        label="Input shapes",
        help=SHAPE_HELP,
        spellings=("--shape", "--shapes", "--input-shapes"),
        kind="shapes",
        metavar="NAME:DIMS",
        empty="as the model says",
    )
    inputs: Path | None = param(
        None,
        label="Input data",
        help=f"{FOLDER_HELP} By default inputs are made: plausible values for what each is.",
        spellings=("--inputs",),
        kind="folder",
        metavar="DIR",
        empty="made from the seed",
    )
    seed: int = param(
        0,
        label="Seed",
        help="Of the inputs that are made.",
        spellings=("--seed",),
        metavar="N",
        minimum=0,
    )
