"""A model with other dimensions: those that were fixed are made dynamic first, all at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from dld_tui.core.conversion.copies import copy_of, inline_calls
from dld_tui.core.conversion.dimensions import Dimension, find_dimensions, set_dimension
from dld_tui.core.conversion.freed_dimensions import declare_outputs, free_dimensions
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.shapes.inference import inline_small_data

_LARGEST_WEIGHT = 64 << 20
"""Bytes of a weight that is looked at to see whether its items are the same."""


@dataclass(frozen=True)
class ChangedDimensions:
    """A model with other dimensions, whose payloads are those of the document."""

    model: onnx.ModelProto
    asked: list[Dimension]
    nodes: list[str]
    """Nodes with constants that held an old size, one sentence each. Untrusted text."""
    notes: list[str]


def change_dimensions(
    original: Document, texts: Sequence[str], shapes: Callable[[], Mapping[str, Sequence[int]]]
) -> ChangedDimensions:
    """Return a model with other dimensions.

    Args:
        original: The model, which is not changed.
        texts: See :func:`.dimensions.find_dimension`.
        shapes: Returns a shape of each input that the model takes.

    Raises:
        UsageError: The dimension does not exist.
        ActivityError: A node or a weight prevents it.
    """
    notes: list[str] = []
    with contextlib.closing(copy_of(original)) as with_nodes:
        model = onnx.ModelProto.FromString(skeleton_bytes(with_nodes))
        asked = find_dimensions(model.graph, texts)
        if any(change.size not in (None, change.to) for change in asked) and inline_calls(
            with_nodes
        ):
            notes.append("calls of local functions are replaced by their nodes")
            model = onnx.ModelProto.FromString(skeleton_bytes(with_nodes))
        sizes = {name: tuple(shape) for name, shape in shapes().items()}
        nodes = _change(model, asked, sizes, with_nodes, original.path)
        if any(isinstance(change.to, int) for change in asked):
            declare_outputs(model, _with_small_data(model, original.path))
    return ChangedDimensions(model, asked, nodes, notes)


def _change(
    model: onnx.ModelProto,
    asked: Sequence[Dimension],
    shapes: Mapping[str, tuple[int, ...]],
    document: Document,
    path: Path | None,
) -> list[str]:
    """Make all dimensions dynamic that are not, at once, then give sizes and names."""
    freed: dict[str, Dimension] = {}
    names: list[tuple[Dimension, str]] = []
    for number, dimension in enumerate(asked):
        if dimension.size == dimension.to:
            continue
        name = dimension.name
        if dimension.size is not None:
            name = dimension.to if isinstance(dimension.to, str) else f"dld_size{number}"
            freed[name] = dimension
        names.append((dimension, name))
    changed: list[str] = []
    if freed:

        def read(weight: str) -> np.ndarray[Any, Any] | None:
            tensor = document.main.initializer(weight)
            if tensor is None or (tensor.nbytes or 0) > _LARGEST_WEIGHT:
                return None
            try:
                return tensor.read().reshape(tensor.shape)
            except InputError:
                return None

        small = _with_small_data(model, path)
        axes = {(one, axis): name for name, dim in freed.items() for one, axis in dim.axes.items()}
        batches = [name for name, dim in freed.items() if dim.is_batch]
        changed = free_dimensions(model, axes, shapes, batches=batches, read=read, small=small)
    for dimension, name in names:
        if dimension.size is None or isinstance(dimension.to, int):
            set_dimension(model, dimension.axes, name, dimension.to)
    return changed


def _with_small_data(model: onnx.ModelProto, path: Path | None) -> onnx.ModelProto:
    small = onnx.ModelProto.FromString(model.SerializeToString())
    if path is not None:
        inline_small_data(small, path)
    return small
