"""Labelled samples: inputs of a model from a folder or an archive, labels from a file.

A dataset is a folder with ``test_data_set_N`` folders (labels are ``output_0.pb`` where no file of
labels is given), or one array for each input with samples along its first axis: ``NAME.npy`` files,
or an ``.npz`` archive, which may hold ``labels``. Labels are a ``.npy`` file, or a text file with
a line for each sample: one class, or several numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dld_tui.core.accuracy.metrics import Array
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.model.inputs.feeds import load_input_sets, set_folders
from dld_tui.core.model.inputs.shapes import InputSpec, numpy_dtype
from dld_tui.core.text import visible

Labels: TypeAlias = "Sequence[Any] | Array"
LABELS = "labels"
_CHUNK = 32
"""Samples of a run, where the batch is free."""


@dataclass(frozen=True)
class Batch:
    """What is run at once."""

    values: Mapping[str, Any]
    labels: Labels
    """One for each sample along the first axis."""


def read_dataset(path: Path, labels: Path | None, specs: Sequence[InputSpec]) -> list[Batch]:
    """Read samples for the inputs of a model.

    Args:
        path: A folder or an ``.npz`` file.
        labels: A file of labels; None for those of the dataset.
        specs: The inputs of the model.

    Raises:
        InputError: Something cannot be read, does not fit the inputs, or has no label.
    """
    given: Labels | None = None if labels is None else _labels_of(labels)
    if path.is_dir() and set_folders(path) != [path]:
        return _sets(path, given, specs)
    arrays = _arrays(path, specs)
    is_input = any(spec.name == LABELS for spec in specs)
    own = None if is_input else arrays.pop(LABELS, None)
    given = own if given is None else given
    counts = {name: len(values) for name, values in arrays.items() if values.ndim}
    count = next(iter(counts.values()), 0)
    for name, other in counts.items():
        if other != count:
            raise InputError(
                f"{visible(name)} has {other:,} samples, others have {count:,}", where=str(path)
            )
    if given is None:
        raise InputError("there are no labels", where=str(path), hint="Give --labels FILE")
    _require_same(len(given), count, labels or path)
    return list(_chunks(arrays, given, specs, count, path))


def _require_same(labels: int, samples: int, where: Path) -> None:
    if labels != samples:
        raise InputError(f"{labels:,} labels for {samples:,} samples", where=str(where))
    if not samples:
        raise InputError("there are no samples", where=str(where))


def _sets(path: Path, given: Labels | None, specs: Sequence[InputSpec]) -> list[Batch]:
    from onnx import TensorProto, numpy_helper

    batches = []
    at = 0
    for one in load_input_sets(path, specs):
        shapes = [np.shape(value) for value in one.values.values() if not isinstance(value, list)]
        firsts = {shape[0] for shape in shapes if shape}
        count = firsts.pop() if len(firsts) == 1 else 1
        if given is None:
            file = one.folder / "output_0.pb"
            if not file.is_file():
                raise InputError(
                    "there is no label", where=str(file), hint="Give --labels FILE, or output_0.pb"
                )
            try:
                label = numpy_helper.to_array(TensorProto.FromString(file.read_bytes()))
            except Exception as error:  # noqa: BLE001  # protobuf and numpy raise many kinds
                raise InputError(f"is no tensor: {error}", where=str(file)) from None
            own: Labels = label if label.ndim and len(label) == count else [label]
        else:
            own = given[at : at + count]
        at += count
        batches.append(Batch(one.values, own))
    if given is not None:
        _require_same(len(given), at, path)
    return batches


def _arrays(path: Path, specs: Sequence[InputSpec]) -> dict[str, Array]:
    """Return one array for each input, and perhaps the labels."""
    wanted = {spec.name: spec for spec in specs}
    try:
        if path.is_dir():
            stored = {file.stem: np.load(file, allow_pickle=False) for file in path.glob("*.npy")}
        else:
            with np.load(path, allow_pickle=False) as archive:
                stored = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None
    missing = [name for name in wanted if name not in stored]
    if missing:
        raise InputError(
            f"there is no array for input {wanted[missing[0]].text}", where=str(path),
            hint="Give NAME.npy for each input, an .npz file, or folders test_data_set_0, …",
        )  # fmt: skip
    arrays = {name: stored[name] for name in wanted}
    for name, array in arrays.items():
        dtype = numpy_dtype(wanted[name].dtype)
        if array.dtype != dtype:
            raise InputError(
                f"{visible(name)} is {array.dtype}, the input is {wanted[name].text}",
                where=str(path),
            )
    return arrays | ({LABELS: stored[LABELS]} if LABELS in stored and LABELS not in wanted else {})


def _chunks(
    arrays: Mapping[str, Array], labels: Labels, specs: Sequence[InputSpec], count: int,
    path: Path,
) -> Iterator[Batch]:  # fmt: skip
    fixed = {spec.dims[0] for spec in specs if spec.dims and isinstance(spec.dims[0], int)}
    size = int(min(fixed)) if fixed else _CHUNK
    if fixed and count % size:
        raise InputError(
            f"the model takes {size} samples at once, and {count:,} are no multiple",
            where=str(path),
        )
    for start in range(0, count, size):
        part = slice(start, start + size)
        values = {name: array[part] if array.ndim else array for name, array in arrays.items()}
        yield Batch(values, labels[part])


def _labels_of(path: Path) -> Labels:
    """Return the labels of a file.

    Raises:
        InputError: It cannot be read; names the line.
    """
    try:
        if path.suffix == ".npy":
            array: Array = np.load(path, allow_pickle=False)
            return array
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append([float(word) for word in line.replace(",", " ").split()])
        except ValueError:
            raise InputError(
                f"line {number} is not numbers", where=str(path),
                hint="Write a line for each sample: a class, or several numbers",
            ) from None  # fmt: skip
    return rows
