"""``dld new``: an empty model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dld_tui.cli.command import Command, force_option, json_option
from dld_tui.cli.options import parameters_of, request_from
from dld_tui.cli.output import write, write_json
from dld_tui.core.files.permission import require_free
from dld_tui.core.fmt import plural
from dld_tui.core.model.document.new_model import NewModel
from dld_tui.core.params import validate
from dld_tui.core.text import visible


def _new(output: Path, force: bool, as_json: bool, **values: Any) -> None:
    from dld_tui.core.model.document.serialise import save
    from dld_tui.core.model.edits.new_document import new_document

    request: NewModel = request_from(NewModel, values)
    validate(request)
    require_free([output], force)
    document = new_document(request)
    try:
        save(document, output)
    finally:
        document.close()
    if as_json:
        write_json({
            "path": str(output),
            "opsets": dict(document.opset_imports),
            "inputs": list(document.main.inputs),
            "outputs": list(document.main.outputs),
        })  # fmt: skip
    else:
        from dld_tui.core.model.document.operator_listing import domain_title

        imports = document.opset_imports.items()
        counts = (len(document.main.inputs), "input"), (len(document.main.outputs), "output")
        parts = [f"{domain_title(domain)} {version}" for domain, version in imports]
        parts += [*(plural(*count) for count in counts), "no nodes"]
        write(f"written to {visible(str(output))}: {', '.join(parts)}")


command = Command(
    "new",
    callback=_new,
    params=[
        click.Argument(["output"], metavar="OUT.onnx", type=click.Path(path_type=Path)),
        *parameters_of(NewModel),
        force_option("Overwrite an existing file."),
        json_option(),
    ],
    help="Write a model without nodes.",
)
