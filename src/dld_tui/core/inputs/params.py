"""The declarations of what a model is fed with, for the requests of all activities that run one.

Use them as ``inputs: Path | None = param(None, **about_inputs())``. Arguments replace parts of a
declaration, such as `help` or `page`, or add to it.
"""

from __future__ import annotations

from typing import Any

SHAPE_HELP = (
    "Shape of an input, as NAME:1x3x224x224 or NAME:[1,3,224,224]; several may be separated by"
    " commas. What no given shape tells is guessed from names and from what the graph demands."
)
VERIFIED_HELP = f"{SHAPE_HELP} The result is run with it."
FOLDER_HELP = "Folder with input_0.pb, … or NAME.npy, or with folders test_data_set_0, … of these."


def about_shape(**other: Any) -> dict[str, Any]:
    """Return the declaration of ``tuple[str, ...]``, the shapes of inputs."""
    return {
        "label": "Input shapes",
        "help": SHAPE_HELP,
        "spellings": ("--shape", "--shapes", "--input-shapes"),
        "kind": "shapes",
        "metavar": "NAME:DIMS",
    } | other


def about_inputs(**other: Any) -> dict[str, Any]:
    """Return the declaration of ``Path | None``, a folder with input data."""
    return {
        "label": "Input data",
        "help": f"{FOLDER_HELP} By default inputs are made: plausible values for what each is.",
        "spellings": ("--inputs",),
        "kind": "folder",
        "metavar": "DIR",
    } | other


def about_seed(**other: Any) -> dict[str, Any]:
    """Return the declaration of ``int``, what inputs are made from."""
    return {
        "label": "Seed",
        "help": "Of the inputs that are made.",
        "spellings": ("--seed",),
        "metavar": "N",
        "minimum": 0,
    } | other
