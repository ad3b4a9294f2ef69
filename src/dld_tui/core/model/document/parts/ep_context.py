"""EPContext nodes, in which ONNX Runtime stores what an execution provider compiled.

Such a node stands for a part of the model that was compiled before. It holds the result, for
TensorRT and TensorRT-RTX an engine, or names the file beside the model that does.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.files.blobs import Blob
from dld_tui.core.files.external import resolve_external
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.files.recognise import EngineHeader, capability_text, engine_header
from dld_tui.core.files.source import Source
from dld_tui.core.files.writer import write_pieces
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.traversal import nodes_called
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

OPERATOR = "EPContext"
_HEAD = 64


@dataclass(frozen=True)
class EpContext:
    """One such node. Texts are foreign."""

    node: Node
    provider: str
    """What compiled it, as the node says."""
    is_inside: bool
    """Whether the result is in the model rather than in a separate file."""
    file: str
    """That file as the node names it; empty where the result is in the model."""
    bytes: int | None
    """None where there is none: the node uses what another one has, or its file is not there."""
    header: EngineHeader | None
    """The header of a TensorRT engine; None for other results, or where it is unknown."""
    attributes: dict[str, str]
    """What else the node says: the part, the SDK, the hardware, the original model."""

    @property
    def line(self) -> str:
        """The node, and what it holds, for people; free of untrusted text."""
        return f"{visible(self.node.ref)}: {self.holds}"

    @property
    def holds(self) -> str:
        """For people; free of untrusted text."""
        size = "with another node" if self.bytes is None else fmt.size(self.bytes)
        if self.is_inside and self.bytes is not None:
            size += " in the model"
        if self.file:
            size = f"{visible(self.file)}, {'not there' if self.bytes is None else size}"
        label = self.header.text if self.header is not None else visible(self.provider)
        details = [visible(self._detail(*attribute)) for attribute in self.attributes.items()]
        return ", ".join([label or "unknown provider", size, *details])

    def _detail(self, key: str, value: str) -> str:
        if key == "hardware" and self.provider in _TENSORRT:
            return f"compute capability {capability_text(value)}"
        return f"{key} {value}"

    def to_json(self) -> dict[str, JSON]:
        """Return the fields of ``dld inspect --json``. Fields may be added, never renamed."""
        header = self.header
        return {
            "node": self.node.ref, "provider": self.provider, "file": self.file or None,
            "bytes": self.bytes, "engine": None if header is None else header.text,
            **self.attributes,
        }  # fmt: skip


_TENSORRT = ("TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider")
"""Providers that write the compute capability without its point."""
_ATTRIBUTES = {
    "partition_name": "part", "ep_sdk_version": "sdk", "hardware_architecture": "hardware",
    "onnx_model_filename": "of",
}  # fmt: skip


def contexts_of(document: Document) -> list[EpContext]:
    """Return the compiled parts of a model, in the order of its nodes."""
    return [
        context_of(document, node)
        for scope in document.scopes()
        for node in scope.nodes
        if node.op_type == OPERATOR
    ]


def context_of(document: Document, node: Node) -> EpContext:
    """Return the compiled part that a node stands for."""
    is_inside = bool(node.integer("embed_mode", 1))
    file = "" if is_inside else _text(node, "ep_cache_context")
    attributes = {key: _text(node, name) for name, key in _ATTRIBUTES.items()}
    known = {key: value for key, value in attributes.items() if value}
    content = _content(document, node)
    head, size = b"", None
    if isinstance(content, Blob):
        head, size = content.read(0, min(_HEAD, content.length)), content.length
    elif content is not None:
        head, size = content[:_HEAD], len(content)
    return EpContext(node, _text(node, "source"), is_inside, file, size, engine_header(head), known)


def _content(document: Document, node: Node) -> bytes | Blob | None:
    """Return the compiled result; long contents stay in their file. None where there is none."""
    attribute = node.attribute("ep_cache_context")
    if attribute is None or not attribute.proto.s:
        return None
    if node.integer("embed_mode", 1):
        return attribute.blob or attribute.proto.s
    if document.path is None:
        return None
    try:
        path = resolve_external(document.path, _text(node, "ep_cache_context"))
        source = Source.open(path, follow_link=False)
    except InputError:
        return None
    return Blob(source, 0, source.size, "s")


def extract_context(document: Document, name: str, target: Path) -> EpContext:
    """Write the compiled result of a provider, such as a TensorRT engine, to a file.

    Args:
        document: The model.
        name: Of the node; empty where the model has one with such a result only.
        target: The file.

    Raises:
        UsageError: There is no such node, or there are several.
        InputError: The file that the node names is not there.
        SaveError: It cannot be written.
    """
    candidates = [
        context for context in contexts_of(document) if context.is_inside is False or context.bytes
    ]
    if name:
        named = nodes_called(list(document.scopes()), name)
        candidates = [context for context in candidates if context.node in named]
    if len(candidates) != 1:
        known = ", ".join(visible(context.node.ref) for context in candidates)
        problem = f"several nodes hold compiled parts: {known}" if candidates else (
            "no EPContext node of the model holds a compiled part"
            if not name else f"no EPContext node {name!r} holds a compiled part"
        )  # fmt: skip
        raise UsageError(problem, hint="Name one with --context NODE" if candidates else None)
    write_context(document, candidates[0], target)
    return candidates[0]


def write_context(
    document: Document, context: EpContext, target: Path, *, overwrite: bool = False
) -> None:
    """Write the compiled result that a node holds, or refers to, to a file.

    Args:
        document: The document.
        context: The node, and what is known of it.
        target: The file.
        overwrite: See :class:`~dld_tui.core.files.writer.StagedFile`.

    Raises:
        InputError: It holds nothing, or the file that it names is not there.
        SaveError: It cannot be written.
    """
    content = _content(document, context.node)
    if content is None:
        raise InputError(
            f"the file {visible(context.file)!r} that the node names is not beside the model"
            if context.file
            else "the node holds nothing: it uses what another one has",
            where=str(document.path),
        )
    write_pieces(target, [content], overwrite=overwrite)


def _text(node: Node, name: str) -> str:
    attribute = node.attribute(name)
    if attribute is None or attribute.blob is not None:
        return ""
    return text_of(attribute.proto.s)


def engine_beside(path: Path) -> Path:
    """Return the file of the engine that a compiled model holds beside it.

    Raises:
        InputError: It holds none, several, or one inside; the hint says what to do.
    """
    with contextlib.closing(Document.open(path)) as document:
        engines = [one for one in contexts_of(document) if one.file or one.header is not None]
    named = [one for one in engines if one.file]
    if len(engines) == 1 and named and named[0].bytes is not None:
        return resolve_external(path, named[0].file)
    name = "" if len(engines) == 1 else " NODE"
    if not engines:
        raise InputError("this is an ONNX model without a compiled engine", where=str(path))
    if named and len(engines) == 1:
        raise InputError(f"its engine {visible(named[0].file)!r} is not there", where=str(path))
    several = f"{len(engines)} engines: " if name else "its engine inside: "
    raise InputError(
        f"{several}{'; '.join(one.line for one in engines)}",
        where=str(path),
        hint=f"Take one out: dld extract {path.name} --context{name} -o part.engine",
    )
