"""``dld triton``: a model repository for Triton Inference Server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dld_tui.cli.command import command_for, force_flag, json_flag
from dld_tui.cli.output import narrate, write, write_json
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.files.recognise import HEAD, engine_header
from dld_tui.core.files.source import Source
from dld_tui.core.params import param
from dld_tui.core.text import visible
from dld_tui.extras.triton import repository


@dataclass(frozen=True)
class Request:
    """The arguments and options of ``dld triton``."""

    model: Path = param(label="Model", help="The ONNX model or TensorRT engine.", positional=True)
    output: Path = param(
        label="Output", spellings=("--output", "-o"), metavar="REPOSITORY", kind="output",
        help="The model repository; created if missing.",
    )  # fmt: skip
    name: str | None = param(
        None, label="Name", metavar="NAME",
        help="Name of the model; by default that of its file.",
    )  # fmt: skip
    max_batch: int | None = param(
        None, label="Max batch", metavar="N", minimum=0, maximum=2**31 - 1,
        help="max_batch_size; 0 disables batching.",
    )  # fmt: skip
    kind: str | None = param(
        None, label="Kind", choices=tuple(repository.KINDS),
        help="Kind of the instances.",
    )  # fmt: skip
    count: int = param(
        1, label="Count", metavar="N", minimum=1, maximum=2**31 - 1,
        help="Number of instances per device.",
    )  # fmt: skip
    link: bool = param(False, label="Link", help="Hard-link the engine instead of copying it.")
    force: bool = force_flag("Overwrite existing files.")
    as_json: bool = json_flag()


@command_for("triton", Request)
def command(asked: Request) -> None:
    """Write a model repository for Triton Inference Server.

    MODEL is an ONNX model, or a TensorRT engine with its layer information beside it. Writes
    REPOSITORY/NAME/config.pbtxt and REPOSITORY/NAME/1/model.onnx or model.plan.
    """
    name = asked.model.stem if asked.name is None else asked.name
    folder = asked.output / name
    options = {
        "name": name, "kind": asked.kind or "", "max_batch": asked.max_batch, "count": asked.count
    }  # fmt: skip
    place = folder / "config.pbtxt"
    source = Source.open(asked.model)
    try:
        header = engine_header(source.read(0, min(HEAD, source.size)))
    finally:
        source.close()
    if header is not None:
        if header.product != "TensorRT":
            raise InputError(
                f"Triton does not support engines of {header.product}", where=str(asked.model)
            )
        target = folder / "1" / "model.plan"
        config = _engine_config(asked.model, options)
        _require_free((place, target), asked.model, asked.force)
        remarks = repository.write_engine(asked.model, target, link=asked.link)
        remarks.append(f"Triton has to have the same TensorRT as the engine: {header.text}")
    else:
        target = folder / "1" / "model.onnx"
        if asked.link:
            # ONNX and its checker take data files with several names for an attack.
            raise UsageError(
                "--link only works for engines: models are copied with their data files"
            )
        config, remarks = _write_model(asked.model, place, target, options, asked.force)
    remarks = [*config.remarks, *remarks]
    remarks += repository.write_config(config, place)
    for remark in remarks:
        narrate(f"{target}: {remark}")
    _print(config, place, target, remarks, asked.as_json)


def _engine_config(engine: Path, options: dict[str, Any]) -> repository.ModelConfig:
    from dld_tui.core.tensorrt.plan.reader import open_plan

    return repository.model_config(served=repository.describe_engine(open_plan(engine)), **options)


def _write_model(
    model: Path, place: Path, target: Path, options: dict[str, Any], force: bool
) -> tuple[repository.ModelConfig, list[str]]:
    from dld_tui.api.inference import infer
    from dld_tui.core.llm.folder import open_document

    document = open_document(model)
    try:
        served = repository.describe_model(document)
        tensors = (*served.inputs, *served.outputs)
        if any(tensor.dtype is None or tensor.dims is None for tensor in tensors) and infer(
            document, model, narrate
        ):
            served = repository.describe_model(document)
        config = repository.model_config(served=served, **options)
        _require_free((place, target), model, force)
        return config, repository.write_model(document, target)
    finally:
        document.close()


def _require_free(places: tuple[Path, ...], model: Path, force: bool) -> None:
    for place in places:
        if not (place.exists() and place.samefile(model)):
            require_free([place], force, makes_folder=True)


def _print(
    config: repository.ModelConfig, place: Path, target: Path, remarks: list[str], as_json: bool
) -> None:
    if as_json:
        write_json(
            {
                "config": str(place),
                "model": str(target),
                "max_batch_size": config.max_batch_size,
                "inputs": [vars(tensor) for tensor in config.inputs],
                "outputs": [vars(tensor) for tensor in config.outputs],
                "remarks": remarks,
            }
        )
        return
    for title, tensors in (("input", config.inputs), ("output", config.outputs)):
        for tensor in tensors:
            write(f"{title:<6}  {visible(tensor.name)}  {tensor.data_type} {tensor.dims}")
    write(f"max_batch_size {config.max_batch_size}")
