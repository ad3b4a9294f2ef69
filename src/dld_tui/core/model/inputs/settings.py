"""Settings for the inputs of a run; without NumPy, which ``--help`` does not need."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.dataclass import dataclass
from dld_tui.core.params import param

SHAPE_HELP = (
    "Shape of an input, as NAME:1x3x224x224 or NAME:[1,3,224,224]; several separated by commas."
    " Missing dimensions are guessed from names and from the graph."
)
VERIFIED_HELP = f"{SHAPE_HELP} The result is run with these shapes."
FOLDER_HELP = "Folder with input_0.pb, … or NAME.npy, or with subfolders test_data_set_0, …."


@dataclass(frozen=True)
class InputSettings:
    """Settings for the inputs of a run, which requests declare with `like`."""

    shape: tuple[str, ...] = param(
        (),
        label="Input shapes",
        help=SHAPE_HELP,
        spellings=("--shape", "--shapes", "--input-shapes"),
        kind="shapes",
        metavar="NAME:DIMS",
        empty="from the model",
    )
    inputs: Path | None = param(
        None,
        label="Input data",
        help=f"{FOLDER_HELP} By default plausible inputs are generated.",
        spellings=("--inputs",),
        kind="folder",
        metavar="DIR",
        empty="generated from the seed",
    )
    seed: int = param(
        0,
        label="Seed",
        help="Random seed of generated inputs.",
        spellings=("--seed",),
        metavar="N",
        minimum=0,
    )
