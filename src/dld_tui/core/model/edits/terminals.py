"""Element types and layouts of graph inputs and outputs, with the nodes that the graph needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import EditError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.edit_registry import edit
from dld_tui.core.model.document.node import Node, permutation
from dld_tui.core.model.document.operator_matching import schema_in, schema_of
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.transactions import SetLinks, Transaction
from dld_tui.core.model.edits.inputs_outputs import set_value_type
from dld_tui.core.model.edits.links import reconnect_users, with_item
from dld_tui.core.model.edits.metadata import permute_profiles
from dld_tui.core.model.edits.nodes import add_node, free_node_name, remove_node
from dld_tui.core.model.edits.renaming import free_name, rename_before_output
from dld_tui.core.model.edits.repairs import merge_transposes
from dld_tui.core.model.tensors.value_types import (
    ValueType,
    dtype_name,
    dtype_number,
    type_of_value,
)
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

SIDES = ("inputs", "outputs", "both")
IMAGES = "images"
"""The key of all tensors with four dimensions."""
_INDICES = {"tensor(int32)", "tensor(int64)"}
_IMAGE_RANK = 4
LAYOUTS = {
    "nhwc": lambda rank: [0, *range(2, rank), 1],
    "nchw": lambda rank: [0, rank - 1, *range(1, rank - 1)],
    "hwc": lambda rank: [*range(1, rank), 0],
    "chw": lambda rank: [rank - 1, *range(rank - 1)],
}
"""Makes the permutation of a rank. Channels come last, or first, with a batch and without."""


@dataclass(frozen=True)
class ChangedTerminal:
    """An input or output with another type or layout."""

    name: str
    """Untrusted text."""
    before: ValueType
    after: ValueType
    axes: tuple[int, ...]
    """Which axis of the former tensor each axis is; empty where the layout stays."""


@edit
def convert_terminals(
    document: Document,
    transaction: Transaction,
    *,
    types: Mapping[str, str] | None = None,
    layouts: Mapping[str, JSON] | None = None,
    side: str = "inputs",
) -> str:
    """Give inputs and outputs of the main graph another element type or layout.

    The graph gets the Cast and Transpose nodes that it needs; those that it does not need, beside
    others or before indices, are left out.

    Args:
        types: Element types by the name of an input or output, or by an element type: that of all
            on the side.
        layouts: Layouts in the same way: ``nhwc``, ``nchw``, ``hwc``, ``chw``, or which axis of
            the tensor each axis becomes. The key ``images`` is all with four dimensions.
        side: ``inputs``, ``outputs`` or ``both``; for keys that are no names.

    Raises:
        EditError: There is no such input or output, or it cannot have the type or layout.
    """
    changed = convert_into(document, transaction, types or {}, layouts or {}, side)
    names = [terminal.name for terminal in changed]
    shown = quoted(names[0]) if len(names) == 1 else fmt.plural(len(names), "tensor")
    return f"change type or layout of {shown}"


def convert_into(
    document: Document,
    transaction: Transaction,
    types: Mapping[str, str],
    layouts: Mapping[str, JSON],
    side: str,
) -> list[ChangedTerminal]:
    """Do what :func:`convert_terminals` does; return what changed.

    Raises:
        EditError: See there.
    """
    if side not in SIDES:
        raise EditError(f"side is {side!r}; choose one of {', '.join(SIDES)}")
    document.need_types()
    home = document.main
    wanted: dict[str, tuple[str, JSON]] = {}
    for key, dtype in types.items():
        number = dtype_number(dtype) if isinstance(dtype, str) else None
        if not number:
            raise EditError(f"there is no element type {dtype!r}")
        for name in _named(home, key, side):
            wanted[name] = (dtype_name(number), None)
    for key, layout in layouts.items():
        for name in _named(home, key, side):
            wanted[name] = (wanted.get(name, ("", None))[0], layout)
    changed = []
    for name, (dtype, layout) in wanted.items():
        terminal = _changed(home, name, dtype, layout)
        if terminal.after == terminal.before and not terminal.axes:
            continue
        _require_convertible(home, terminal)
        if name in home.inputs:
            _Input(document, transaction, terminal).convert()
        else:
            _Output(document, transaction, terminal).convert()
        changed.append(terminal)
    if not changed:
        raise EditError("nothing has another type or layout then")
    return changed


def _named(home: Scope, key: str, side: str) -> list[str]:
    if key in home.inputs or key in home.outputs:
        return [key]
    number = dtype_number(key)
    if key != IMAGES and not number:
        known = ", ".join(quoted(name) for name in (*home.inputs, *home.outputs)[:8])
        raise EditError(f"there is no input or output {quoted(key)}", hint=f"There are {known}")
    names = (*(home.inputs if side != "outputs" else ()),
             *(home.outputs if side != "inputs" else ()))  # fmt: skip
    found = []
    for name in names:
        if name in home.inputs and name in home.outputs:
            continue  # nothing is between them
        known_type = home.value_type(name)
        if known_type is None or known_type.container or home.is_weight(name):
            continue
        is_image = known_type.dims is not None and len(known_type.dims) == _IMAGE_RANK
        if is_image if key == IMAGES else known_type.dtype == dtype_name(number or 0):
            found.append(name)
    if not found:
        sides = "input or output" if side == "both" else side[:-1]
        what = "four dimensions" if key == IMAGES else f"the type {key}"
        raise EditError(f"no {sides} has {what}")
    return found


def _changed(home: Scope, name: str, dtype: str, layout: JSON) -> ChangedTerminal:
    known = home.value_type(name)
    if known is None or known.dtype is None or known.container:
        why = "its type is unknown" if known is None or known.dtype is None else known.text
        raise EditError(f"{quoted(name)} is no tensor of a known type: {why}")
    axes: tuple[int, ...] = ()
    dims = known.dims
    if layout is not None:
        if dims is None:
            raise EditError(f"the number of dimensions of {quoted(name)} is unknown")
        axes = _axes(name, layout, len(dims))
        dims = tuple(dims[axis] for axis in axes)
    return ChangedTerminal(name, known, ValueType(dtype or known.dtype, dims), axes)


def _axes(name: str, layout: JSON, rank: int) -> tuple[int, ...]:
    if isinstance(layout, str):
        make = LAYOUTS.get(layout.lower())
        if make is None:
            raise EditError(f"layout {layout!r} is none of {', '.join(LAYOUTS)}")
        if rank < len(layout) - 1:
            raise EditError(f"{quoted(name)} has {rank} dimensions, too few for {layout}")
        return tuple(make(rank))
    axes = layout if isinstance(layout, list) else []
    if sorted(map(str, axes)) != sorted(map(str, range(rank))):
        raise EditError(f"the axes of {quoted(name)} must be 0 to {rank - 1}, each once")
    return tuple(int(str(axis)) for axis in axes)


def _require_convertible(home: Scope, terminal: ChangedTerminal) -> None:
    name = quoted(terminal.name)
    if terminal.name in home.inputs and terminal.name in home.outputs:
        raise EditError(f"{name} is an input and an output: nothing is between them")
    if home.is_weight(terminal.name):
        raise EditError(f"{name} has a default, an initializer, which would not fit it any more")
    if terminal.name not in home.inputs and home.producer(terminal.name) is None:
        raise EditError(f"no node makes the output {name}")
    if terminal.before.dtype == terminal.after.dtype:
        return
    schema = schema_in("Cast", "", home)
    if schema is None or schema.since_version < _FIRST_CAST:
        raise EditError("Cast is too old in this opset", hint="Convert the model to opset 7 first")
    for formal, known in ((schema.input(0), terminal.before), (schema.output(0), terminal.after)):
        if formal is None or type_of_value(ValueType(known.dtype, ())) not in formal.types:
            raise EditError(f"{name}: Cast of this opset has no {known.dtype}")


_FIRST_CAST = 6
"""Since when the type that Cast gives is a number."""


class _Change:
    def __init__(
        self, document: Document, transaction: Transaction, terminal: ChangedTerminal
    ) -> None:
        self.document, self.transaction, self.terminal = document, transaction, terminal
        self.home = document.main
        self.name = terminal.name

    def add(self, op_type: str, source: str, output: str, **attributes: JSON) -> Node:
        """Add a node of one input and one output."""
        wanted = f"{self.name}_{op_type.lower()}"
        add_node.run(
            self.document, self.transaction, scope=[], op_type=op_type, inputs=[source],
            outputs=[output], name=free_node_name(self.home, wanted),
            attributes={
                key: {"kind": "ints" if isinstance(value, list) else "int", "value": value}
                for key, value in attributes.items()
            },
        )  # fmt: skip
        node = self.home.producer(output)
        assert node is not None
        return node

    @property
    def other_type(self) -> bool:
        return self.terminal.before.dtype != self.terminal.after.dtype

    def merged(self, node: Node) -> bool:
        """Merge a Transpose with the one before it; return whether nothing is left of both."""
        merge_transposes.run(self.document, self.transaction, scope=[], node=node.ref)
        axes = permutation(node)
        return axes is not None and axes == sorted(axes) and self.dropped(node)

    def dropped(self, node: Node) -> bool:
        """Take out a node that changes nothing, if its input can take its place."""
        try:
            reconnect_users(self.transaction, self.home, node)
        except EditError:
            return False
        remove_node(self.transaction, self.home, node)
        return True

    def drop_unused(self, node: Node) -> bool:
        if self.home.is_used(node.outputs[0]):
            return False
        remove_node(self.transaction, self.home, node)
        return True

    def declare(self) -> None:
        after = self.terminal.after
        dims = None if after.dims is None else list(after.dims)
        set_value_type.run(
            self.document, self.transaction, scope=[], value=self.name, dtype=after.dtype, dims=dims
        )


class _Input(_Change):
    def convert(self) -> None:
        """Change an input, of which nodes may be the users."""
        value = self.name
        if self.terminal.axes:
            transpose = self._behind(value, "Transpose", perm=_inverse(self.terminal.axes))
            made = transpose.outputs[0]
            for user in self._nodes(made):
                if user.op_type == "Transpose" and permutation(user) is not None:
                    self.merged(user)
            is_whole = all(use.node is transpose for use in self.home.users(value))
            if not self.drop_unused(transpose) and is_whole:
                value = made
        if self.other_type:
            self._cast(value)
        self.declare()
        if self.terminal.axes:
            permute_profiles(self.document, self.transaction, self.name, self.terminal.axes)

    def _behind(self, value: str, op_type: str, **attributes: JSON) -> Node:
        uses = self.home.users(value)
        node = self.add(
            op_type, value, free_name(self.home, f"{self.name}_{op_type.lower()}"), **attributes
        )
        for use in uses:
            links = with_item(use.node.inputs, use.index, node.outputs[0])
            self.transaction.do(SetLinks(use.node.scope, use.node, "input", links))
        return node

    def _cast(self, value: str) -> None:
        before, after = self.terminal.before.dtype or "", self.terminal.after.dtype or ""
        cast = self._behind(value, "Cast", to=dtype_number(before))
        lossless = is_lossless(after, before)
        for user in self._nodes(cast.outputs[0]):
            self._bypass_cast(user, cast, value, after, lossless=lossless)
        self.drop_unused(cast)

    def _bypass_cast(
        self, user: Node, cast: Node, value: str, dtype: str, *, lossless: bool
    ) -> None:
        """Let a node read the input itself where it computes the same of it.

        An index is the same in each type that the operator takes; a Cast needs all values.
        """
        cast_value = cast.outputs[0]
        is_cast = user.op_type == "Cast" and not user.domain
        if not (lossless if is_cast else _takes(user, cast_value, dtype)):
            return
        links = tuple(value if name == cast_value else name for name in user.inputs)
        self.transaction.do(SetLinks(self.home, user, "input", links))
        if is_cast and user.integer("to", 0) == dtype_number(dtype):
            self.dropped(user)

    def _nodes(self, value: str) -> list[Node]:
        users = dict.fromkeys(use.node for use in self.home.users(value))
        return [node for node in users if node.scope is self.home]


class _Output(_Change):
    def convert(self) -> None:
        """Change an output, which other nodes may use as it is."""
        cast_at: Node | None = None
        if self.terminal.axes:
            source = rename_before_output(self.transaction, self.home, self.name)
            before = self.home.producer(source)
            transpose = self.add("Transpose", source, self.name, perm=[*self.terminal.axes])
            is_gone = False
            if before is not None and before.op_type == "Transpose" and permutation(before):
                is_gone = self.merged(transpose)
                self.drop_unused(before)
            cast_at = None if is_gone else transpose
        if self.other_type:
            self._cast(cast_at)
        self.declare()

    def _cast(self, user: Node | None) -> None:
        """Convert the output, or what the Transpose before it takes."""
        after = self.terminal.after.dtype or ""
        if user is None:
            source = rename_before_output(self.transaction, self.home, self.name)
            cast = self.add("Cast", source, self.name, to=dtype_number(after))
        else:
            source = user.inputs[0]
            cast = self.add(
                "Cast", source, free_name(self.home, f"{self.name}_cast"), to=dtype_number(after)
            )
            self.transaction.do(SetLinks(self.home, user, "input", cast.outputs[:1]))
        before = self.home.producer(source)
        if before is None or before.op_type != "Cast" or before.domain or not before.inputs:
            return
        dtype = _dtype(self.home, before.inputs[0])
        if dtype is None or not is_lossless(dtype, self.terminal.before.dtype or ""):
            return
        self.transaction.do(SetLinks(self.home, cast, "input", before.inputs[:1]))
        self.drop_unused(before)
        if dtype == after:
            self.dropped(cast)


def _dtype(home: Scope, value: str) -> str | None:
    """Return the element type of a value, also before types are inferred where a Cast says it."""
    known, producer = home.value_type(value), home.producer(value)
    if known is not None or producer is None or producer.domain or not producer.inputs:
        return known.dtype if known is not None else None
    if producer.op_type == "Cast":
        return dtype_name(producer.integer("to", 0))
    return (
        _dtype(home, producer.inputs[0]) if producer.op_type in ("Transpose", "Identity") else None
    )


def _inverse(axes: Sequence[int]) -> list[JSON]:
    return [axes.index(axis) for axis in range(len(axes))]


def _takes(node: Node, value: str, dtype: str) -> bool:
    """Return whether a node takes indices of another integer type for a value, and nothing else."""
    schema = schema_of(node)
    if schema is None:
        return False
    wanted = type_of_value(ValueType(dtype, ()))
    for at, name in enumerate(node.inputs):
        formal = schema.input(at)
        if name != value:
            continue
        if formal is None or wanted not in formal.types or not set(formal.types) <= _INDICES:
            return False
        others = [*schema.inputs, *schema.outputs]
        if sum(other.type_name == formal.type_name for other in others) > 1:
            return False
    return True


def is_lossless(dtype: str, other: str) -> bool:
    """Return whether each value of an element type is one of another, too."""
    import numpy as np  # lazy: an edit of types only

    floats = {"bfloat16": ("float32", "float64")}
    if dtype in floats or other == "bfloat16":
        return other in floats.get(dtype, ()) or dtype in ("bool", "int8", "uint8")
    try:
        return bool(np.can_cast(np.dtype(dtype), np.dtype(other), "safe"))
    except TypeError:  # NumPy has only plain ones
        return dtype == other


def changed_values(terminals: Sequence[ChangedTerminal]) -> Iterator[str]:
    """Yield a line on each. Untrusted text."""
    for one in terminals:
        yield f"{one.name}: {one.before.text} → {one.after.text}"
