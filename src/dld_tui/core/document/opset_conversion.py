"""Another version of the ai.onnx operators for a whole model, by onnx's version converter.

The converter rebuilds a model from what it knows of it, and loses the rest: local functions, the
metadata of nodes, sparse initializers, references to parameters of functions. So only its decisions
are taken over. Every node gets a label, the model is converted, and what the labels show to be
changed, new or gone is put into the original; all else stays as it is. Functions are converted each
for itself. Payloads may be cut out of the model.

The converter is native code that ends the process when it fails badly: call this in a child.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx
from onnx import version_converter

from dld_tui.core.document.labels import Labels
from dld_tui.core.document.opset_failures import ConversionError, refusal
from dld_tui.core.document.opset_lowering import lower
from dld_tui.core.document.opset_nodes import is_same, rename, take_over
from dld_tui.core.document.places import Body, bodies
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.types import JSON

__all__ = ["Conversion", "ConversionError", "convert_opset", "known_versions"]

_DEFAULT = ("", "ai.onnx")


@dataclass
class Conversion:
    """What a conversion did. Counts are of nodes, by operator."""

    before: int
    after: int
    changed: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    initializers: int = 0
    """Initializers that were added."""
    notes: list[str] = field(default_factory=list)
    """What could not be converted, one sentence each. Foreign text."""

    def to_json(self) -> dict[str, JSON]:
        """Return the report as JSON data."""
        return {
            "from": self.before,
            "to": self.after,
            "changed": dict(self.changed.most_common()),
            "added": dict(self.added.most_common()),
            "removed": dict(self.removed.most_common()),
            "initializers": self.initializers,
            "notes": list(self.notes),
        }


def known_versions() -> range:
    """Return the versions of the ai.onnx operators that the installed onnx package knows."""
    return range(1, int(onnx.defs.onnx_opset_version()) + 1)


def convert_opset(model: onnx.ModelProto, version: int) -> Conversion:
    """Convert a model in place, which is as it was when this fails.

    Args:
        model: The model; payloads may be cut out of it.
        version: The version of the ai.onnx operators to convert to.

    Raises:
        ConversionError: It cannot be converted; says which operator and node stand in the way.
    """
    known = known_versions()
    if version not in known:
        raise ConversionError(f"opset {version} is not known: choose 1 to {known[-1]}")
    before = _version_of(model.opset_import)
    if before is None:
        raise ConversionError("the model imports no ai.onnx operators: there is nothing to convert")
    report = Conversion(before, version)
    if before == version:
        return report
    if version < before:
        lowered = lower(model, version)
        if lowered.problem is None:
            model.CopyFrom(lowered.model)
            report.changed, report.added = lowered.changed, lowered.added
            report.initializers = 0
            return report
    names = _Names(model, version)
    merge = _Merge(report, names)
    try:
        merge.model(model, _converted(model, version))
    except ConversionError:
        if version < before and lowered.problem is not None:
            raise ConversionError(lowered.problem) from None
        raise
    for function in model.functions:
        _convert_function(function, version, report, names)
    _set_version(model.opset_import, version)
    needed = onnx.helper.find_min_ir_version_for(list(model.opset_import), ignore_unknown=True)
    model.ir_version = max(model.ir_version, needed)
    return report


# --- the converter ------------------------------------------------------------------------------


def _converted(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
    """Return what the converter makes of a model, with labels as the names of its old nodes."""
    labelled = onnx.ModelProto()
    labelled.CopyFrom(model)
    del labelled.functions[:]
    for entry in labelled.opset_import:
        if entry.domain in _DEFAULT:
            entry.domain = ""
    labels = Labels(labelled)
    for _, body in bodies(labelled):
        for node in body.node:
            if node.domain in _DEFAULT:
                node.ClearField("domain")
    try:
        return version_converter.convert_version(labelled, version)
    # The seam: C++ errors of several classes without a common base.
    except Exception as error:  # noqa: BLE001
        raise refusal(str(error), labels, model, version) from None


def _version_of(imports: Iterable[onnx.OperatorSetIdProto]) -> int | None:
    return next((int(entry.version) for entry in imports if entry.domain in _DEFAULT), None)


def _set_version(imports: Iterable[onnx.OperatorSetIdProto], version: int) -> None:
    for entry in imports:
        if entry.domain in _DEFAULT:
            entry.version = version


def _convert_function(
    function: onnx.FunctionProto, version: int, report: Conversion, names: _Names
) -> None:
    """Convert the body of a function as if it were a graph; leave it as it is when that fails."""
    before = _version_of(function.opset_import)
    if before is None or before == version:
        return
    model = onnx.ModelProto(ir_version=onnx.IR_VERSION, opset_import=function.opset_import)
    model.graph.name = "function"
    for name in function.input:
        model.graph.input.add(name=name)
    for name in function.output:
        model.graph.output.add(name=name)
    model.graph.node.extend(function.node)
    whole = onnx.FunctionProto()
    whole.CopyFrom(function)
    mine = Conversion(before, version)
    try:
        _Merge(mine, names).function(function, _converted(model, version).graph)
    except ConversionError as error:
        function.CopyFrom(whole)
        title = f"{text_of(function.domain)}:{text_of(function.name)}"
        report.notes.append(f"function {title} stays at opset {before}: {error.message}")
        return
    _set_version(function.opset_import, version)
    for name in ("changed", "added", "removed"):
        getattr(report, name).update(getattr(mine, name))


# --- taking its decisions over ------------------------------------------------------------------


class _Names:
    """Gives what the converter adds names that the model does not have."""

    def __init__(self, model: onnx.ModelProto, version: int) -> None:
        self._prefix = f"opset{version}_"
        self._taken: set[str] = set()
        for _, body in bodies(model):
            for node in body.node:
                self._taken.update((text_of(node.name), *map(text_of, node.output)))
            if isinstance(body, onnx.FunctionProto):
                self._taken.update(map(text_of, body.input))
            else:
                self._taken.update(text_of(record.name) for record in body.input)
                self._taken.update(text_of(record.name) for record in body.initializer)
        self._next = 0

    def new(self, like: str) -> str:
        """Return a new name that says what it is for."""
        while True:
            name = f"{self._prefix}{like}_{self._next}"
            self._next += 1
            if name not in self._taken:
                return name


class _Merge:
    """Puts the decisions of the converter into the original."""

    def __init__(self, report: Conversion, names: _Names) -> None:
        self._report = report
        self._names = names
        self._old: dict[str, onnx.NodeProto] = {}

    def model(self, model: onnx.ModelProto, converted: onnx.ModelProto) -> None:
        """Merge the main graph and those below it."""
        self._know(model)
        nodes = self._nodes(converted.graph, self._old_names(model.graph))
        self._graph(model.graph, converted.graph, nodes)
        self._count_removed()

    def function(self, function: onnx.FunctionProto, converted: onnx.GraphProto) -> None:
        """Merge the body of a function, which has no initializers."""
        model = onnx.ModelProto()
        model.graph.node.extend(function.node)
        self._know(model)
        known = self._old_names(function)
        constants = []
        for tensor in converted.initializer:
            constants.append(onnx.helper.make_node("Constant", [], [tensor.name], value=tensor))
        nodes = self._nodes(converted, known, constants)
        self._count_removed()
        del function.node[:]
        function.node.extend(nodes)

    def _know(self, model: onnx.ModelProto) -> None:
        """Keep the nodes by their labels: the same walk gives the same labels."""
        labelled = onnx.ModelProto()
        labelled.CopyFrom(model)
        del labelled.functions[:]
        Labels(labelled)
        originals = (node for _, body in bodies(model) for node in body.node)
        labels = (node.name for _, body in bodies(labelled) for node in body.node)
        self._old = dict(zip(labels, originals, strict=False))
        self._left = dict(self._old)

    def _old_names(self, body: Body) -> set[str]:
        names = {text_of(name) for node in body.node for name in node.output}
        if isinstance(body, onnx.GraphProto):
            names.update(text_of(tensor.name) for tensor in body.initializer)
            names.update(text_of(record.name) for record in body.input)
        return names

    def _graph(
        self, graph: onnx.GraphProto, converted: onnx.GraphProto, nodes: list[onnx.NodeProto]
    ) -> None:
        """Give a graph its new nodes and the initializers that they need."""
        known = {tensor.name for tensor in graph.initializer}
        known |= {tensor.values.name for tensor in graph.sparse_initializer}
        for tensor in converted.initializer:
            if tensor.name not in known:
                graph.initializer.append(tensor)
                self._report.initializers += 1
        copies = [_copy(node) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)
        made = {name for node in graph.node for name in node.output}
        gone = [info for info in graph.value_info if info.name not in made | _inputs(graph)]
        for info in gone:
            graph.value_info.remove(info)

    def _nodes(
        self,
        converted: onnx.GraphProto,
        known: set[str],
        first: Iterable[onnx.NodeProto] = (),
    ) -> list[onnx.NodeProto]:
        """Return the nodes that a graph is to have."""
        found = [*first, *converted.node]
        renamed = {
            name: self._names.new(node.op_type)
            for node in found
            for name in node.output
            if name and name not in known and node.name not in self._old
        }
        renamed |= {
            name: self._names.new(node.op_type)
            for node in converted.node
            for name in node.output
            if name and name not in known and name not in renamed
        }
        nodes = [self._node(node) for node in found]
        if renamed:
            for node in nodes:
                rename(node, renamed)
        return nodes

    def _node(self, made: onnx.NodeProto) -> onnx.NodeProto:
        old = self._old.get(made.name)
        if old is None:
            self._report.added[text_of(made.op_type)] += 1
            made.name = self._names.new(text_of(made.op_type))
            return made
        self._left.pop(made.name, None)
        node = old
        if not is_same(old, made):
            self._report.changed[text_of(made.op_type)] += 1
            node = made
            take_over(old, made)
        for old_attribute in old.attribute:
            mine = next((a for a in node.attribute if a.name == old_attribute.name), None)
            theirs = next((a for a in made.attribute if a.name == old_attribute.name), None)
            if mine is not None and theirs is not None:
                self._bodies(old_attribute, mine, theirs)
        return node

    def _bodies(
        self,
        old: onnx.AttributeProto,
        mine: onnx.AttributeProto,
        theirs: onnx.AttributeProto,
    ) -> None:
        """Merge the graphs of an attribute: the header and records of the old ones stay."""
        pairs = [(old.g, theirs.g)] if old.HasField("g") else []
        pairs += list(zip(old.graphs, theirs.graphs, strict=True))
        merged = []
        for graph, converted in pairs:
            nodes = self._nodes(converted, self._old_names(graph))
            whole = onnx.GraphProto()
            whole.CopyFrom(graph)
            self._graph(whole, converted, nodes)
            merged.append(whole)
        if old.HasField("g"):
            mine.g.CopyFrom(merged[0])
        elif merged:
            del mine.graphs[:]
            mine.graphs.extend(merged)

    def _count_removed(self) -> None:
        self._report.removed.update(text_of(node.op_type) for node in self._left.values())


def _inputs(graph: onnx.GraphProto) -> set[str]:
    return {record.name for record in graph.input} | {tensor.name for tensor in graph.initializer}


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    copied = onnx.NodeProto()
    copied.CopyFrom(node)
    return copied
