"""The model as ONNX Runtime rewrites it, saved as a file that can be opened and run."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

from dld_tui.backends.onnxruntime import Session
from dld_tui.backends.onnxruntime_options import SessionSettings
from dld_tui.core.errors import ActivityError, InputError, SaveError

_LARGEST_INSIDE = 1_500_000_000
"""A protobuf file ends at 2 GB; the optimised model may be larger than the given one."""


def save_optimized_model(
    model: Path, settings: SessionSettings, target: Path, weight_bytes: int
) -> None:
    """Write the optimised model to `target`, of a large one the weights to a file beside it.

    Args:
        model: The file to optimise.
        settings: Of the session that does it.
        target: Replaced if it exists.
        weight_bytes: Size of the model's initializers.

    Raises:
        ActivityError: ONNX Runtime cannot write what its providers made of the model.
        SaveError: The folder cannot be written.
    """
    weights = "beside" if weight_bytes > _LARGEST_INSIDE else "inside"
    try:
        with tempfile.TemporaryDirectory(prefix=".optimized-", dir=target.parent) as name:
            written = Path(name, target.name)
            made = replace(
                settings,
                profile_prefix=None,
                optimized_path=written,
                optimized_weights=weights,
                quiet=True,
            )
            try:
                Session(model, made)
            except InputError as error:  # the same model has been read before
                raise ActivityError(error.message, where=error.where) from error
            if not written.is_file():
                raise ActivityError("ONNX Runtime wrote no file")
            for path in sorted(Path(name).iterdir(), key=lambda path: path == written):
                os.replace(path, target.parent / path.name)
    except OSError as error:
        raise SaveError(f"cannot be written: {error.strerror}", where=str(target)) from error
