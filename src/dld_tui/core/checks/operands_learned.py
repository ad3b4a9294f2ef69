"""Rules about recurrent operators, trees and other models of ai.onnx.ml."""

from __future__ import annotations

from typing import Any

from dld_tui.core.checks.calls import Call
from dld_tui.core.checks.operand_tools import (
    VALUE,
    Said,
    dims_text,
    like,
    sizes_text,
    wrong,
)
from dld_tui.core.text import clip, visible


def recurrent(gates: int, *, quantized: bool = False) -> Any:
    """Return the rule for recurrent operators with so many gates."""

    def check(call: Call) -> Said:
        hidden = call.attribute("hidden_size")
        if hidden is not None and hidden < 1:
            yield VALUE, f"Attribute hidden_size is {hidden}, it must be positive"
            return
        if call.attribute("layout", 0) not in (0, 1):
            yield VALUE, f"Attribute layout is {call.attribute('layout')}, it takes 0 and 1"
            return
        if call.attribute("layout", 0):
            yield "runtime-operator", "ONNX Runtime does not compute with layout 1"
            return
        if hidden is None:
            return
        ways = 2 if call.attribute("direction", "forward") == "bidirectional" else 1
        batch, rows = call.dim(0, 1), gates * hidden
        columns = call.dim(0, 2)
        weights = {
            "W": (1, (ways, columns, rows) if quantized else (ways, rows, columns)),
            "R": (2, (ways, hidden, rows) if quantized else (ways, rows, hidden)),
            "B": (3, (ways, 2 * rows)),
            "initial_h": (5, (ways, batch, hidden)),
        }
        if gates == 4:
            weights["initial_c"] = (6, (ways, batch, hidden))
            weights["P"] = (7, (ways, 3 * hidden))
        for what, (index, wanted) in weights.items():
            yield from like(call, index, f"Input {what}", wanted)
        if call.rank(0) not in (None, 3):
            yield wrong(f"The data is {dims_text(call.dims(0) or ())}, it must have 3 dimensions")
        if quantized:
            for index, what in (
                (8, "W_scale"),
                (9, "W_zero_point"),
                (10, "R_scale"),
                (11, "R_zero_point"),
            ):
                dims = call.dims(index)
                if dims is not None and None not in dims and dims not in ((ways,), (ways, rows)):
                    yield wrong(
                        f"Input {what} is {dims_text(dims)}, needed: [{ways}] or [{ways}, {rows}]"
                    )

    return check


# --- trees and the like -------------------------------------------------------------------------


def scaler(call: Call) -> Said:
    """Yield what is wrong with Scaler."""
    features = call.dim(0, -1)
    for name in ("offset", "scale"):
        values = call.attribute(name)
        if values is None:
            yield VALUE, f"Attribute {name} is needed"
        elif features is not None and len(values) not in (1, features):
            yield wrong(f"Attribute {name} has {len(values)} values for {features} features")


def linear_classifier(call: Call) -> Said:
    """Yield what is wrong with LinearClassifier."""
    labels = call.attribute("classlabels_ints") or call.attribute("classlabels_strings")
    if not labels:
        yield VALUE, "Attribute classlabels_ints or classlabels_strings is needed"


def tree(leaves: str) -> Any:
    """Return the rule for ensembles of trees."""

    def check(call: Call) -> Said:
        trees, ids = call.attribute("nodes_treeids") or (), call.attribute("nodes_nodeids") or ()
        modes = [text.decode("utf-8", "replace") for text in call.attribute("nodes_modes") or ()]
        yes = call.attribute("nodes_truenodeids") or ()
        no = call.attribute("nodes_falsenodeids") or ()
        features = call.attribute("nodes_featureids") or ()
        lengths = {len(values) for values in (trees, ids, modes, yes, no, features)}
        if len(lengths) > 1:
            yield VALUE, f"The nodes_ attributes have {sizes_text(sorted(lengths))} values"
            return
        lengths = {
            len(call.attribute(f"{leaves}_{part}") or ())
            for part in ("treeids", "nodeids", "ids", "weights")
        }
        if len(lengths) > 1:
            yield VALUE, f"The {leaves}_ attributes have {sizes_text(sorted(lengths))} values"
            return
        places = {pair: at for at, pair in enumerate(zip(trees, ids, strict=True))}
        if len(places) != len(ids):
            yield VALUE, "Two nodes of a tree have the same number"
            return
        yield from _tree_order(places, trees, modes, yes, no)
        ends = zip(
            call.attribute(f"{leaves}_treeids") or (), call.attribute(f"{leaves}_nodeids") or (),
            strict=True,
        )  # fmt: skip
        for tree, node in ends:
            at = places.get((tree, node))
            if at is None or modes[at] != "LEAF":
                yield VALUE, f"Node {node} of tree {tree} has a weight and is no leaf"
                return
        size = call.dim(0, -1)
        used = [f for f, mode in zip(features, modes, strict=True) if mode != "LEAF"]
        if call.rank(0) not in (None, 1, 2):
            yield wrong(f"The data is {dims_text(call.dims(0) or ())}, it must have 2 dimensions")
        elif size is not None and used and (max(used) >= size or min(used) < 0):
            yield wrong(f"A tree asks for feature {max(used)} of {size}")

    return check


def _tree_order(
    places: dict[tuple[int, int], int], trees: Any, modes: list[str], yes: Any, no: Any
) -> Said:
    parents: set[int] = set()
    for at, mode in enumerate(modes):
        if mode == "LEAF":
            continue
        if mode not in _MODES:
            yield VALUE, f"Attribute nodes_modes has {clip(visible(mode), 40)!r}"
            return
        for child in (yes[at], no[at]):
            place = places.get((trees[at], child))
            if place is None or place == at:
                yield VALUE, f"A node of tree {trees[at]} leads to node {child}, which is none"
                return
            if place in parents:
                yield VALUE, f"Two nodes of tree {trees[at]} lead to node {child}"
                return
            parents.add(place)


_MODES = frozenset(f"BRANCH_{name}" for name in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER"))


def zip_map(call: Call) -> Said:
    """Yield labels that are too many or too few."""
    labels = call.attribute("classlabels_int64s") or call.attribute("classlabels_strings")
    size = call.dim(0, -1)
    if labels and size is not None and len(labels) != size:
        yield wrong(f"{len(labels)} labels for {size} values")
