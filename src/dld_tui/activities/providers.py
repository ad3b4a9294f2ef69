"""Which nodes of a model each provider takes: asked where installed, else by its table."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UnavailableError, UsageError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.model.operators.provider_tables import (
    Cause,
    ProviderTable,
    Support,
    Verdict,
    tables,
)
from dld_tui.core.params import FIRST_PAGE, like, param
from dld_tui.core.report.provider_support import (
    Basis,
    NodeSupport,
    ProvidersResult,
    ProviderSupport,
)
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from onnx import ModelProto

    from dld_tui.core.checks.providers import TableReader
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.locations import Labels
    from dld_tui.core.model.document.node import Node

Result = ProvidersResult
_SUFFIX = "ExecutionProvider"
_LIBRARIES = {"Tensorrt": "tensorrt", "NvTensorRTRTX": "tensorrt_rtx"}
"""Providers that ask the parser of a library."""
_ELSEWHERE = ("Azure",)
"""Providers that run nothing on this machine."""


@dataclass(frozen=True)
class Request:
    """Which model, and which providers."""

    model: Path = param(
        label="Model", help="The ONNX model.", kind="file", positional=True, metavar="MODEL"
    )
    provider: str = param(
        "",
        label="Providers",
        help="List the nodes that this provider does not take; several are separated by commas.",
        spellings=("--provider", "--providers"),
        metavar="NAME",
        empty="all",
    )
    tables: bool = param(
        False,
        label="Tables only",
        help="Go by the published tables, also where the provider is installed.",
        spellings=("--tables",),
    )
    report: Path | None = param(
        None,
        label="Report",
        help="Profile report for shares of the time. By default NAME.dldprof beside the model.",
        kind="file",
        spellings=("--report",),
        metavar="REPORT",
        empty="beside the model, if any",
    )
    provider_option: tuple[str, ...] = like(Profile, "provider_option", page=FIRST_PAGE)
    ep_library: tuple[str, ...] = like(Profile, "ep_library", page=FIRST_PAGE)


class _Provider(NamedTuple):
    """A provider that is installed, has a table, or both."""

    name: str
    table: ProviderTable | None
    is_installed: bool

    @property
    def title(self) -> str:
        return self.name if self.table is None else self.table.label


class _Plain(NamedTuple):
    """The model without local functions, and with labels as names of its nodes."""

    path: Path
    document: Document
    model: ModelProto
    """With the types of all values; its nodes have other names."""
    origins: dict[str, Node | None]
    """The nodes of the file that nodes come from, by label."""
    labels: tuple[Labels, Labels]
    """Those of the file, and those of this model, whose nodes are named by the former."""

    def named(self, text: str) -> str:
        """Return a text with names of nodes in the place of labels."""
        for labels in reversed(self.labels):
            text = labels.located(text, None).message
        return text


class _Answer(NamedTuple):
    """What an installed provider takes."""

    basis: Basis
    version: str
    verdicts: dict[Node, Verdict]


def run(request: Request) -> Iterator[Event]:
    """Ask the installed providers, and read the tables of the others.

    Raises:
        InputError: The model or the report cannot be read.
        UsageError: There is no such provider.
        ActivityError: The calls of functions in the model cannot be replaced by their nodes.
    """
    from dld_tui.core.checks.providers import TableReader
    from dld_tui.core.files.model_set import discard_view, external_view
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.model.document.serialise import skeleton_bytes

    providers = _providers(request)
    yield Progress(0, None, stage="Inferring types")
    with contextlib.closing(open_document(request.model)) as document:
        view = external_view(
            skeleton_bytes(document), document.blobs, request.model.parent,
            external=document.external, loadable=True,
        )  # fmt: skip
        try:
            plain = _plain(view, document)
            with contextlib.closing(plain.document):
                reader = TableReader(plain.document, str(request.model))
                weights, weighed = _weights(request, reader, plain.origins)
                supports = []
                for at, provider in enumerate(providers):
                    yield Progress(at, len(providers), "providers", f"Asking {provider.title}")
                    supports.append(_support(request, provider, plain, reader, weights))
        finally:
            discard_view(view)
    yield Finished(
        ProvidersResult(str(request.model), weighed, tuple(supports), bool(request.provider))
    )


def _providers(request: Request) -> list[_Provider]:
    """Return the providers that are asked for, those with tables first."""
    from dld_tui.backends.onnxruntime import runtime

    installed: list[str] = []
    with contextlib.suppress(UnavailableError):
        runtime.register(map(Path, request.ep_library))
        named = {device.provider for device, _ in runtime.devices()} if request.ep_library else ()
        installed = [
            name for name in dict.fromkeys((*runtime.providers(), *named)) if name not in _ELSEWHERE
        ]
    known = {table.name: table for table in tables()}
    every = [
        _Provider(name, known.get(name), name in installed)
        for name in dict.fromkeys((*known, *installed))
    ]
    if not request.provider:
        return every
    chosen = []
    for wanted in filter(None, map(str.strip, request.provider.split(","))):
        plain = wanted.removesuffix(_SUFFIX).casefold()
        fitting = [p for p in every if plain in (p.name.casefold(), p.title.casefold())]
        if not fitting:
            names = ", ".join(provider.name for provider in every)
            raise UsageError(f"no provider {visible(wanted)!r}", hint=f"There are {names}")
        chosen += fitting
    return chosen


def _plain(view: Path, document: Document) -> _Plain:
    """Inline the functions of a view, name its nodes by labels, and infer its types."""
    from onnx import ModelProto

    from dld_tui.backends.onnxruntime.types import contrib_types
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.model.document.inlining import inline_local_functions
    from dld_tui.core.model.document.locations import Labels, node_at
    from dld_tui.core.model.shapes.inference import infer, inline_small_data, store_types
    from dld_tui.core.process.child import CrashError, LimitError, RefusedError

    outer = Labels.of_file(view)
    model = ModelProto.FromString(view.read_bytes())
    if model.functions:
        try:
            model = inline_local_functions(model)
        except (RefusedError, LimitError, CrashError) as error:
            message = f"its local functions cannot be inlined: {visible(str(error))}"
            raise ActivityError(message, where=str(document.path)) from None
        view.write_bytes(model.SerializeToString())
    inner = Labels.of_file(view)
    plain = open_document(view)
    model = ModelProto.FromString(view.read_bytes())
    inline_small_data(model, view)
    inferred = infer(model, extra_types=contrib_types).model
    store_types(plain, inferred)
    origins: dict[str, Node | None] = {}
    for scope in plain.scopes():
        for node in scope.nodes:
            named = inner.find(node.name)
            place = None if named is None else outer.place_in(named[2])
            origins[node.name] = None if place is None else node_at(document, *place)
    return _Plain(view, plain, inferred, origins, (outer, inner))


def _weights(
    request: Request, reader: TableReader, origins: Mapping[str, Node | None]
) -> tuple[dict[Node, float], str]:
    """Return the measured time or the bytes of weights of each node, and which of these."""
    report = request.report or request.model.with_suffix(".dldprof")
    if (request.report or report.is_file()) and (times := _times(report, reader, origins)):
        return times, "time"
    bytes_of: dict[Node, float] = {}
    users = Counter((node.scope.resolve(name), name) for node, name in _stored(reader.nodes))
    for node, name in _stored(reader.nodes):
        definition = node.scope.resolve(name)
        tensor = definition and definition.scope.initializer(name)
        if tensor:
            share = (tensor.nbytes or 0) / users[definition, name]
            bytes_of[node] = bytes_of.get(node, 0.0) + share
    return bytes_of, "weights" if any(bytes_of.values()) else ""


def _stored(nodes: Iterable[Node]) -> Iterator[tuple[Node, str]]:
    for node in nodes:
        for name in filter(None, node.inputs):
            definition = node.scope.resolve(name)
            if definition is not None and definition.kind == "initializer":
                yield node, name


def _times(
    path: Path, reader: TableReader, origins: Mapping[str, Node | None]
) -> dict[Node, float]:
    """Return the measured milliseconds of nodes; those of subgraphs have a part of their node's."""
    from dld_tui.core.report.node_times import node_times
    from dld_tui.core.report.report import open_report

    with open_report(path) as report:
        times = node_times(report.layers)
    outermost: dict[Node, str] = {}
    for node in reader.nodes:
        origin = origins.get(node.name)
        while origin is not None and origin.scope.owner is not None:
            origin = origin.scope.owner
        if origin is not None and not origin.scope.is_function:
            outermost[node] = origin.ref
    parts = Counter(outermost.values())
    return {node: times[ref] / parts[ref] for node, ref in outermost.items() if ref in times}


def _support(
    request: Request, provider: _Provider, plain: _Plain, reader: TableReader,
    weights: Mapping[Node, float],
) -> ProviderSupport:  # fmt: skip
    from dld_tui.core.checks.providers import partitions

    answer, why = None, ""
    if not request.tables:
        try:
            answer = _ask(request, provider, plain, reader)
        except ActivityError as error:
            why = error.message
    table = provider.table
    if answer is not None:
        verdicts = answer.verdicts
    else:
        verdicts = {} if table is None else reader.verdicts(table)
    counts = Counter(verdict.support for verdict in verdicts.values())
    total = sum(weights.values())
    taken = [node for node, verdict in verdicts.items() if verdict.support is Support.TAKEN]
    running = {node for node, one in verdicts.items() if one.support is not Support.NOT}
    main = [node for node in verdicts if node.scope.owner is None]
    nodes = []
    for node, verdict in verdicts.items():
        if verdict.support is Support.TAKEN:
            continue
        origin = plain.origins.get(node.name)
        change = "" if table is None else reader.change(table, node, verdict)
        nodes.append(
            NodeSupport(
                provider.name, () if origin is None else origin.scope.path,
                node.name if origin is None else origin.ref, node.op_type, verdict.support,
                verdict.cause, verdict.reason, change,
                weights.get(node, 0.0) / total if total else None,
            )
        )  # fmt: skip
    is_table = answer is None and table is not None
    return ProviderSupport(
        provider.name, provider.title, Basis.TABLE if answer is None else answer.basis,
        answer.version if answer else table.version if table else "",
        table.date if is_table and table else "", table.url if is_table and table else "",
        counts[Support.TAKEN], counts[Support.PARTLY], counts[Support.NOT],
        partitions(main, running), sum(weights.get(node, 0.0) for node in taken) / total
        if total and verdicts else None, tuple(nodes), why,
    )  # fmt: skip


def _ask(
    request: Request, provider: _Provider, plain: _Plain, reader: TableReader
) -> _Answer | None:
    """Ask an installed provider, or the parser of its library; None where neither is there.

    Raises:
        ActivityError: There is no answer; says why.
    """
    if provider.is_installed:
        return _asked(request, provider, plain.path, reader)
    library = _LIBRARIES.get(provider.name)
    return None if library is None else _parsed(library, plain, reader)


def _asked(request: Request, provider: _Provider, view: Path, reader: TableReader) -> _Answer:
    from dld_tui.backends.onnxruntime.assignment import assignment
    from dld_tui.backends.onnxruntime.runtime import version
    from dld_tui.backends.onnxruntime.session_options import options_by_provider

    options = options_by_provider(request.provider_option, [provider.name])
    libraries = [Path(name) for name in request.ep_library]
    owners = assignment(view, provider.name, options.get(provider.name, {}), libraries)
    names = {node.name for node in reader.nodes}
    others = Counter(owner for name, (owner, _) in owners.items() if name not in names)
    verdicts = {}
    for node in reader.nodes:
        owner, reason = owners.get(node.name, ("", ""))
        if owner == provider.name:
            verdicts[node] = Verdict(Support.TAKEN)
        elif owner:
            verdicts[node] = Verdict(
                Support.NOT, Cause.RUNTIME, reason or f"assigned to {visible(owner)}"
            )
        elif others:  # ONNX Runtime put the definition of an operator in its place
            left = [name for name in others if name != provider.name]
            support = (
                Support.TAKEN if not left
                else Support.PARTLY if provider.name in others else Support.NOT
            )  # fmt: skip
            reason = f"parts of its definition are assigned to {visible(', '.join(left))}"
            verdicts[node] = Verdict(support, Cause.RUNTIME if left else Cause.NONE, reason)
    return _Answer(Basis.ASKED, f"ONNX Runtime {version()}", verdicts)


def _parsed(library: str, plain: _Plain, reader: TableReader) -> _Answer | None:
    import importlib.util

    if importlib.util.find_spec(library) is None:
        return None
    from dld_tui.backends.tensorrt.parser_support import parser_support

    title, taken, reasons = parser_support(plain.model, plain.path, library)
    main = plain.document.main.nodes
    chosen = {main[number] for number in taken}
    verdicts = {}
    for node in reader.nodes:
        outer = node
        while outer.scope.owner is not None:
            outer = outer.scope.owner
        reason = reasons.get(main.index(outer), "") if outer not in chosen else ""
        verdicts[node] = (
            Verdict(Support.TAKEN) if outer in chosen
            else Verdict(Support.NOT, Cause.RUNTIME, plain.named(reason) or "the parser refuses it")
        )  # fmt: skip
    return _Answer(Basis.PARSER, title, verdicts)
