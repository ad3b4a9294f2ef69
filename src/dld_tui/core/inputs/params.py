"""The declarations of what a model is fed with, for the requests of all activities that run one.

Use them as ``inputs: Path | None = param(None, **about_inputs())``. Arguments replace parts of a
declaration, such as `help` or `page`, or add to it.
"""

from __future__ import annotations

from typing import Any

FOLDER_HELP = "Folder with input_0.pb, … or NAME.npy, or with folders test_data_set_0, … of these."


def about_shape(**other: Any) -> dict[str, Any]:
    """Return the declaration of ``tuple[str, ...]``, the shapes of inputs."""
    return {
        "label": "Input shapes",
        "help": "Shape of an input, as NAME:1x3x224x224.",
        "spellings": ("--shape", "--shapes", "--input-shapes"),
        "kind": "shapes",
        "metavar": "NAME:DIMS",
    } | other


def about_inputs(**other: Any) -> dict[str, Any]:
    """Return the declaration of ``Path | None``, a folder with input data."""
    return {
        "label": "Input data",
        "help": f"{FOLDER_HELP} By default inputs are random.",
        "spellings": ("--inputs",),
        "kind": "folder",
        "metavar": "DIR",
    } | other


def about_seed(**other: Any) -> dict[str, Any]:
    """Return the declaration of ``int``, what random inputs are made from."""
    return {
        "label": "Seed",
        "help": "Of the random inputs.",
        "spellings": ("--seed",),
        "metavar": "N",
        "minimum": 0,
    } | other
