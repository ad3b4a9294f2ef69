"""Models shaped like convolutional networks, for benchmarks of graphs: no weights at all.

Each kind has something that makes its graph hard to draw: parallel branches, links to everything
that follows, long links from one half to the other, branches that exchange what they have.
"""

from __future__ import annotations

import onnx

from benchmarks.transformers import Builder


def inception(blocks: int = 60) -> onnx.ModelProto:
    """Return blocks of four branches of different lengths, joined by a Concat."""
    b = Builder()
    x = _conv(b, "/stem", b.value("image"))
    for number in range(blocks):
        block = f"/inception.{number}"
        third = _conv(b, f"{block}/double", _conv(b, f"{block}/double", x))
        branches = (
            _conv(b, f"{block}/single", x),
            _conv(b, f"{block}/triple", _conv(b, f"{block}/triple", x)),
            _conv(b, f"{block}/double", third),
            _conv(b, f"{block}/pool", b.op("MaxPool", f"{block}/pool", x)),
        )
        x = b.op("Concat", block, *branches)
    b.give("classes", b.op("GlobalAveragePool", "/head", x))
    return b.model()


def dense(blocks: tuple[int, ...] = (6, 12, 24, 16), *, flat: bool = True) -> onnx.ModelProto:
    """Return blocks of layers each of which takes all that the layers before it have made.

    Args:
        blocks: The layers of each block.
        flat: One Concat of everything a layer; else each adds to the one before, as DenseNet does.
    """
    b = Builder()
    x = _conv(b, "/stem", b.value("image"))
    for number, layers in enumerate(blocks):
        made = [x]
        for layer in range(layers):
            scope = f"/block.{number}/layer.{layer}"
            if not layer:
                taken = x
            elif flat:
                taken = b.op("Concat", scope, *made)
            else:
                taken = x = b.op("Concat", scope, x, made[-1])
            made.append(_conv(b, scope, _conv(b, scope, taken)))
        joined = b.op("Concat", f"/block.{number}", *(made if flat else (x, made[-1])))
        x = b.op("AveragePool", f"/transition.{number}", _conv(b, f"/transition.{number}", joined))
    b.give("classes", x)
    return b.model()


def unet(depth: int = 10, layers: int = 14) -> onnx.ModelProto:
    """Return a way down and a way up, with a link from each level of one to that of the other."""
    b = Builder()
    x = b.value("image")
    skips = []
    for level in range(depth):
        for _ in range(layers):
            x = _residual(b, f"/down.{level}", x)
        skips.append(x)
        x = b.op("MaxPool", f"/down.{level}", x)
    x = _residual(b, "/middle", x)
    for level in reversed(range(depth)):
        x = b.op("Resize", f"/up.{level}", x)
        x = b.op("Concat", f"/up.{level}", x, skips[level])
        for _ in range(layers):
            x = _conv(b, f"/up.{level}", x)
    b.give("mask", x)
    return b.model()


def nested_unet(depth: int = 8, layers: int = 12) -> onnx.ModelProto:
    """Return a triangle of levels, each step linked to all before it on its level (U-Net++)."""
    b = Builder()
    made: dict[tuple[int, int], str] = {}
    x = b.value("image")
    for level in range(depth):
        for _ in range(layers):
            x = _conv(b, f"/level.{level}.0", x)
        made[level, 0] = x
        x = b.op("MaxPool", f"/level.{level}.0", x)
    for step in range(1, depth):
        for level in range(depth - step):
            scope = f"/level.{level}.{step}"
            upper = b.op("Resize", scope, made[level + 1, step - 1])
            x = b.op("Concat", scope, *(made[level, before] for before in range(step)), upper)
            for _ in range(layers):
                x = _conv(b, scope, x)
            made[level, step] = x
    for step in range(1, depth):
        b.give(f"mask.{step}", made[0, step])
    return b.model()


def pyramid(levels: int = 5, rounds: int = 16, heads: int = 4) -> onnx.ModelProto:
    """Return a detector: a backbone, ways up and down between its levels, and heads on each."""
    b = Builder()
    x = b.value("image")
    found = []
    for level in range(levels):
        for _ in range(8):
            x = _residual(b, f"/backbone.{level}", x)
        found.append(_conv(b, f"/lateral.{level}", x))
    for number in range(rounds):
        scope = f"/pyramid.{number}"
        up = list(found)
        for level in reversed(range(levels - 1)):
            wide = b.op("Resize", f"{scope}/up.{level}", up[level + 1])
            up[level] = _conv(
                b, f"{scope}/up.{level}", b.op("Add", f"{scope}/up.{level}", found[level], wide)
            )
        down = list(up)
        for level in range(1, levels):
            small = b.op("MaxPool", f"{scope}/down.{level}", down[level - 1])
            parts = (found[level], up[level], small) if level < levels - 1 else (up[level], small)
            added = b.op("Sum", f"{scope}/down.{level}", *parts)
            down[level] = _conv(b, f"{scope}/down.{level}", added)
        found = down
    for part in ("class", "box"):
        ends = []
        for level in range(levels):
            x = found[level]
            for _ in range(heads):
                x = _conv(b, f"/{part}.{level}", x)
            ends.append(b.op("Reshape", f"/{part}.{level}", x))
        b.give(f"{part}es", b.op("Concat", f"/{part}", *ends))
    return b.model()


def exchange(branches: int = 4, rounds: int = 11) -> onnx.ModelProto:
    """Return branches that are summed over all others round after round (HRNet)."""
    b = Builder()
    x = _conv(b, "/stem", b.value("image"))
    found = [x]
    while len(found) < branches:
        found.append(_conv(b, f"/new.{len(found)}", found[-1]))
    for number in range(rounds):
        scope = f"/stage.{number}"
        for at in range(branches):
            for _ in range(2):
                found[at] = _residual(b, f"{scope}/branch.{at}", found[at])
        mixed = []
        for at in range(branches):
            parts = []
            for other in range(branches):
                part = found[other]
                if other > at:
                    part = b.op("Resize", f"{scope}/{other}-{at}", _conv(b, f"{scope}/fuse", part))
                for _ in range(at - other):
                    part = _conv(b, f"{scope}/fuse", part)
                parts.append(part)
            mixed.append(b.op("Relu", scope, b.op("Sum", scope, *parts)))
        found = mixed
    b.give("map", b.op("Concat", "/head", *found))
    return b.model()


def searched(cells: int = 29) -> onnx.ModelProto:
    """Return cells found by a search, each of which takes what the two before it made (NASNet)."""
    b = Builder()
    before = x = _conv(b, "/stem", b.value("image"))
    for number in range(cells):
        cell = f"/cell.{number}"
        one, two = _conv(b, f"{cell}/in", before), _conv(b, f"{cell}/in", x)
        blocks = []
        for at, (left, right) in enumerate(((two, two), (one, two), (two, one), (one, one))):
            scope = f"{cell}/block.{at}"
            first = _conv(b, scope, _conv(b, scope, left))
            second = b.op("AveragePool", scope, right) if at % 2 else _conv(b, scope, right)
            blocks.append(b.op("Add", scope, first, second))
        blocks.append(b.op("Add", f"{cell}/block.4", _conv(b, f"{cell}/block.4", blocks[1]), one))
        before, x = x, b.op("Concat", cell, one, *blocks)
    b.give("classes", b.op("GlobalAveragePool", "/head", x))
    return b.model()


def _conv(b: Builder, scope: str, x: str) -> str:
    return b.op("Relu", scope, b.op("Conv", scope, x))


def _residual(b: Builder, scope: str, x: str) -> str:
    return b.op("Relu", scope, b.op("Add", scope, b.op("Conv", scope, _conv(b, scope, x)), x))
