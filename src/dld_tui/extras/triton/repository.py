"""A repository of models for Triton Inference Server: ``NAME/config.pbtxt`` and ``NAME/1/model.*``.

The configuration is protobuf text of ``inference.ModelConfig`` (Triton's ``model_config.proto``).
What Triton would refuse when it loads a model is refused here: unsupported types, dimensions of 0,
scalars without a batch.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf.text_encoding import CEscape

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError, SaveError, UsageError
from dld_tui.core.files import permission
from dld_tui.core.files.blobs import Blob
from dld_tui.core.files.source import Source
from dld_tui.core.files.writer import write_pieces, write_text
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.tensors.value_types import PLACEHOLDERS, Dims
from dld_tui.core.tensorrt.plan.json_text import layout_of
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan, EngineTensor

KINDS = ("auto", "gpu", "cpu", "model")
"""Where instances run, as Triton's ``KIND_…`` name it."""

_TYPES = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
    "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64", "float16": "FP16",
    "fp16": "FP16", "float32": "FP32", "fp32": "FP32", "float64": "FP64", "string": "STRING",
    "bfloat16": "BF16", "bf16": "BF16",
}  # fmt: skip
_USUAL_BATCH = 4
"""What Triton takes where it completes a configuration itself."""


@dataclass(frozen=True)
class ServedTensor:
    """An input or output. Its name is untrusted text."""

    name: str
    dtype: str | None
    dims: Dims | None
    most: int | None = None
    """The largest first dimension; None where it is unbounded or unknown."""
    is_shape: bool = False
    """The values are a shape, read by the host."""
    is_linear: bool = True


@dataclass(frozen=True)
class ServedModel:
    """The inputs and outputs of a model to serve."""

    backend: str
    """``onnxruntime`` or ``tensorrt``."""
    inputs: tuple[ServedTensor, ...]
    outputs: tuple[ServedTensor, ...]
    bounded: bool = True
    """False where the largest batch is unknown."""


@dataclass(frozen=True)
class ConfigTensor:
    """An input or output as the configuration has it."""

    name: str
    data_type: str
    dims: list[int]


@dataclass(frozen=True)
class ModelConfig:
    """A configuration, and remarks on it."""

    text: str
    max_batch_size: int
    inputs: list[ConfigTensor]
    outputs: list[ConfigTensor]
    remarks: list[str] = field(default_factory=list)


def describe_model(document: Document) -> ServedModel:
    """Return the inputs and outputs of an ONNX model; inputs with a default are left out."""
    main = document.main

    def tensors(names: Sequence[str]) -> tuple[ServedTensor, ...]:
        served = []
        for name in names:
            kind = main.value_type(name)
            if kind is not None and kind.container:
                raise InputError(
                    f"Triton takes tensors only, and {visible(name)!r} is {visible(kind.text)}"
                )
            served.append(
                ServedTensor(name, kind.dtype, kind.dims)
                if kind
                else ServedTensor(name, None, None)
            )
        return tuple(served)

    inputs = [name for name in main.inputs if not main.is_weight(name)]
    return ServedModel("onnxruntime", tensors(inputs), tensors(list(main.outputs)))


def describe_engine(plan: EnginePlan) -> ServedModel:
    """Return the inputs and outputs of an engine, from its layer information.

    Raises:
        InputError: The layer information does not say which is an input and which an output.
    """
    sides: dict[str, list[ServedTensor]] = {"input": [], "output": []}
    for binding in plan.bindings:
        if binding.mode not in sides:
            raise InputError(
                f"the layer information does not say whether {visible(binding.name)!r} is an"
                " input or an output",
                where=plan.path,
            )
        sides[binding.mode].append(_binding(binding))
    inputs, outputs = tuple(sides["input"]), tuple(sides["output"])
    bounded = all(
        tensor.most is not None for tensor in inputs if tensor.dims and not _is_fixed(tensor)
    )
    return ServedModel("tensorrt", inputs, outputs, bounded)


def _binding(tensor: EngineTensor) -> ServedTensor:
    dims: list[int | str | None] | None = None
    # Triton runs the first optimization profile unless it is told another.
    low, high = (tensor.profile_dims[0][0], tensor.profile_dims[0][2]) if tensor.profile_dims else (
        (), ()
    )  # fmt: skip
    if tensor.dims is not None:
        known = len(low) == len(high) == len(tensor.dims)
        dims = [
            None if size < 0 or (known and low[axis] != high[axis]) else size
            for axis, size in enumerate(tensor.dims)
        ]
    return ServedTensor(
        tensor.name,
        tensor.dtype,
        None if dims is None else tuple(dims),
        most=high[0] if high else None,
        is_shape=tensor.location.lower() == "host",
        is_linear=layout_of(tensor.format) in ("", "LINEAR"),
    )


def model_config(
    name: str, served: ServedModel, *, max_batch: int | None = None, kind: str = "", count: int = 1
) -> ModelConfig:
    """Return a configuration.

    Args:
        name: Of the model, and of its folder.
        served: What it takes and gives.
        max_batch: The greatest batch that Triton may make of requests; 0 for none, None for what
            the model tells.
        kind: One of :data:`KINDS`; empty for ``gpu`` of engines, else ``auto``.
        count: Instances on each device.

    Raises:
        InputError: Triton cannot serve it.
        UsageError: The name, the batch or the kind does not fit.
    """
    _require_name(name)
    if served.backend == "tensorrt" and kind in ("auto", "cpu"):
        raise UsageError("an engine runs on a GPU", hint="Use --kind gpu")
    for tensor in (*served.inputs, *served.outputs):
        _require_served(tensor, served.backend)
    if not served.outputs:
        raise InputError("a model for Triton needs an output")
    batch, remarks = _batch(served, max_batch)
    inputs = [_config_tensor(tensor, batch > 0) for tensor in served.inputs]
    outputs = [_config_tensor(tensor, batch > 0) for tensor in served.outputs]
    platform = "tensorrt_plan" if served.backend == "tensorrt" else "onnxruntime_onnx"
    where = (kind or ("gpu" if served.backend == "tensorrt" else "auto")).upper()
    blocks = [
        f'name: "{name}"',
        f'platform: "{platform}"',
        f'backend: "{served.backend}"',
        f"max_batch_size: {batch}",
        *_tensors("input", served.inputs, inputs),
        *_tensors("output", served.outputs, outputs),
        f"instance_group [\n  {{\n    kind: KIND_{where}\n    count: {count}\n  }}\n]",
    ]
    return ModelConfig("\n".join(blocks) + "\n", batch, inputs, outputs, remarks)


def _require_name(name: str) -> None:
    plain = name.isascii() and all(char.isalnum() or char in "-_.+" for char in name)
    if not plain or name.strip(".") == "":
        raise UsageError(
            f"{visible(name)!r} is not a valid model name for Triton",
            hint="Use --name with letters, digits, - _ + and .",
        )


def _require_served(tensor: ServedTensor, backend: str) -> None:
    name = visible(tensor.name)
    try:
        tensor.name.encode()
    except UnicodeEncodeError:
        raise InputError(f"the name {name!r} is not UTF-8, which Triton needs") from None
    if not tensor.name:
        raise InputError("an input or output has no name")
    if tensor.dtype is None or tensor.dims is None or not tensor.dtype:
        lacking = "shape" if tensor.dtype else "type"
        raise InputError(
            f"the {lacking} of {name!r} is not known, and Triton needs it",
            hint="Build the engine again with --profilingVerbosity=detailed"
            if backend == "tensorrt"
            else "Declare it in the model",
        )
    if tensor.dtype not in _TYPES:
        raise InputError(f"Triton has no type for {name!r}: {visible(tensor.dtype)}")
    if 0 in tensor.dims:
        raise InputError(f"{name!r} has a dimension of 0, which Triton does not take")


def _is_fixed(tensor: ServedTensor) -> bool:
    return not tensor.dims or isinstance(tensor.dims[0], int)


def _batch(served: ServedModel, asked: int | None) -> tuple[int, list[str]]:
    """Return ``max_batch_size`` and remarks."""
    tensors = (*served.inputs, *served.outputs)
    fixed = [tensor.name for tensor in tensors if _is_fixed(tensor)]
    shapes = [tensor.name for tensor in tensors if tensor.is_shape]
    hindrance = ""
    if fixed:
        hindrance = f"the first dimension of {visible(fixed[0])!r} is not free"
    elif shapes:
        hindrance = f"{visible(shapes[0])!r} is a shape"
    elif not served.inputs:
        hindrance = "there is no input"
    limits = [tensor.most for tensor in served.inputs if tensor.most is not None]
    most = min(limits, default=None)
    if asked:
        if hindrance:
            raise UsageError(f"Triton cannot make batches: {hindrance}", hint="Use --max-batch 0")
        if most is not None and asked > most:
            raise UsageError(f"the engine takes batches of at most {most}")
    names = {
        str(tensor.dims[0])
        for tensor in tensors
        if tensor.dims and tensor.dims[0] is not None and tensor.dims[0] not in PLACEHOLDERS
    }
    if asked is None and not hindrance and len(names) > 1:
        shown = " and ".join(visible(name) for name in sorted(names)[:2])
        hindrance = f"first dimensions differ ({shown}); --max-batch N makes batches anyway"
    batch = asked
    remarks = []
    if batch is None and hindrance:
        batch = 0
        remarks.append(f"Triton cannot make batches: {hindrance}")
    elif batch is None:
        batch = most or (_USUAL_BATCH if served.bounded else 1)
        if not served.bounded:
            remarks.append(
                "the greatest batch of the engine is not in its layer information: --max-batch"
                " gives it"
            )
    if batch == 0:
        scalars = [tensor.name for tensor in tensors if tensor.dims == ()]
        if scalars:
            raise InputError(
                f"{visible(scalars[0])!r} is a scalar, which Triton does not take",
                hint="Give it a dimension of 1",
            )
    return batch, remarks


def _config_tensor(tensor: ServedTensor, batched: bool) -> ConfigTensor:
    dims = (tensor.dims or ())[1 if batched else 0 :]
    sizes = [size if isinstance(size, int) else -1 for size in dims]
    return ConfigTensor(tensor.name, f"TYPE_{_TYPES[tensor.dtype or '']}", sizes)


def _tensors(
    title: str, tensors: Sequence[ServedTensor], config_tensors: Sequence[ConfigTensor]
) -> list[str]:
    if not config_tensors:
        return []
    blocks = []
    for tensor, entry in zip(tensors, config_tensors, strict=True):
        dims = ", ".join(map(str, entry.dims)) or "1"
        rows = [
            f'name: "{CEscape(entry.name.encode(), as_utf8=False)}"',
            f"data_type: {entry.data_type}",
            f"dims: [ {dims} ]",
        ]
        # One value a request: Triton wants a dimension, and the model has none.
        rows += [] if entry.dims else ["reshape { shape: [ ] }"]
        rows += ["is_shape_tensor: true"] if tensor.is_shape else []
        rows += [] if tensor.is_linear else ["is_non_linear_format_io: true"]
        blocks.append("  {\n" + "".join(f"    {row}\n" for row in rows) + "  }")
    return [f"{title} [\n" + ",\n".join(blocks) + "\n]"]


def write_model(document: Document, place: Path) -> list[str]:
    """Write a model with its data files to a place in a repository and return remarks.

    Args:
        document: The model; afterwards it belongs to the file that was written.
        place: ``REPOSITORY/NAME/1/model.onnx``.

    Raises:
        SaveError: It could not be written.
    """
    if document.path is not None and _is_same(document.path, place):
        return []
    _make_folder(place.parent)
    return save(document, place)


def write_engine(engine: Path, place: Path, *, link: bool) -> list[str]:
    """Copy an engine, or give it a second name, in a repository; as :func:`write_model`."""
    if _is_same(engine, place):
        return []
    _make_folder(place.parent)
    if link:
        try:
            if permission.may_replace(place):
                place.unlink(missing_ok=True)
            os.link(os.path.realpath(engine), place)
        except OSError as error:
            raise SaveError(
                f"the engine cannot be linked: {error.strerror}",
                where=str(place),
                hint="Copy it: leave --link out",
            ) from error
        return [f"{place.name} is linked: what changes it in place changes {engine} as well"]
    source = Source.open(engine)
    try:
        return write_pieces(place, [Blob(source, 0, source.size, "")])
    finally:
        source.close()


def write_config(config: ModelConfig, place: Path) -> list[str]:
    """Write ``config.pbtxt``, after the model: a server that looks meanwhile finds it whole."""
    _make_folder(place.parent)
    return write_text(place, config.text)


def _is_same(source: Path, place: Path) -> bool:
    try:
        return os.path.samefile(source, place)
    except OSError:
        return False


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SaveError(
            f"the folder cannot be made: {error.strerror}", where=str(folder)
        ) from error
