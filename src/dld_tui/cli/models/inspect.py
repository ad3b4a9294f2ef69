"""``dld inspect``: summary of a model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.cli.command import also_written, command_for, force_flag, json_flag
from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.checks import Finding, check
from dld_tui.core.codec import encode
from dld_tui.core.compare.requirement_files import RequirementState, requirement_states
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.llm.folder import FolderContents, contents_of, open_document
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.summary import GraphTensor, ModelSummary, summarise
from dld_tui.core.params import param, whole_numbers
from dld_tui.core.tables.table import COUNT, Column, Table
from dld_tui.core.tensorrt.engine_cache import cached_engine
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.parts.ep_context import EpContext

_MOST_FINDINGS = 20
"""Maximum number of findings to print."""


@dataclass(frozen=True)
class Request:
    """The arguments and options of ``dld inspect``."""

    model: Path = param(label="Model", help="The ONNX model.", positional=True)
    nodes: bool = param(
        False, label="Nodes",
        help="List all nodes, including subgraphs and functions.",
    )  # fmt: skip
    cost: bool = param(False, label="Cost", help="List MACs, FLOPs and bytes of each node.")
    memory: bool = param(
        False, label="Memory",
        help="Predict the memory of a run: weights, activations, live tensors.",
    )  # fmt: skip
    shape: tuple[str, ...] = param(
        (), label="Shape", metavar="NAME:DIMS",
        help="Input shape for --cost and --memory, such as x:1x3x224x224.",
    )  # fmt: skip
    budget: bool = param(
        False, label="Budget",
        help="Predict memory by context length and the minimum time per token of a decoder.",
    )  # fmt: skip
    batch: str = param("1", label="Batch", help="Batch size for --budget.", metavar="N,…")
    context: str = param(
        "", label="Context", metavar="N,…",
        help="Context length for --budget; by default 2048 or the maximum of the model.",
    )  # fmt: skip
    device: tuple[str, ...] = param(
        (), label="Device", metavar="NAME",
        help="Device for --budget, such as H200 or NAME=TFLOPS,GB/s,GB; by default this machine.",
    )  # fmt: skip
    csv: Path | None = also_written("--csv", "the table as CSV")
    force: bool = force_flag()
    as_json: bool = json_flag()

    def require(self) -> None:
        """Check that options go together.

        Raises:
            UsageError: One needs another, or two exclude each other.
        """
        if (self.csv is not None or self.shape) and not (self.cost or self.memory):
            option = "--csv" if self.csv else "--shape"
            raise UsageError(f"{option} needs --cost or --memory", hint="Add --cost or --memory")
        if self.cost and self.memory:
            raise UsageError("--cost and --memory exclude each other", hint="Use one")
        if (self.context or self.device or self.batch != "1") and not self.budget:
            hint = "Add --budget"
            raise UsageError("--batch, --context and --device need --budget", hint=hint)


@command_for("inspect", Request)
def command(asked: Request) -> None:
    """Summarise a model: operators, inputs, outputs, weights. Does not read weight data."""
    if asked.budget:
        from dld_tui.cli.models.cost import write_budget

        sizes = [whole_numbers(text, flag) for text, flag in
                 ((asked.batch, "--batch"), (asked.context, "--context"))]  # fmt: skip
        write_budget(asked.model, sizes[0], sizes[1], asked.device, as_json=asked.as_json)
        return
    require_free([asked.csv], asked.force)
    if asked.cost or asked.memory:
        _write_counted(asked.model, asked.memory, asked.shape, asked.csv, asked.as_json)
        return
    inspect_model(asked.model, nodes=asked.nodes, as_json=asked.as_json)


def _write_counted(
    path: Path, memory: bool, shapes: Sequence[str], csv: Path | None, as_json: bool
) -> None:
    from dld_tui.cli.models import cost  # a look without costs is faster

    with contextlib.closing(open_document(path)) as document:
        if memory:
            cost.write_memory(document, path, shapes, csv, as_json=as_json)
        else:
            summary = summarise(document)  # of the file, which counting changes
            costs = cost.counted(document, path, shapes)
            cost.write_costs(costs, summary, csv, as_json=as_json)


def inspect_model(path: Path, *, nodes: bool = False, as_json: bool = False) -> None:
    """Print a model as text or JSON.

    Raises:
        InputError: The file is not a readable model.
    """
    cached = cached_engine(path) if path.is_file() else None
    if cached is not None:
        if as_json:
            write_json(cached.to_json())
        else:
            for title, text in [("file", str(path)), *cached.lines]:
                write(_line(title, text))
        return
    document = open_document(path)
    try:
        all_findings = check(document, operators=False)  # those of `dld check` are slower to load
        findings = [finding for finding in all_findings if finding.level != "info"]
        _narrate_findings(path, findings)
        summary = summarise(document)
        contents = contents_of(path) if path.is_dir() else None
        required = _required(document)
        if as_json:
            _write_json(document, summary, findings, nodes, contents, required)
        elif nodes:
            for scope in document.scopes():
                for node in scope.nodes:
                    write(node_line(scope, node))
        else:
            if contents is not None:
                _write_contents(contents)
            for line in (*summary_lines(summary), *_compiled(document, summary)):
                write(line)
            for number, one in enumerate(required):
                write(_line("" if number else "required", f"{one.requirement}  {one.text}"))
            write()
            columns: tuple[Column[tuple[str, int]], ...] = (
                Column("operator", "operator", itemgetter(0)),
                Column("count", "count", itemgetter(1), COUNT),
            )
            write_table(Table(columns, [*summary.op_types.items()]))
    finally:
        document.close()


def _required(document: Document) -> list[RequirementState]:
    """Return what is required of a model; a file of requirements that cannot be read is told."""
    try:
        return requirement_states(document.path) if document.path is not None else []
    except DldError as error:
        narrate(f"{error.where}: {error.message}")
        return []


def _write_contents(contents: FolderContents) -> None:
    """Print the files of a language model folder."""
    others = [name for name in contents.models if name != contents.decoder]
    figures = (f"{name} {number:,}" for name, number in contents.numbers.items())
    for title, texts in (
        ("decoder", [contents.decoder]),
        ("other models", others),
        ("configuration", contents.configuration),
        ("tokenizer", contents.tokenizer),
        ("says", figures),
    ):
        text = ", ".join(map(visible, texts))
        write(f"{title:13}  {text or fmt.UNKNOWN}")
    write()


def _narrate_findings(path: Path, findings: list[Finding]) -> None:
    for finding in findings[:_MOST_FINDINGS]:
        narrate(f"{path}: {finding.level}: {_place(finding)}{finding.message}")
    if len(findings) > _MOST_FINDINGS:
        narrate(f"{path}: and {len(findings) - _MOST_FINDINGS} more, see --json")


def _place(finding: Finding) -> str:
    steps = list(finding.scope.path) if finding.scope is not None else []
    if finding.node is not None:
        steps.append(finding.node.ref)
    return f"{' › '.join(steps)}: " if steps else ""


def _write_json(
    document: Document,
    summary: ModelSummary,
    findings: list[Finding],
    nodes: bool,
    contents: FolderContents | None,
    required: Sequence[RequirementState],
) -> None:
    data = summary.to_json()
    if required:
        data["requirements"] = [one.to_json() for one in required]
    if contents is not None:
        data["folder"] = encode(contents)
    data["findings"] = [finding.to_json() for finding in findings]
    if compiled := _contexts(document, summary):
        data["compiled"] = [context.to_json() for context in compiled]
    if nodes:
        data["node_list"] = [
            _node_json(scope, node) for scope in document.scopes() for node in scope.nodes
        ]
    write_json(data)


def _node_json(scope: Scope, node: Node) -> JSON:
    return {
        "scope": list(scope.path),
        "name": node.name,
        "op_type": node.op_type,
        "domain": node.domain,
        "inputs": list(node.inputs),
        "outputs": list(node.outputs),
    }


def node_line(scope: Scope, node: Node) -> str:
    """Return one line for a node: place, operator, inputs, outputs."""
    place = "".join(f"{step} › " for step in scope.path)
    operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    ins, outs = (", ".join(name or "–" for name in names) for names in (node.inputs, node.outputs))
    return visible(f"{place}{node.ref}  {operator}({ins}) -> {outs or '–'}")


def summary_lines(summary: ModelSummary) -> Iterator[str]:
    """Yield the lines above the operator table."""
    opsets = (f"{domain or 'ai.onnx'} {version}" for domain, version in summary.opsets.items())
    needed = [tensor for tensor in summary.inputs if not tensor.has_default]
    yield _line("model", summary.path)
    producer = f", by {summary.producer}" if summary.producer else ""
    yield _line("format", f"ONNX IR {summary.ir_version}{producer}")
    yield _line("opsets", ", ".join(opsets) or "none")
    yield from _tensor_lines("inputs", needed)
    if len(needed) < len(summary.inputs):
        yield _line("", f"and {len(summary.inputs) - len(needed)} that initializers give")
    yield from _tensor_lines("outputs", summary.outputs)
    total = f"{fmt.count(summary.nodes_total)} with subgraphs and functions"
    more = f", {total}" if _has_inner(summary) else ""
    yield _line("nodes", f"{fmt.count(summary.nodes)}{more}")
    if summary.subgraphs:
        yield _line("subgraphs", fmt.count(summary.subgraphs))
    for index, function in enumerate(summary.functions):
        text = f"{function.domain}.{function.name}, {fmt.plural(function.nodes, 'node')}"
        yield _line("" if index else "functions", text)
    constants = summary.constants
    weights = []
    if summary.initializers:
        tensors = fmt.plural(summary.initializers, "initializer")
        parameters = fmt.short_count(summary.parameters)
        weights.append(f"{summary.weights_text}, {parameters} parameters in {tensors}")
    if constants and constants.bytes * 100 > summary.initializer_bytes:  # not shapes alone
        weights.append(constants.text)
    yield _line("weights", "; ".join(weights) or "none")
    if summary.external_files:
        files = ", ".join(summary.external_files)
        unused = summary.external_unused
        rest = f"; {fmt.size(unused)} there are used by no tensor" if unused else ""
        yield _line("external", f"{fmt.size(summary.external_bytes)} in {files}{rest}")


def _contexts(document: Document, summary: ModelSummary) -> list[EpContext]:
    """Return the parts compiled by an execution provider."""
    if "EPContext" not in summary.op_types:
        return []
    from dld_tui.core.model.document.parts.ep_context import contexts_of

    return contexts_of(document)


def _compiled(document: Document, summary: ModelSummary) -> Iterator[str]:
    for number, context in enumerate(_contexts(document, summary)):
        yield _line("" if number else "compiled", context.line)
        if context.file and context.bytes is not None and document.path is not None:
            cached = cached_engine(document.path.with_name(context.file))
            for one in cached.ranges if cached else ():
                yield _line("", f"  {one.text}")


def _has_inner(summary: ModelSummary) -> bool:
    return summary.nodes_total != summary.nodes


def _tensor_lines(title: str, tensors: list[GraphTensor]) -> Iterator[str]:
    for index, tensor in enumerate(tensors):
        kind = tensor.type.text if tensor.type else "unknown type"
        yield _line("" if index else title, f"{tensor.name}  {kind}")
    if not tensors:
        yield _line(title, "none")


def _line(title: str, text: str) -> str:
    return f"{title:<11}{visible(text)}"
