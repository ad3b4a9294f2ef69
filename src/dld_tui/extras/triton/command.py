"""``dld triton``: a model repository for Triton Inference Server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dld_tui.cli.command import Command
from dld_tui.cli.output import narrate, write, write_json
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.files.recognise import HEAD, engine_header
from dld_tui.core.files.source import Source
from dld_tui.core.text import visible
from dld_tui.extras.triton import repository


@click.command("triton", cls=Command)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, metavar="REPOSITORY", type=click.Path(path_type=Path),
    help="The model repository; created if missing.",
)  # fmt: skip
@click.option("--name", metavar="NAME", help="Name of the model; by default that of its file.")
@click.option(
    "--max-batch", type=click.IntRange(min=0, max=2**31 - 1), metavar="N",
    help="max_batch_size; 0 disables batching.",
)  # fmt: skip
@click.option("--kind", type=click.Choice(repository.KINDS), help="Kind of the instances.")
@click.option(
    "--count", type=click.IntRange(min=1, max=2**31 - 1), default=1, show_default=True,
    metavar="N", help="Number of instances per device.",
)  # fmt: skip
@click.option("--link", is_flag=True, help="Hard-link the engine instead of copying it.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    model: Path, output: Path, name: str | None, link: bool, force: bool, as_json: bool,
    **asked: Any,
) -> None:  # fmt: skip
    """Write a model repository for Triton Inference Server.

    MODEL is an ONNX model, or a TensorRT engine with its layer information beside it. Writes
    REPOSITORY/NAME/config.pbtxt and REPOSITORY/NAME/1/model.onnx or model.plan.
    """
    name = model.stem if name is None else name
    folder = output / name
    options = {**asked, "name": name, "kind": asked["kind"] or ""}
    place = folder / "config.pbtxt"
    source = Source.open(model)
    try:
        header = engine_header(source.read(0, min(HEAD, source.size)))
    finally:
        source.close()
    if header is not None:
        if header.product != "TensorRT":
            raise InputError(
                f"Triton does not support engines of {header.product}", where=str(model)
            )
        target = folder / "1" / "model.plan"
        config = _engine_config(model, options)
        _require_free((place, target), model, force)
        remarks = repository.write_engine(model, target, link=link)
        remarks.append(f"Triton has to have the same TensorRT as the engine: {header.text}")
    else:
        target = folder / "1" / "model.onnx"
        if link:
            # ONNX and its checker take data files with several names for an attack.
            raise UsageError(
                "--link only works for engines: models are copied with their data files"
            )
        config, remarks = _write_model(model, place, target, options, force)
    remarks = [*config.remarks, *remarks]
    remarks += repository.write_config(config, place)
    for remark in remarks:
        narrate(f"{target}: {remark}")
    _print(config, place, target, remarks, as_json)


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
