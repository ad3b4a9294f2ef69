"""What kernels of ensembles of trees refuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dld_tui.core.checks.calls import Call
from dld_tui.core.checks.operands import VALUE, Said, dims_text, sizes_text, wrong
from dld_tui.core.text import clip, visible

_MODES = frozenset(f"BRANCH_{name}" for name in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER"))


def classifier(call: Call) -> Said:
    """Yield what is wrong with TreeEnsembleClassifier."""
    labels = call.attribute("classlabels_int64s") or call.attribute("classlabels_strings") or ()
    yield from _ensemble(call, "class", len(labels))


def regressor(call: Call) -> Said:
    """Yield what is wrong with TreeEnsembleRegressor."""
    yield from _ensemble(call, "target", call.attribute("n_targets", 0))


def _ensemble(call: Call, leaves: str, targets: int) -> Said:
    nodes = {
        name: call.attribute(f"nodes_{name}") or ()
        for name in ("treeids", "nodeids", "modes", "truenodeids", "falsenodeids", "featureids")
    }
    lengths = {*map(len, nodes.values()), *_length(call, "nodes_values")}
    if len(lengths) > 1:
        yield VALUE, f"The nodes_ attributes have {sizes_text(sorted(lengths))} values"
        return
    weights = [call.attribute(f"{leaves}_{name}") or () for name in ("treeids", "nodeids", "ids")]
    lengths = {*map(len, weights), *_length(call, f"{leaves}_weights")}
    if len(lengths) > 1:
        yield VALUE, f"The {leaves}_ attributes have {sizes_text(sorted(lengths))} values"
        return
    if targets < 1:
        yield VALUE, f"There are {targets} targets or classes, there must be one or more"
        return
    for target in weights[2]:
        if not 0 <= target < targets:
            yield VALUE, f"A leaf is for target or class {target}, there are {targets}"
            return
    trees, ids = ([_int32(value) for value in nodes[name]] for name in ("treeids", "nodeids"))
    modes = [mode.decode("utf-8", "replace") for mode in nodes["modes"]]
    places = {pair: place for place, pair in enumerate(zip(trees, ids, strict=True))}
    if len(places) != len(ids):
        yield VALUE, "Two nodes of a tree have the same number"
        return
    sides = [[_int32(value) for value in nodes[f"{side}nodeids"]] for side in ("true", "false")]
    problem = next(_misplaced(places, trees, modes, sides), None)
    if problem is not None:
        yield problem
        return
    for tree, node in zip(weights[0], weights[1], strict=True):
        if (tree, node) not in places:
            yield VALUE, f"Node {node} of tree {tree} has a weight and is not there"
            return
    size = call.dim(0, -1)
    used = [f for f, mode in zip(nodes["featureids"], modes, strict=True) if mode != "LEAF"]
    if call.rank(0) not in (None, 1, 2):
        yield wrong(f"The data is {dims_text(call.dims(0) or ())}, it must have 2 dimensions")
    elif size is not None and used and (max(used) >= size or min(used) < 0):
        yield wrong(f"A tree asks for feature {max(used)} of {size}")


def _length(call: Call, name: str) -> tuple[int, ...]:
    """Return the length of an attribute, unless it is given as a tensor."""
    if call.attribute(f"{name}_as_tensor") is not None:
        return ()
    return (len(call.attribute(name) or ()),)


def _int32(value: int) -> int:
    """Return what is left of a number in 32 bits, which is what ONNX Runtime keeps."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _misplaced(
    places: Mapping[tuple[int, int], int],
    trees: Sequence[int],
    modes: Sequence[str],
    sides: Sequence[Sequence[int]],
) -> Said:
    """Yield what keeps nodes from the order in which ONNX Runtime lays them out.

    The branch that is taken when the condition is false comes directly after its node (``AddNodes``
    in ``tree_ensemble_common.h``); the other may lead to a node that is there already.
    """
    children: list[tuple[int, int]] = []
    for node, mode in enumerate(modes):
        if mode == "LEAF":
            children.append((node, node))
            continue
        if mode not in _MODES:
            yield VALUE, f"Attribute nodes_modes has {clip(visible(mode), 40)!r}"
            return
        ends = [places.get((trees[node], side[node])) for side in sides]
        for side, end in zip(sides, ends, strict=True):
            if end is None or end == node or not 0 <= side[node] < len(modes):
                yield (
                    VALUE,
                    f"A node of tree {trees[node]} leads to node {side[node]}, which is none",
                )
                return
        children.append((ends[0] or 0, ends[1] or 0))
    laid: dict[int, int] = {}
    count = 0
    for root, tree in enumerate(trees):
        if root and tree == trees[root - 1]:
            continue
        waiting: list[tuple[int, int | None]] = [(root, None)]
        while waiting:
            node, wanted = waiting.pop()
            place = laid.get(node, 0)  # 0 stands for a new one, the very first root included
            if not place:
                place = laid[node] = count
                count += 1
                if modes[node] != "LEAF":
                    waiting += [(children[node][0], None), (children[node][1], place + 1)]
            if (wanted is not None and place != wanted) or count > len(modes):
                yield VALUE, f"Two nodes of tree {tree} lead to one"
                return


def tree_ensemble(call: Call) -> Said:
    """Yield what is wrong with TreeEnsemble."""
    features, roots = call.attribute("nodes_featureids") or (), call.attribute("tree_roots") or ()
    sides = [
        (call.attribute(f"nodes_{side}nodeids") or (), call.attribute(f"nodes_{side}leafs") or ())
        for side in ("true", "false")
    ]
    targets, leaves = call.attribute("n_targets", 0), call.attribute("leaf_targetids") or ()
    if targets < 1:
        yield VALUE, f"Attribute n_targets is {targets}, it must be positive"
    elif leaves and not 0 <= min(leaves) <= max(leaves) < targets:
        yield VALUE, f"A leaf is for target {max(leaves)}, there are {targets}"
    if any(len(part) != len(features) for side in sides for part in side):
        return  # inference tells
    used: set[int] = set()
    for root in roots:
        seen: set[int] = set()
        waiting = [] if _is_leaf(root, sides) else [root]
        while waiting:
            node = waiting.pop()
            if not 0 <= node < len(features) or node in seen:
                yield VALUE, f"A tree leads to node {node} twice, or there is none"
                return
            seen.add(node)
            for places, ends in sides:
                if not ends[node]:
                    waiting.append(places[node])
                elif not 0 <= places[node] < len(leaves):
                    yield VALUE, f"A tree leads to leaf {places[node]} of {len(leaves)}"
                    return
        used |= {features[node] for node in seen}
    size = call.dim(0, 1)
    if used and (min(used) < 0 or (size is not None and max(used) >= size)):
        yield wrong(f"A tree asks for feature {max(used)} of {size}")


def _is_leaf(root: int, sides: list[tuple[Sequence[int], Sequence[int]]]) -> bool:
    """Return whether a tree is a leaf alone: both ways lead to the same one."""
    (yes, is_yes), (no, is_no) = sides
    return 0 <= root < len(yes) and bool(yes[root] == no[root] and is_yes[root] and is_no[root])
