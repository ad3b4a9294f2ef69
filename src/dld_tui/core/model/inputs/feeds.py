"""Input values of a model: the sets of a folder, or generated values for guessed shapes.

A folder holds one set of inputs, or folders ``test_data_set_0``, ``test_data_set_1``, … of one
set each. ``input_N`` is the model's N-th input; a ``.pb`` file whose tensor has an input's name
is that input. In the name of a ``.npy`` file, characters other than letters, digits, ``.``, ``-``
and ``_`` may be replaced by ``_``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.model.inputs.guess import Guess, candidate_guesses, first_that_runs
from dld_tui.core.model.inputs.shapes import (
    AnyArray,
    InputSpec,
    is_extended,
    is_fixed,
    numpy_dtype,
    parse_shapes,
)
from dld_tui.core.model.tensors.npy import read_npy_header
from dld_tui.core.text import shortened, visible

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

Value: TypeAlias = "AnyArray | list[AnyArray]"
"""A tensor, or the tensors of a sequence."""

_SET = re.compile(r"(.*?)(\d*)$")
_NUMBERED = re.compile(r"input_(\d+)$")
_MAGIC = b"\x93NUMPY"
_ZIP = b"PK"


@dataclass(frozen=True)
class InputSet:
    """Values for all inputs of a model."""

    folder: Path
    values: dict[str, Value]


def load_input_sets(folder: Path, specs: Sequence[InputSpec]) -> list[InputSet]:
    """Read the sets of a folder, in the order of their numbers.

    Raises:
        InputError: A file cannot be read, fits no input, or has another type or shape than its
            input; an input has no file; there is nothing at all.
    """
    return [InputSet(path, _load_set(path, specs)) for path in set_folders(folder)]


_FILES = "Files are input_0.pb, input_1.pb, … or NAME.npy"


def set_folders(folder: Path) -> list[Path]:
    """Return the folders of the sets, in the order of their numbers: perhaps the folder itself.

    Raises:
        InputError: It is not a folder.
    """
    if not folder.is_dir():
        wrong = "is not a folder" if folder.exists() else "the folder does not exist"
        raise InputError(wrong, where=str(folder), hint=_FILES)
    sets = sorted(folder.glob("test_data_set_*"), key=_by_number) or [folder]
    return [path for path in sets if path.is_dir()]


def _by_number(path: Path) -> tuple[str, int]:
    match = _SET.match(path.name)
    return (match[1], int(match[2] or 0)) if match else (path.name, 0)


def _load_set(folder: Path, specs: Sequence[InputSpec]) -> dict[str, Value]:
    names = ", ".join(visible(spec.name) for spec in specs)
    values: dict[str, Value] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".pb", ".npy") or path.name.startswith("output_"):
            continue
        spec = _spec_of(path, specs)
        if spec is None:
            raise InputError("fits no input", where=str(path), hint=f"The inputs: {names}")
        if not path.is_file():  # a pipe would wait for somebody to write into it
            raise InputError("is not a file", where=str(path))
        spec, value = _load_pb(path, spec, specs) if path.suffix == ".pb" else _load_npy(path, spec)
        if spec.name in values:
            raise InputError(f"a second file for input {visible(spec.name)}", where=str(path))
        values[spec.name] = value
    missing = [spec.text for spec in specs if spec.name not in values]
    if missing:
        raise InputError(
            f"there is no file for input {missing[0]}",
            where=str(folder),
            hint=_FILES if values else _FILES + _others(folder),
        )
    return values


def _others(folder: Path) -> str:
    """Return what there is instead, for a hint."""
    other = next((path for path in sorted(folder.iterdir()) if path.is_file()), None)
    return "" if other is None else f", not as {shortened(other.name)}"


def _spec_of(path: Path, specs: Sequence[InputSpec]) -> InputSpec | None:
    numbered = _NUMBERED.match(path.stem)
    if numbered and int(numbered[1]) < len(specs):
        return specs[int(numbered[1])]
    for same in (lambda name: name == path.stem, lambda name: _plain(name) == _plain(path.stem)):
        candidates = [spec for spec in specs if same(spec.name)]
        if len(candidates) == 1:
            return candidates[0]
    return None


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)


def _load_npy(path: Path, spec: InputSpec) -> tuple[InputSpec, Value]:
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
        if start.startswith(_ZIP):
            raise InputError("is not one array", where=str(path))
        if start != _MAGIC:
            raise InputError("cannot be read: it is not a .npy file", where=str(path))
        read_npy_header(path)  # numpy's own reader says less, and not always by a ValueError
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        why = "it holds Python objects" if "allow_pickle" in str(error) else visible(str(error))
        raise InputError(f"cannot be read: {why}", where=str(path)) from None
    if spec.container:
        raise InputError(f"is one array, but input {spec.text} is not a tensor", where=str(path))
    return spec, _checked(path, spec, array)


def _load_pb(path: Path, spec: InputSpec, specs: Sequence[InputSpec]) -> tuple[InputSpec, Value]:
    try:
        data = path.read_bytes()
        if spec.container == "sequence":
            sequence = onnx.SequenceProto.FromString(data)
            items = numpy_helper.to_list(sequence)
            return spec, [_checked(path, spec, np.asarray(item)) for item in items]
        tensor = onnx.TensorProto.FromString(data)
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise InputError("refers to another file, which is not followed", where=str(path))
        spec = next((other for other in specs if other.name == tensor.name), spec)
        array = numpy_helper.to_array(tensor)
    except (OSError, ValueError, TypeError, KeyError, MemoryError, DecodeError) as error:
        raise InputError(
            f"is not a tensor file: {visible(str(error))[:200]}", where=str(path)
        ) from None
    return spec, _checked(path, spec, array)


def _checked(path: Path, spec: InputSpec, array: AnyArray) -> AnyArray:
    wanted = numpy_dtype(spec.dtype)
    if spec.dtype == "string" and array.dtype.kind in "US":
        array = array.astype(object)
    if is_extended(spec.dtype) and array.dtype.kind in "Vu" and array.itemsize == wanted.itemsize:
        array = np.asarray(array, order="C").view(wanted)  # .npy has no name for such types
    if array.dtype != wanted:
        raise InputError(f"has type {array.dtype}, but the model has {spec.text}", where=str(path))
    if spec.dims is not None and not spec.container and not _fits(spec.dims, array.shape):
        raise InputError(
            f"has shape {fmt.shape(array.shape)}, but the model has {spec.text}", where=str(path)
        )
    return np.asarray(array, order="C")


def _fits(dims: tuple[int | str | None, ...], shape: tuple[int, ...]) -> bool:
    return len(dims) == len(shape) and all(
        not is_fixed(dim) or dim == size for dim, size in zip(dims, shape, strict=True)
    )


@dataclass(frozen=True)
class Feeds:
    """Sets of inputs by name, and where they come from."""

    sets: list[Mapping[str, Any]]
    guess: Guess | None = None
    """None where the data are those of a folder."""

    @property
    def remarks(self) -> list[str]:
        """What was guessed, and how to change it; empty where nothing was."""
        return [] if self.guess is None else self.guess.remarks


def input_feeds(
    specs: Sequence[InputSpec],
    folder: Path | None,
    shapes: Sequence[str],
    seeds: Iterable[int],
    document: Document | None = None,
    run: Callable[[Mapping[str, Any]], object] | None = None,
) -> Feeds:
    """Return sets of inputs.

    Args:
        specs: What the model takes.
        folder: Where the data are; None for values that are made.
        shapes: Shapes of the inputs, as ``NAME:1x3``; others are guessed.
        seeds: One for each set that is made.
        document: The model, if there is one: its graph constrains the shapes.
        run: Runs the model with a set. Where sizes or counts are guessed, the first guess counts
            that it takes; without, the best one.

    Raises:
        UsageError: Shapes are given for data of a folder, or do not fit.
        InputError: The data cannot be read, or do not fit the inputs.
        ActivityError: No data can be made for an input, or no guess can be run.
    """
    if folder is not None:
        if shapes:
            raise UsageError("--shape cannot be used with --inputs: the inputs fix the shapes")
        return Feeds([input_set.values for input_set in load_input_sets(folder, specs)])
    guesses = candidate_guesses(
        specs, document, parse_shapes(shapes, [spec.name for spec in specs])
    )
    guess = next(guesses)
    wanted = [*seeds]
    is_certain = not guess.guessed and not any(item.is_count for item in guess.inputs)
    if run is not None and not is_certain and wanted:
        guess, _ = first_that_runs(_again(guess, guesses), wanted[0], run)
    return Feeds([guess.values(seed) for seed in wanted], guess)


def _again(first: Guess, others: Iterable[Guess]) -> Iterable[Guess]:
    yield first
    yield from others
