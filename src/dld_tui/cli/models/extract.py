"""``dld extract``: extract part of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.cli.command import command_for, force_flag, json_flag
from dld_tui.cli.output import narrate, write, write_json
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ExitStatus, UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.params import param, split_pair
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.parts.extraction import Extraction
    from dld_tui.core.model.document.scope import Scope


@dataclass(frozen=True)
class Request:
    """The arguments and options of ``dld extract``."""

    model: Path = param(label="Model", help="The ONNX model.", positional=True)
    output: Path = param(
        label="Output", spellings=("--output", "-o"), metavar="OUT", kind="output",
        help="Write the model here.",
    )  # fmt: skip
    nodes: tuple[str, ...] = param(
        (), label="Nodes", metavar="A,B",
        help="Extract these nodes, by name or by output.",
    )  # fmt: skip
    inputs: tuple[str, ...] = param(
        (), label="Inputs", metavar="T[=NAME],...",
        help="Start at these tensors, under a new name where there is one.",
    )  # fmt: skip
    outputs: tuple[str, ...] = param(
        (), label="Outputs", metavar="T[=NAME],...",
        help="End at these tensors, under a new name where there is one.",
    )  # fmt: skip
    subgraph: str | None = param(
        None, label="Subgraph", metavar="NODE:ATTRIBUTE",
        help="Extract the subgraph in an attribute of a node.",
    )  # fmt: skip
    function: str | None = param(
        None, label="Function", metavar="DOMAIN:NAME",
        help="Extract a local function.",
    )  # fmt: skip
    context: str | None = param(
        None, label="Context", metavar="NODE", bare="",
        help="Extract the compiled engine of an EPContext node; NODE selects one of several.",
    )  # fmt: skip
    scope: tuple[str, ...] = param(
        (), label="Scope", metavar="STEP",
        help="Look in this subgraph; repeat for nested ones.",
    )  # fmt: skip
    force: bool = force_flag()
    as_json: bool = json_flag()

    def require(self) -> None:
        """Check that one way to say what to extract is used.

        Raises:
            UsageError: There is none, or more than one.
        """
        ways = [
            bool(self.nodes),
            bool(self.inputs or self.outputs),
            bool(self.subgraph),
            bool(self.function),
            self.context is not None,
        ]
        if sum(ways) != 1:
            raise UsageError(
                "say what to extract"
                if not any(ways)
                else "--nodes, --inputs with --outputs, --subgraph, --function and --context are"
                " ways to say it",
                hint="Use one of --nodes, --inputs/--outputs, --subgraph, --function, --context",
            )


@command_for("extract", Request)
def command(asked: Request) -> int:
    """Extract part of a model to a separate model.

    Cut links become inputs and outputs. The result contains the initializers, opset imports and
    local functions that it uses. Separate names with commas, or repeat the option. Exit status 1 if
    the part is not valid, or ONNX Runtime refuses it unlike the model.
    """
    from dld_tui.api.inference import infer
    from dld_tui.api.soundness import original, unsound
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.model.document.parts.extraction import declare_inferred
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.model.document.serialise import save
    from dld_tui.core.model.edits import renaming

    require_free([asked.output], asked.force)
    document = open_document(asked.model)
    try:
        if asked.context is not None:
            _extract_context(document, asked.context, asked.output, asked.as_json)
            return ExitStatus.DONE
        extraction = _extract(document, asked)
        if extraction.untyped and infer(document, asked.model, narrate):
            extraction.document.close()
            extraction = _extract(document, asked)
        try:
            if extraction.untyped and infer(extraction.document, asked.model, narrate):
                declare_inferred(extraction)
            for side in ("inputs", "outputs"):
                for name, new in _split(document, getattr(asked, side), Scope.resolve).items():
                    if new != name:
                        extraction.document.apply(
                            renaming.rename_value(scope=[], value=name, name=new)
                        )
            with original(document, asked.model, asked.output) as before:
                remarks = [*extraction.remarks, *save(extraction.document, asked.output)]
                problem = unsound(before, asked.output, narrate)
            remarks += (
                f"the type of {visible(name)!r} is not known" for name in extraction.untyped
            )
            for remark in remarks:
                narrate(f"{asked.output}: {remark}")
            _print(extraction, asked.output, remarks, problem, asked.as_json)
            return ExitStatus.FOUND if problem else ExitStatus.DONE
        finally:
            extraction.document.close()
    finally:
        document.close()


def _extract(document: Document, asked: Request) -> Extraction:
    from dld_tui.core.model.document.parts.extraction import extract_part
    from dld_tui.core.model.document.scope import Scope

    return extract_part(
        document,
        scope=asked.scope,
        nodes=list(_split(document, asked.nodes, Scope.find)),
        inputs=list(_split(document, asked.inputs, Scope.resolve)),
        outputs=list(_split(document, asked.outputs, Scope.resolve)),
        subgraph=asked.subgraph or "",
        function=asked.function or "",
    )


def _extract_context(document: Document, name: str, output: Path, as_json: bool) -> None:
    from dld_tui.core.model.document.parts.ep_context import extract_context

    context = extract_context(document, name, output)
    if as_json:
        write_json({"path": str(output), **context.to_json()})
        return
    write(f"{visible(str(output))}: {context.line}")
    if context.header is not None:
        narrate(f"dld plan {visible(str(output))} shows its header; its layers need the layer"
                " information of dld build or trtexec")  # fmt: skip


_MOST_COMMAS = 32
"""Maximum number of parts that may form one name."""


def _split(
    document: Document, texts: Sequence[str], has: Callable[[Scope, str], object]
) -> dict[str, str]:
    """Return the names, and what each is to be called, of ``A,B=NEW``.

    Names that some graph has may contain commas and equals signs.
    """
    scopes = list(document.scopes())

    def known(name: str) -> bool:
        return any(has(scope, name) for scope in scopes)

    names: dict[str, str] = {}
    for text in texts:
        parts = text.split(",")
        while parts:
            for end in range(min(len(parts), _MOST_COMMAS), 0, -1):
                name, new = split_pair(",".join(parts[:end]), known)
                if known(name) and "," not in new:
                    break
            if names.get(name, new or name) != (new or name):
                raise UsageError(f"{visible(name)!r} gets two names")
            if name:
                names[name] = new or name
            del parts[:end]
    return names


def _print(
    extraction: Extraction, output: Path, remarks: Sequence[str], problem: str, as_json: bool
) -> None:
    from dld_tui.core.model.document.summary import summarise

    summary = summarise(extraction.document, constants=False)
    if as_json:
        write_json(
            {
                "path": str(output),
                "nodes": summary.nodes,
                "inputs": [tensor.to_json() for tensor in summary.inputs],
                "outputs": [tensor.to_json() for tensor in summary.outputs],
                "initializers": summary.to_json()["initializers"],
                "remarks": list(remarks),
                "unsound": problem or None,
            }
        )
        return
    for title, tensors in (("input", summary.inputs), ("output", summary.outputs)):
        for tensor in tensors:
            kind = tensor.type.text if tensor.type is not None else "of unknown type"
            write(f"{title:<6}  {visible(tensor.name)}  {visible(kind)}")
    write(
        f"{fmt.plural(summary.nodes, 'node')}, {fmt.plural(summary.initializers, 'initializer')}"
        f" of {summary.weights_text}"
    )
