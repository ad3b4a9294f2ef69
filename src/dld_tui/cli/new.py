"""``dld new``: an empty model."""

from __future__ import annotations

from pathlib import Path

import click

from dld_tui.cli.output import require_free, write_json


@click.command("new")
@click.argument("output", metavar="OUT.onnx", type=click.Path(path_type=Path))
@click.option("--opset", type=click.IntRange(min=1), help="Operator set version; default: newest.")
@click.option("--contrib", is_flag=True, help="Import com.microsoft operators too.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(output: Path, opset: int | None, contrib: bool, force: bool, as_json: bool) -> None:
    """Write a model without nodes, inputs or outputs."""
    import onnx

    from dld_tui.core.document.document import Document
    from dld_tui.core.document.saving import save
    from dld_tui.core.errors import UsageError

    require_free(output, force)
    newest = onnx.defs.onnx_opset_version()
    if opset is not None and opset > newest:
        raise UsageError(f"--opset is {opset}; the newest that is known is {newest}")
    opsets = {"": opset or newest}
    if contrib:
        opsets["com.microsoft"] = 1
    document = Document.new(opsets)
    try:
        save(document, output)
    finally:
        document.close()
    if as_json:
        write_json({"path": str(output), "opsets": dict(opsets)})
