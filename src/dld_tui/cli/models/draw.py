"""``dld draw``: a picture of a graph, as SVG, HTML, PNG, JPEG or text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dld_tui.cli.command import command_for, force_flag, json_flag
from dld_tui.cli.output import narrate, write, write_json
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.model.graph.folding import Overview
from dld_tui.core.model.graph.pictures import style
from dld_tui.core.model.graph.pictures.content import folded_content
from dld_tui.core.model.graph.pictures.drawing import picture_of, rows_text, text_picture
from dld_tui.core.params import param
from dld_tui.core.process.terminal import is_terminal
from dld_tui.core.reading.model_pictures import Drawing, lacks_types, picture_of_scope
from dld_tui.core.tensorrt.plan.graph import drawn_plan, plan_content
from dld_tui.core.tensorrt.plan.mapping import map_plan, node_paths
from dld_tui.core.tensorrt.plan.reader import open_plan

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.model.graph.pictures.drawing import Picture

SCHEMES = ("light", "dark", "colour-blind", "mono")
_FORMATS = {"svg": "svg", "html": "html", "png": "png", "jpg": "jpeg", "txt": "text"}
_SLOW = 1_500
"""Number of nodes from which on a message announces the layout."""


@dataclass(frozen=True)
class Request:
    """The arguments and options of ``dld draw``."""

    model: Path = param(label="Model", help="The ONNX model.", positional=True)
    output: Path = param(
        label="Output", spellings=("--output", "-o"), metavar="FILE", kind="output",
        help="Write the picture here. The suffix .svg, .html, .png, .jpg or .txt selects the "
        "format; - is standard output.",
    )  # fmt: skip
    kind: str | None = param(
        None, label="Kind", spellings=("--format",), choices=(*_FORMATS,),
        help="Format, regardless of the suffix.",
    )  # fmt: skip
    view: str = param(
        "canvas", label="View", choices=("canvas", "overview", "rail"),
        help="Draw boxes; or, as text, one row per node with rails, or the folded overview.",
    )  # fmt: skip
    scope: tuple[str, ...] = param(
        (), label="Scope", metavar="STEP",
        help="Draw this subgraph; repeat for nested ones.",
    )  # fmt: skip
    node: str | None = param(
        None, label="Node", metavar="NAME",
        help="Draw the neighbourhood of a node, by its name or an output.",
    )  # fmt: skip
    hops: int = param(
        2, label="Hops", help="Size of the neighbourhood.", metavar="N", minimum=1, maximum=20
    )
    folded: bool | None = param(
        None, label="Folded",
        help="Draw repeated blocks and name scopes as single boxes. By default only if the picture"
        " would be too large for viewers.",
    )  # fmt: skip
    constants: bool = param(False, label="Constants", help="Also draw constant subexpressions.")
    colour: str = param(
        "type", label="Colour", choices=("type", "precision"),
        help="Meaning of the colours of an engine's layers.",
    )  # fmt: skip
    report: Path | None = param(
        None, label="Report", metavar="REPORT",
        help="Show the times of a profile report; in HTML also as colours.",
    )  # fmt: skip
    types: bool = param(True, label="Types", help="Infer missing types and shapes.")
    scheme: str = param(SCHEMES[0], label="Scheme", help="Colours.", choices=tuple(SCHEMES))
    background: str | None = param(
        None, label="Background", metavar="COLOUR",
        help="Background colour, #rrggbb or none.",
    )  # fmt: skip
    grid: bool = param(False, label="Grid", help="Draw a background grid.")
    scale: float | None = param(
        None, label="Scale", minimum=0.02, maximum=10,
        help="Scale the picture.",
    )  # fmt: skip
    ascii: bool = param(False, label="Ascii", help="Draw text in ASCII.")
    force: bool = force_flag()
    as_json: bool = json_flag()

    def require(self) -> None:
        """Check the background.

        Raises:
            UsageError: It is no colour.
        """
        _ = self.look

    @property
    def look(self) -> style.Look:
        """Scheme, background and grid.

        Raises:
            UsageError: The background is no colour.
        """
        background = None if self.background is None else style.read_background(self.background)
        return style.Look(style.SCHEMES[self.scheme], background, self.grid)


@command_for("draw", Request)
def command(asked: Request) -> None:
    """Draw the graph of a model or an engine as SVG, HTML, PNG, JPEG or text."""
    from dld_tui.core.files.writer import write_bytes

    kind = _kind(asked)
    to_pipe = _is_pipe(asked.output)
    if not to_pipe:
        require_free([asked.output], asked.force)
    elif asked.as_json:
        raise UsageError("--json and the picture cannot both go to standard output")
    picture, nodes = _picture(kind, asked)
    if to_pipe:
        click.echo(picture.data, nl=False)
        return
    for remark in write_bytes(asked.output, picture.data):
        narrate(f"{asked.output}: {remark}")
    if asked.as_json:
        write_json(
            {
                "path": str(asked.output),
                "format": picture.kind,
                "nodes": nodes,
                "boxes": picture.boxes,
                "oversized": picture.is_oversized,
                "width": picture.width,
                "height": picture.height,
                "crossings": picture.crossings,
                "bytes": len(picture.data),
            }
        )
    else:
        unit = "cells" if picture.kind == "text" else "pixels"
        write(f"{picture.boxes:,} boxes, {picture.width:,} x {picture.height:,} {unit}")


def _picture(kind: str, asked: Request) -> tuple[Picture, int]:
    """Return the picture and its number of nodes or layers."""
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.model.document.parts.extraction import body_at
    from dld_tui.core.tensorrt.plan.reader import is_plan

    model = asked.model
    if model.suffix != ".onnx" and not model.is_dir() and is_plan(model):
        return _draw_plan(kind, asked)
    if asked.colour != "type":
        raise UsageError("--colour only works for engines")
    document = open_document(model)
    try:
        scope = body_at(document, asked.scope)
        return _draw(document, scope, kind, asked), len(scope.nodes)
    finally:
        document.close()


def _is_pipe(output: Path) -> bool:
    return str(output) == "-"


def _kind(asked: Request) -> str:
    """Return the format; reject conflicting options."""
    from dld_tui.core.model.graph.pictures.drawing import kind_of

    if asked.kind is not None:
        kind = _FORMATS[asked.kind]
    else:
        kind = "text" if _is_pipe(asked.output) else kind_of(asked.output)
    if kind in ("png", "jpeg") and _is_pipe(asked.output) and is_terminal(sys.stdout):
        raise UsageError("a terminal cannot show these bytes", hint="Give a file")
    if asked.view != "canvas" and asked.node is not None:
        raise UsageError("--node draws boxes only", hint="Omit --view")
    if asked.view == "rail" and (kind != "text" or asked.folded):
        raise UsageError("rails need text output and all nodes", hint="Use --format txt")
    if asked.report is not None and (asked.node is not None or asked.folded):
        raise UsageError("--report draws every node", hint="Omit --node and --folded")
    if asked.node is not None and asked.folded:
        raise UsageError("--node and --folded exclude each other", hint="Use one of them")
    return kind


def _draw(document: Document, scope: Scope, kind: str, asked: Request) -> Picture:
    def tell(text: str) -> None:
        narrate(f"{asked.model}: {text}")

    if asked.types and lacks_types(scope):
        from dld_tui.api.inference import infer

        infer(document, asked.model, narrate)
    if len(scope.nodes) > _SLOW:
        tell(f"arranging {len(scope.nodes):,} nodes")
    title = " › ".join([asked.model.name, *scope.path])
    drawing = Drawing(
        kind, asked.view, asked.node, asked.hops, asked.folded, asked.constants, asked.report,
        asked.look, asked.scale, asked.ascii,
    )  # fmt: skip
    return picture_of_scope(document, scope, title, drawing, tell, "--no-folded")


_OF_MODELS = {
    "scope": "--scope", "node": "--node", "constants": "--constants", "report": "--report",
}  # fmt: skip


def _draw_plan(kind: str, asked: Request) -> tuple[Picture, int]:
    """Return the picture of an engine and its number of layers.

    Args:
        kind: The format.
        asked: The options of ``dld draw``; the layer information has the other files beside it.

    Raises:
        InputError: The file cannot be read, or lists no layers.
        UsageError: An option is for models only.
    """
    for name, option in _OF_MODELS.items():
        if getattr(asked, name):
            raise UsageError(f"{option} only works for models", where=str(asked.model))
    plan = open_plan(asked.model)
    if not plan.layers:
        raise InputError("there are no layers to draw", where=str(asked.model))
    drawn = drawn_plan(plan, node_paths(map_plan(plan)))
    count = len(plan.layers)
    view = asked.view
    if kind == "text" and view != "canvas":
        overview = Overview(drawn.graph)
        if view == "rail":
            overview.open_all()
        lines = rows_text(overview, lambda name: "")
        return text_picture(lines, asked.ascii, len(overview.rows)), count
    if asked.folded or view == "overview":
        content = folded_content(Overview(drawn.graph), plan.title)
        content.noun = "layer"
    else:
        content = plan_content(plan, asked.colour, drawn)
    picture = picture_of(content, kind, asked.look, scale=asked.scale, in_ascii=asked.ascii)
    return picture, count
