"""A model in float16 or bfloat16: nodes compute in it, weights are converted, casts are added.

Made of the casts of :mod:`dld_tui.core.document.casting` for all nodes that can: those of weights
become weights in float16, one at a time, and those at the model's borders new types of these.
Values keep their names where nothing needs them in the old type any more. As in ONNX Runtime's
converter, weights out of range become the largest number of the type, and none becomes zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from dld_tui.core.conversion.agreement import FP16, NarrowType
from dld_tui.core.conversion.copies import copy_of, infer, inline_calls
from dld_tui.core.conversion.fp16_borders import halve_borders, redeclare
from dld_tui.core.conversion.fp16_weights import Stored, WeightLoss, convert_weights, stored_casts
from dld_tui.core.document.casting import Cast, CastPlan, Relink, changes_of, plan_casts
from dld_tui.core.document.document import Document
from dld_tui.core.document.edits.casting import carry_out
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.precision import precision_of
from dld_tui.core.document.scope import Scope
from dld_tui.core.errors import UsageError
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback

_SIZES = ("Shape", "Size")
_FILLS = ("ConstantOfShape", "Expand", "Tile", "OneHot", "EyeLike", "RandomNormal",
          "RandomUniform")  # fmt: skip
"""Operators that make data out of sizes."""


@dataclass(frozen=True)
class Fp16Options:
    """Which type nodes get, and what is to stay as it is."""

    keep_io_types: bool = False
    """Inputs and outputs of the model keep float32."""
    op_block: tuple[str, ...] = ()
    """Operators whose nodes keep their type."""
    node_block: tuple[str, ...] = ()
    """Nodes that keep their type, by name, by ref, or by a pattern with ``*``."""
    places: frozenset[tuple[tuple[str, ...], str]] = frozenset()
    """Nodes that keep their type for their values: paths of scopes, and refs, where calls of local
    functions are replaced already."""
    narrow: NarrowType = FP16
    """The type."""


@dataclass
class Fp16Model:
    """The copy, and what was done to it."""

    document: Document
    """Has no path. Close it before the document that it was made of."""
    nodes: int = 0
    """That compute in float16 now."""
    casts: int = 0
    """That were added, less those that were removed."""
    kept: Counter[str] = field(default_factory=Counter)
    """Why nodes keep their type: how many. Foreign text."""
    weights: int = 0
    losses: list[WeightLoss] = field(default_factory=list)
    """Of the weights with values out of range."""
    inlined: int = 0
    """Calls of local functions that were replaced."""
    notes: list[str] = field(default_factory=list)
    """What type inference says, and what could not be done. Fit for a terminal."""


def to_fp16(
    document: Document,
    options: Fp16Options | None = None,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Fp16Model:
    """Return a copy of a model in float16; see :func:`fp16_steps`."""
    steps = fp16_steps(document, options or Fp16Options(), cancelled)
    while True:
        try:
            done, total = next(steps)
        except StopIteration as end:
            made: Fp16Model = end.value
            return made
        if progress is not None:
            progress(done, total)


def fp16_steps(
    document: Document, options: Fp16Options, cancelled: CancelCheck | None = None
) -> Generator[tuple[int, int], None, Fp16Model]:
    """Make a copy of a model in float16; yields bytes of weights done and in all.

    Runs onnx's shape inference: call it in a child process.

    Args:
        document: The model; it stays as it is, and open until the copy is closed.
        options: What is to stay in float32. Nodes whose layer precision is another one do, too.
        cancelled: Asked between parts of weights.

    Returns:
        The copy.

    Raises:
        UsageError: A blocked node is not there.
        InputError: The values of a weight cannot be read.
        SaveError: There is no room for the new weights.
        CancelledError: `cancelled` said so.
    """
    copy = copy_of(document)
    try:
        made = Fp16Model(copy, inlined=inline_calls(copy))
        made.notes += infer(copy, document.path)
        before = _casts(copy)
        chosen = _chosen(copy, options, made.kept)
        made.nodes = len(chosen)
        plan = plan_casts(copy, dict.fromkeys(chosen, options.narrow.precision))
        renamed = _old_names(plan)
        stored = stored_casts(plan)
        _settle(plan, renamed, stored)
        transaction = Transaction(f"to_{options.narrow.precision}", {})
        carry_out(plan, transaction)
        redeclare(copy, renamed, options.narrow)
        if not chosen:
            made.notes.append(f"no node can compute in {options.narrow.dtype}: nothing is another")
        elif not options.keep_io_types:
            made.notes += halve_borders(copy, transaction, options.narrow)
        yield from convert_weights(
            copy, transaction, stored, options.narrow, made.losses, cancelled
        )
        redeclare(copy, {}, options.narrow)
        made.weights = len(stored)
        made.casts = _casts(copy) - before
    except BaseException:
        copy.close()
        raise
    return made


def _casts(document: Document) -> int:
    return sum(len(scope.nodes_of_type("Cast")) for scope in document.main.walk())


# --- which nodes ---------------------------------------------------------------------------------


def _chosen(copy: Document, options: Fp16Options, kept: Counter[str]) -> list[Node]:
    blocked_ops, wanted = set(options.op_block), set(options.node_block)
    met: set[str] = set()
    chosen = []
    for scope in copy.main.walk():
        sizes = _size_arithmetic(scope)
        for node in scope.nodes:
            names = [name for name in wanted if _is_named(node, name)]
            met.update(names)
            why = _why_kept(node, blocked_ops, names, sizes, options.narrow)
            if why is None and (tuple(scope.path), node.ref) in options.places:
                why = f"{node.op_type}: its values do not fit {options.narrow.dtype}"
            if why is None:
                chosen.append(node)
            elif why:
                kept[why] += 1
    if missing := sorted(wanted - met):
        raise UsageError(
            f"no node is named {visible(missing[0])!r}", hint="See dld inspect --nodes"
        )
    return chosen


def _is_named(node: Node, name: str) -> bool:
    if "*" in name:
        return fnmatchcase(node.name, name)
    return name in (node.name, node.ref)


def _why_kept(
    node: Node,
    blocked: Collection[str],
    names: list[str],
    sizes: Collection[Node],
    narrow: NarrowType,
) -> str | None:
    """Return why a node keeps its type: empty when it has none to change, None when it does not."""
    found = changes_of(node, narrow.precision)
    if isinstance(found, str):
        is_plain = "has no floating point" in found or "a constant has" in found
        return "" if is_plain or "only holds" in found else f"{node.op_type}: {found}"
    if node.op_type == "Cast" or not (found.inputs or found.outputs):
        return ""
    if names or node.op_type in blocked:
        return f"{node.op_type}: blocked"
    if precision_of(node) not in ("", narrow.precision):
        return f"{node.op_type}: its layer precision is {precision_of(node)}"
    if found.note:
        return f"{node.op_type}: takes no {narrow.dtype} in this opset"
    return "sizes of tensors are computed in it" if node in sizes else None


def _size_arithmetic(scope: Scope) -> set[Node]:
    """Return the nodes that compute with sizes of tensors only: 16 bits would round them."""
    values: set[str] = set()
    found: set[Node] = set()
    for node in scope.nodes:
        taken = [name for name in node.inputs if name]
        is_size = node.op_type in _SIZES or (
            node.op_type not in _FILLS
            and not node.children
            and any(name in values for name in taken)
            and all(name in values or _is_constant(scope, name) for name in taken)
        )
        if is_size:
            values.update(name for name in node.outputs if name)
            if node.op_type not in _SIZES:
                found.add(node)
    return found


def _is_constant(scope: Scope, name: str) -> bool:
    found = scope.resolve(name)
    if found is None or found.kind == "input":
        return False
    return found.node is None or found.node.op_type == "Constant"


# --- the plan ------------------------------------------------------------------------------------


def _old_names(plan: CastPlan) -> dict[str, str]:
    """Return new names of outputs whose old ones nothing needs, with these."""
    still = {cast.target for cast in plan.casts if cast.after}
    return {
        new: old
        for relink in plan.relinks
        for old, new in zip(relink.node.outputs, relink.outputs, strict=True)
        if old != new and old not in still
    }


def _settle(plan: CastPlan, renamed: dict[str, str], stored: dict[str, Stored]) -> None:
    """Give values their old names back, and let weights take the place of their casts."""
    weights = {name: weight.target for weight in stored.values() for name in weight.targets}
    names = renamed | weights

    def named(links: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(name, name) for name in links)

    plan.relinks = [
        Relink(link.node, named(link.inputs), named(link.outputs)) for link in plan.relinks
    ]
    plan.casts = [_renamed(cast, names) for cast in plan.casts if cast.target not in weights]


def _renamed(cast: Cast, names: dict[str, str]) -> Cast:
    return replace(
        cast,
        source=names.get(cast.source, cast.source),
        target=names.get(cast.target, cast.target),
    )
