"""What the parameters pane says of a scope: the model as a whole, a subgraph, a function."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.document.function_table import function_attributes
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.paths import short
from dld_tui.core.text import visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.parameter_links import metadata_rows, node_link, place_text, wrap_text
from dld_tui.widgets.parameter_rows import ParameterRow, section, wrapped
from dld_tui.widgets.value_types import shown_type

if TYPE_CHECKING:
    from dld_tui.core.document.scope import Scope
    from dld_tui.core.document.summary import ModelSummary
    from dld_tui.core.document.tensor import Tensor

INITIALIZERS: Hashable = ("section", "Initializers")
CAPTURED: Hashable = ("section", "Captured values")
_MANY = 30
"""A list no longer than this is unfolded from the start."""


class ScopeRows:
    """Builds the rows of one scope.

    Args:
        scope: The scope.
        summary: The model's figures, when they are known.
        folds: What the user folded (False) and unfolded (True), by fold key.
        tensor_rows: Returns the rows of an unfolded tensor.
        width: Cells for wrapped text.
    """

    def __init__(
        self,
        scope: Scope,
        summary: ModelSummary | None,
        folds: Mapping[Hashable, bool],
        tensor_rows: Callable[[Hashable, Tensor], list[ParameterRow]],
        width: int,
    ) -> None:
        self.scope = scope
        self._summary = summary
        self._folds = folds
        self._tensor_rows = tensor_rows
        self._width = max(20, width - 4)

    def rows(self) -> list[ParameterRow]:
        """Return all rows from top to bottom."""
        is_main = self.scope.kind == "graph"
        return [
            *self._header(),
            *self._terminals("Inputs", self._plain_inputs()),
            *self._terminals("Outputs", self.scope.outputs),
            *self._defaulted(),
            *self._captured(),
            *(self._function() if self.scope.is_function else ()),
            *(self._model() if is_main else ()),
            *self._initializers(),
            *self._texts(),
        ]

    def _unfolded(self, key: Hashable, default: bool = False) -> bool:
        return self._folds.get(key, default)

    def _header(self) -> Iterator[ParameterRow]:
        scope = self.scope
        name = text_of(scope.proto.name)
        yield ParameterRow(
            ("title",), visible(scope.title), visible(name), label_style="strong", copied=name
        )
        yield ParameterRow(
            ("place",),
            value=self._place(),
            value_style="dim",
            right=fmt.plural(len(scope.nodes), "node"),
            keep="start",
        )
        if scope.owner is not None:
            yield node_link(("owner",), scope.owner, glyphs.current().left)

    def _place(self) -> str:
        path = self.scope.document.path
        if self.scope.kind == "graph" and path is not None:
            return visible(short(path))
        return place_text(self.scope)

    def _plain_inputs(self) -> tuple[str, ...]:
        known = self.scope.named("initializer")
        return tuple(name for name in self.scope.inputs if name not in known)

    def _terminals(self, title: str, names: tuple[str, ...]) -> Iterator[ParameterRow]:
        if not names:
            return
        key = ("section", title)
        unfolded = self._unfolded(key, len(names) <= _MANY)
        yield section(title, len(names), unfolded=unfolded if len(names) > 3 else None)
        for index, name in enumerate(names) if unfolded else ():
            yield self._terminal((title, index), name, is_input=title != "Outputs")

    def _defaulted(self) -> Iterator[ParameterRow]:
        """Yield the inputs that have an initializer: old models list all of their weights."""
        known = self.scope.named("initializer")
        yield from self._terminals(
            "Inputs with a default", tuple(name for name in self.scope.inputs if name in known)
        )

    def _terminal(self, key: Hashable, name: str, *, is_input: bool) -> ParameterRow:
        scope, shown = self.scope, glyphs.current()
        node = next(iter(scope.consumers(name)), None) if is_input else scope.producer(name)
        glyph = shown.right if is_input else shown.left
        return ParameterRow(
            key,
            value=visible(name),
            right=shown_type(scope, name, fmt.UNKNOWN),
            glyph=glyph if node is not None else "",
            value_style="io",
            node=node,
            copied=name,
            name_of="value",
        )

    def _captured(self) -> Iterator[ParameterRow]:
        if self.scope.kind != "subgraph":
            return
        captured = self.scope.captured()
        if not captured:
            return
        unfolded = self._unfolded(CAPTURED, len(captured) <= _MANY)
        yield section("Captured values", len(captured), unfolded=unfolded)
        for name, found in captured.items() if unfolded else ():
            right = shown_type(self.scope, name)
            row = ParameterRow(
                ("captured", name), value=visible(name), right=right, glyph=glyphs.current().up,
                copied=name, name_of="value", indent=0,
            )  # fmt: skip
            if found is None:
                row.value_style, row.extra = "bad", "nothing makes this value"
            else:
                row.node, row.extra = found.node, f"from {visible(found.scope.title)}"
                row.value_style = "link" if found.node is not None else ""
            yield row

    def _function(self) -> Iterator[ParameterRow]:
        declared = function_attributes(self.scope)
        if declared:
            yield section("Attributes", len(declared))
        for item in declared:
            yield ParameterRow(
                ("declared", item.name),
                visible(item.name),
                visible(item.text.removeprefix(item.name).removeprefix(": ")),
                right=fmt.plural(item.uses, "use"),
                copied=item.name,
            )

    def _model(self) -> Iterator[ParameterRow]:
        document, summary = self.scope.document, self._summary
        model = document.model
        yield section("Model")
        opsets = ", ".join(
            f"{visible(domain) or 'ai.onnx'} {version}"
            for domain, version in document.opset_imports.items()
        )
        yield _fact("opset", opsets or f"{fmt.UNKNOWN} none imported")
        yield _fact("IR version", str(model.ir_version or fmt.UNKNOWN))
        producer = f"{text_of(model.producer_name)} {text_of(model.producer_version)}".strip()
        yield _fact("producer", visible(producer) or fmt.UNKNOWN)
        if summary is not None:
            yield _fact("nodes", f"{summary.nodes_total:,} in all scopes")
            size = fmt.size(summary.initializer_bytes)
            yield _fact("parameters", f"{fmt.short_count(summary.parameters)}  {size}")
        if document.functions:
            yield _fact("functions", fmt.count(len(document.functions)))
        for function in document.functions[:_MANY]:
            yield ParameterRow(
                ("function", function.path),
                value=visible(function.title),
                right=fmt.plural(len(function.nodes), "node"),
                glyph=glyphs.current().right,
                value_style="link",
                scope=function,
                indent=1,
            )

    def _initializers(self) -> Iterator[ParameterRow]:
        records = self.scope.records.get("initializer", [])
        if not records:
            return
        unfolded = self._unfolded(INITIALIZERS)
        yield section("Initializers", len(records), unfolded=unfolded)
        if not unfolded:
            return
        for index, tensor in enumerate(self.scope.initializers):
            key = ("initializer", index)
            kind = tensor.dtype + visible(fmt.shape(tensor.shape))
            row = ParameterRow(
                key,
                value=visible(tensor.name),
                right=f"{kind}  {fmt.size(tensor.nbytes)}",
                copied=tensor.name,
                name_of="value",
                tensor=tensor,
                fold_key=key,
                unfolded=self._unfolded(key),
            )
            yield row
            if row.unfolded:
                yield from self._tensor_rows(key, tensor)

    def _texts(self) -> Iterator[ParameterRow]:
        scope = self.scope
        messages = [scope.proto]
        if scope.kind == "graph":
            messages.append(scope.document.model)  # type: ignore[arg-type]
        for message in messages:
            metadata = {text_of(e.key): text_of(e.value) for e in message.metadata_props}
            if metadata:
                yield section("Metadata", len(metadata))
                yield from metadata_rows(metadata)
            text = text_of(message.doc_string)
            if text:
                yield section("Doc string")
                yield from wrapped("doc_string", wrap_text(text, self._width))


def _fact(name: str, value: str) -> ParameterRow:
    return ParameterRow(("fact", name), name, value, keep="start", copied=value)
