"""Merges models into one: outputs of a model become inputs of the next.

Works on messages whose payloads may be sentinels of one document. The caller brings operator sets
together (:mod:`dld_tui.core.conversion.edits.merging`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import operator_key, set_text, set_texts, text_of, texts_of
from dld_tui.core.model.document.index import record_name
from dld_tui.core.model.document.local_functions import FunctionKey
from dld_tui.core.model.document.locations import bodies_of, names_used, nested_nodes
from dld_tui.core.model.document.parts.fragment import (
    defined_in,
    inner_names,
    rename_in,
    rename_inside,
)
from dld_tui.core.model.document.scope import unused_name
from dld_tui.core.model.tensors.value_types import PLACEHOLDERS, ValueType, value_type_of
from dld_tui.core.text import quoted

_STORED = ("initializer", "sparse_initializer")
_DECLARED = ("value_info", "output", "input")
Types: TypeAlias = "Mapping[str, ValueType | None]"
"""Types of values by name; None where nothing is known."""
_APPENDED = ("node", *_STORED, "value_info", "quantization_annotation")


def inputs_of(graph: onnx.GraphProto) -> dict[str, onnx.ValueInfoProto]:
    """Return the inputs of a graph without those that an initializer gives."""
    stored = {record_name(kind, record) for kind in _STORED for record in getattr(graph, kind)}
    named = {text_of(info.name): info for info in graph.input}
    return {name: info for name, info in named.items() if name not in stored}


def find_links(
    base: onnx.GraphProto,
    other: onnx.GraphProto,
    given: Mapping[str, str],
    taken: Collection[str] = (),
) -> dict[str, str]:
    """Return which values of a model become inputs of the next, by the names of these inputs.

    Without given ones, outputs go to inputs of their name; where there are none, to the one input
    of their type and shape.

    Args:
        base: The graph so far.
        other: The graph that is added.
        given: The value of `base` by the input of `other`.
        taken: Outputs of `base` that became inputs before.

    Raises:
        EditError: Nothing fits, several do, or a given value or its type does not.
    """
    all_inputs = {text_of(info.name): info for info in other.input}
    outputs = {text_of(info.name): info for info in base.output}
    outputs = {name: info for name, info in outputs.items() if name not in taken}
    if given:
        known = types_in(base)
        for name, value in given.items():
            _require_fit(value, known.get(value), name, value_type_of(all_inputs[name].type))
        return dict(given)
    output_types = {name: value_type_of(info.type) for name, info in outputs.items()}
    return propose_links(
        output_types, {name: value_type_of(info.type) for name, info in inputs_of(other).items()}
    )


def propose_links(outputs: Types, inputs: Types) -> dict[str, str]:
    """Return which outputs become inputs of the next model where nothing is given.

    Args:
        outputs: Types of the outputs that are free, by name.
        inputs: Types of the inputs of the next model.

    Raises:
        EditError: Nothing fits, or several do.
    """
    same = {name: name for name in inputs if name in outputs}
    for name in same:
        _require_fit(name, outputs[name], name, inputs[name])
    return same or _by_shape(outputs, inputs)


def _by_shape(outputs: Types, inputs: Types) -> dict[str, str]:
    fitting = {
        name: [
            value
            for value, output_type in outputs.items()
            if not why_unfit(output_type, input_type)
        ]
        for name, input_type in inputs.items()
    }
    fitting = {name: values for name, values in fitting.items() if values}
    if not fitting:
        if len(outputs) == 1 and len(inputs) == 1:
            (value, output_type), (name, input_type) = *outputs.items(), *inputs.items()
            _require_fit(value, output_type, name, input_type)
        raise EditError(
            f"no output fits an input: {_names(outputs)} to {_names(inputs)}",
            hint="Say which belong together: links, or --map OUT=IN",
        )
    for name, values in fitting.items():
        takers = [other for other, makers in fitting.items() if makers == values]
        if len(values) > 1 or len(takers) > 1:
            raise EditError(
                f"{_names(values)} fit {_names(takers)}" if len(takers) > 1
                else f"{_names(values)} fit input {quoted(name)}",
                hint="Say which belong together: links, or --map OUT=IN",
            )  # fmt: skip
    return {name: values[0] for name, values in fitting.items()}


def why_unfit(output_type: ValueType | None, input_type: ValueType | None) -> str:
    """Return why a value cannot be an input; empty where it can, or nothing is known."""
    if output_type is None or input_type is None:
        return ""
    same_kind = (
        output_type.container == input_type.container and output_type.dtype == input_type.dtype
    )
    if not same_kind and output_type.dtype is not None and input_type.dtype is not None:
        return f"{output_type.text} is not {input_type.text}"
    if output_type.dims is None or input_type.dims is None:
        return ""
    if len(output_type.dims) != len(input_type.dims):
        return f"{output_type.text} is not {input_type.text}"
    for mine, theirs in zip(output_type.dims, input_type.dims, strict=True):
        if isinstance(mine, int) and isinstance(theirs, int) and mine != theirs:
            return f"{output_type.text} is not {input_type.text}"
    return ""


def _require_fit(
    value: str, output_type: ValueType | None, name: str, input_type: ValueType | None
) -> None:
    why = why_unfit(output_type, input_type)
    if why:
        raise EditError(f"{quoted(value)} does not fit input {quoted(name)}: {why}")


def types_in(graph: onnx.GraphProto) -> dict[str, ValueType]:
    """Return the declared types of values."""
    types = {}
    for list_name in _DECLARED:
        for info in getattr(graph, list_name):
            known = value_type_of(info.type)
            if known is not None:
                types[text_of(info.name)] = known
    return types


@dataclass(frozen=True)
class Added:
    """A model that was added: the names that its values have since. Untrusted text."""

    links: dict[str, str]
    """The value by the input that it became."""
    renamed: dict[str, str]
    """Values whose names were taken."""
    inputs: dict[str, str]
    """All inputs, linked ones included."""
    outputs: dict[str, str]
    moved: dict[str, str]
    """Inner values of the model so far that left their names to outputs of the added one."""

    def later(self, names: Mapping[str, str]) -> dict[str, str]:
        """Return names of values of models before as they are since."""
        return {name: self.moved.get(value, value) for name, value in names.items()}


def merge(
    base: onnx.ModelProto,
    other: onnx.ModelProto,
    links: Mapping[str, str],
    *,
    prefix: str = "",
    keep: Collection[str] = (),
    content: Callable[[onnx.FunctionProto], bytes],
) -> Added:
    """Add a model behind another one, which is changed; the added one is used up.

    Names that are taken get the prefix, or a number.

    Args:
        base: The model so far, of the same operator sets.
        other: The model that is added.
        links: See :func:`find_links`.
        prefix: Of the names of `other` that are taken.
        keep: Outputs of `base` that stay outputs although an input takes them.
        content: Returns what must be equal in functions that are the same.
    """
    moved = _make_way(base.graph, other.graph, links, keep)
    links = {name: moved.get(value, value) for name, value in links.items()}
    _require_apart(base, other)
    names = _Names(base.graph, other.graph, prefix)
    outputs = [text_of(info.name) for info in other.graph.output]
    inputs = [text_of(info.name) for info in other.graph.input]
    passing = [info for info in other.graph.output if text_of(info.name) in links]
    wanted = [name for name in outputs if name in links]
    _merge_dimensions(base.graph, other.graph, links, prefix)
    renamed = names.values(links)
    inner = sorted(inner_names(other.graph.node) & (names.outer | set(links.values())))
    rename_inside(other.graph.node, {name: names.free(name) for name in inner})
    rename_in(other.graph, renamed)
    for info, name in zip(passing, wanted, strict=True):
        _copy_out(other.graph, info, name, names)
    _rename_nodes(base.graph, other.graph, prefix)
    _merge_functions(base, other, prefix, content)
    linked = set(links.values())
    _keep_types(base.graph, linked - set(keep))
    declared = {text_of(info.name) for kind in _DECLARED for info in getattr(base.graph, kind)}
    for kind in (*_STORED, "value_info"):
        _only(getattr(other.graph, kind), kind, lambda name: name not in linked)
    _only(other.graph.value_info, "value_info", lambda name: name not in declared)
    for list_name in _APPENDED:
        getattr(base.graph, list_name).extend(getattr(other.graph, list_name))
    base.graph.input.extend(i for i in other.graph.input if text_of(i.name) not in linked)
    base.graph.output.extend(other.graph.output)
    for mine, theirs in (
        (base.metadata_props, other.metadata_props),
        (base.graph.metadata_props, other.graph.metadata_props),
    ):
        known = {text_of(entry.key) for entry in mine}
        mine.extend(entry for entry in theirs if text_of(entry.key) not in known | {_PROFILES})
    return Added(
        dict(links),
        {name: new for name, new in renamed.items() if name not in links},
        {name: renamed.get(name, name) for name in inputs},
        dict(zip(outputs, (text_of(info.name) for info in other.graph.output), strict=True)),
        moved,
    )


_PROFILES = "dld.profiles"
"""Metadata about the inputs of one whole model."""


class _Names:
    """Names of the values of two graphs, and new ones."""

    def __init__(self, base: onnx.GraphProto, other: onnx.GraphProto, prefix: str) -> None:
        self._prefix = prefix
        self.outer = _named_in(base)
        """Names that mean something in the main graph so far."""
        self._own = _named_in(other)
        self._taken = self.outer | inner_names(base.node)
        self._reserved = self._taken | self._own | inner_names(other.node)

    def free(self, name: str) -> str:
        wanted = f"{self._prefix}{name}"
        new = unused_name(wanted, self._reserved.__contains__)
        self._reserved.add(new)
        return new

    def own(self, name: str) -> str:
        """Return a name for a new value: this one, where it means nothing so far."""
        if name in self._taken:
            return self.free(name)
        return name

    def values(self, links: Mapping[str, str]) -> dict[str, str]:
        clashing = sorted(name for name in self._own & self._taken if name not in links)
        return {**{name: self.free(name) for name in clashing}, **links}


def _named_in(graph: onnx.GraphProto) -> set[str]:
    """Return the names of values that a graph defines, uses or returns itself."""
    returned = {text_of(info.name) for info in graph.output}
    return defined_in(graph) | (names_used(graph.node) - inner_names(graph.node)) | returned


def _make_way(
    base: onnx.GraphProto, other: onnx.GraphProto, links: Mapping[str, str], keep: Collection[str]
) -> dict[str, str]:
    """Rename inner values that have the name of an output of the added graph; return the names."""
    linked = set(links.values()) - set(keep)
    fixed = {text_of(info.name) for info in base.input}
    fixed |= {text_of(info.name) for info in base.output} - linked
    wanted = {text_of(info.name) for info in other.output} - set(links)
    taken = _named_in(base) | inner_names(base.node)
    reserved = taken | _named_in(other) | inner_names(other.node)
    moved = {}
    for name in sorted(wanted & taken - fixed):
        moved[name] = unused_name(name, reserved.__contains__)
        reserved.add(moved[name])
    rename_inside(base.node, moved)
    rename_in(base, moved)
    return moved


def _copy_out(graph: onnx.GraphProto, info: onnx.ValueInfoProto, name: str, names: _Names) -> None:
    """Let an output that is a linked input be a copy, so that both keep their names."""
    value = text_of(info.name)
    node = graph.node.add(op_type="Identity")
    set_texts(node, "input", [value])
    set_texts(node, "output", [names.free(f"{name}_out") if name == value else names.own(name)])
    set_text(info, "name", texts_of(node.output)[0])


def _keep_types(graph: onnx.GraphProto, taken: Collection[str]) -> None:
    """Make outputs that an input takes inner values, whose types stay declared."""
    declared = {text_of(info.name) for info in (*graph.value_info, *graph.input)}
    for info in graph.output:
        name = text_of(info.name)
        if name in taken and name not in declared and info.HasField("type"):
            graph.value_info.append(info)
    _only(graph.output, "output", lambda name: name not in taken)


def _only(records: Any, kind: str, kept: Callable[[str], bool]) -> None:
    chosen = [record for record in records if kept(record_name(kind, record))]
    del records[:]
    records.extend(chosen)


def _rename_nodes(base: onnx.GraphProto, other: onnx.GraphProto, prefix: str) -> None:
    taken = {text_of(node.name) for node in base.node} - {""}
    own = {text_of(node.name) for node in other.node}
    for node in other.node:
        name = text_of(node.name)
        if name in taken:
            new = unused_name(f"{prefix}{name}", lambda one: one in taken or one in own)
            set_text(node, "name", new)
            own.add(new)


def _merge_functions(
    base: onnx.ModelProto,
    other: onnx.ModelProto,
    prefix: str,
    content: Callable[[onnx.FunctionProto], bytes],
) -> None:
    present = {operator_key(function): function for function in base.functions}
    keys = {*present, *map(operator_key, other.functions)}
    renamed: dict[FunctionKey, str] = {}
    waiting = list(other.functions)
    while True:  # one that calls a renamed function is another one, too
        differing = [
            function
            for function in waiting
            if (key := operator_key(function)) in present
            and (content(present[key]) != content(function) or _calls(function, renamed))
        ]
        if not differing:
            break
        waiting = [function for function in waiting if function not in differing]
        for key in map(operator_key, differing):
            renamed[key] = _free_function(keys, key, prefix)
    for nodes in (other.graph.node, *(function.node for function in other.functions)):
        for node in nested_nodes(nodes) if renamed else ():
            key = operator_key(node)
            if key in renamed:
                set_text(node, "op_type", renamed[key])
    for function in other.functions:
        key = operator_key(function)
        if key in renamed:
            set_text(function, "name", renamed[key])
        if key in renamed or key not in present:
            base.functions.append(function)


def _require_apart(base: onnx.ModelProto, other: onnx.ModelProto) -> None:
    """Refuse an operator of one model that is a function in the other."""
    for functions, model in ((base.functions, other), (other.functions, base)):
        own = {*map(operator_key, model.functions)}
        foreign = {*map(operator_key, functions)} - own
        bodies = (model.graph.node, *(function.node for function in model.functions))
        for nodes in bodies if foreign else ():
            for node in nested_nodes(nodes):
                if (key := operator_key(node)) in foreign:
                    raise EditError(
                        f"{quoted(f'{key[0]}:{key[1]}')} is an operator of one model and a "
                        "function of the other",
                        hint="Rename the function first",
                    )


def _calls(function: onnx.FunctionProto, keys: Collection[FunctionKey]) -> bool:
    return bool(keys) and any(operator_key(node) in keys for node in nested_nodes(function.node))


def _free_function(keys: set[FunctionKey], key: FunctionKey, prefix: str) -> str:
    """Return a name that no function of the domain has, and note that it is taken."""
    domain, name, overload = key

    def is_taken(wanted: str) -> bool:
        return (domain, wanted, overload) in keys

    new = unused_name(f"{prefix}{name}", is_taken)
    keys.add((domain, new, overload))
    return new


def _merge_dimensions(
    base: onnx.GraphProto, other: onnx.GraphProto, links: Mapping[str, str], prefix: str
) -> None:
    """Name dimensions of linked values alike, and others apart: runtimes take them for equal."""
    taken = {dim.dim_param for dim in _dimensions(base)} - PLACEHOLDERS
    own = {dim.dim_param for dim in _dimensions(other)} - PLACEHOLDERS
    known, inputs = types_in(base), types_in(other)
    names: dict[str, str] = {}
    for name, value in links.items():
        mine, theirs = known.get(value), inputs.get(name)
        if mine is not None and theirs is not None and mine.dims and theirs.dims:
            for first, second in zip(mine.dims, theirs.dims, strict=False):
                if isinstance(first, str) and isinstance(second, str):
                    names.setdefault(second, first)
    for name in sorted(own & taken):
        if name not in names:
            new = unused_name(f"{prefix}{name}", lambda one: one in taken or one in own)
            names[name] = new
            own.add(new)
    for dim in _dimensions(other):
        if dim.dim_param in names:
            dim.dim_param = names[dim.dim_param]


def _dimensions(graph: onnx.GraphProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    graphs = [graph, *(body for node in nested_nodes(graph.node) for body in bodies_of(node))]
    for one in graphs:
        for list_name in _DECLARED:
            for info in getattr(one, list_name):
                yield from _dims_of(info.type)


def _dims_of(proto: onnx.TypeProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield from getattr(proto, kind).shape.dim
    elif kind in ("sequence_type", "optional_type"):
        yield from _dims_of(getattr(proto, kind).elem_type)


def rename_outputs(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Give outputs other names; those that keep theirs have to be there as well.

    Raises:
        EditError: There is no such output, or a name is taken.
    """
    outputs = [text_of(info.name) for info in graph.output]
    taken = _named_in(graph) | inner_names(graph.node)
    for name, new in names.items():
        if name not in outputs:
            raise EditError(f"there is no output {quoted(name)}", hint=_listed(outputs))
        if new in taken and new != name:
            raise EditError(f"there is another tensor called {quoted(new)}")
        taken.add(new)
    rename_in(graph, names)


def _listed(names: Iterable[str]) -> str:
    return f"There are {_names(names)}"


def _names(names: Iterable[str]) -> str:
    return fmt.listed([*names], 6, quoted) or "none"
