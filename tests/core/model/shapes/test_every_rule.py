"""What each rule says of shapes, for a number of ways to call it, compared with a file beside."""

from __future__ import annotations

from typing import Any

import onnx
import pytest

from dld_tui.core.model.shapes.call import Call, Demands
from dld_tui.core.model.shapes.evaluation import MALFORMED
from dld_tui.core.model.shapes.rules import RULES
from dld_tui.core.model.shapes.size import sizes_text, symbol
from dld_tui.core.model.shapes.value import Value
from tests.core.model.cost.test_operators import ABOUT
from tests.support.recorded import Recorded

MORE: dict[str, Any] = {
    **ABOUT, "strides": [2, 1], "pads": [1, 0, 1, 2], "dilations": [1, 2], "group": 2,
    "perm": [0, 2, 1, 3], "keepdims": 0, "axes": [1, -1], "to": 7, "num_outputs": 2,
    "split": [1, 3], "starts": [1, 0], "ends": [3, 9], "blocksize": 2, "shape": [2, -1],
    "ceil_mode": 1, "steps": 2, "output_shape": [7, 9], "output_padding": [1, 0],
    "exclude_outside": 1, "scales": [1.0, 2.0], "batch_dims": 1, "select_last_index": 1,
    "largest": 0, "depth": 3, "allowzero": 1, "transBatchB": 1, "do_sequence": 1, "new_axis": 1,
    "qkv_hidden_sizes": [4, 4, 8], "seed": 1, "quantize_axis": 1, "kv_cache_bit_width": 4,
    "local_window_size": 3, "sliding_window_cache": 1, "past_present_share_buffer": 1,
    "value_ints": [1, 2], "linear_before_reset": 1, "layout": 1,
}  # fmt: skip
WAYS: dict[str, tuple[list[Any], dict[str, Any], dict[int, list[int]]]] = {
    "4": ([(2, 4, 6, 8)] * 12, {}, {}),
    "4 more": ([(2, 4, 6, 8)] * 12, MORE, {}),
    "weights": ([(2, 4, 9, 9), (6, 2, 3, 2), (6,)], MORE, {}),
    "weights plain": ([(2, 4, 9, 9), (6, 4, 3, 3), (6,)], {"num_heads": 2}, {}),
    "3": ([(2, 6, 12)] * 10, {"num_heads": 3, "kv_num_heads": 3, "q_num_heads": 3}, {}),
    "3 more": ([(2, 6, 12)] * 10, MORE, {}),
    "matrices": ([(4, 8), (8, 5), (5,)], {"transB": 0}, {}),
    "heads": ([(2, 3, 8), (2, 5, 8), (2, 5, 8), None, (2, 2, 4, 2), (2, 2, 4, 2)], MORE, {}),
    "named": ([("n", 1, 6), (4, 6), ("m",)], {"axis": -1, "hidden_size": 4}, {}),
    "apart": ([(2, 3), (4, 5), (7,)], {"axis": 0}, {}),
    "scalars": ([(), (), ()], {}, {0: [2], 1: [9], 2: [3]}),
    "numbers": ([(2, 4, 6), (3,), (3,), (3,), (3,)], {"axis": 1},
                {1: [1, 0, 2], 2: [2, 4, 9], 3: [0, 1, 2], 4: [1, 1, 2]}),
    "few": ([(2, 4, 6), (2,), (2,), (1,)], {"axis": -2}, {1: [3, -1], 2: [1, 3], 3: [5]}),
    "one": ([(6, 4), (1,), (1,)], {}, {0: [5], 1: [1], 2: [3]}),
    "counted": ([(3,), (3,), (3,)], {}, {0: [2, 3, 4], 1: [4, 1, 0], 2: [1, 2, 3]}),
    "two": ([(2, 4, 6, 8), (2, 4, 6, 8)], {**MORE, "kernel_shape": [3, 2]}, {}),
    "alone": ([(2, 3, 8)], {"num_heads": 2}, {}),
    "packed": ([(2, 3, 4, 3, 5), None, None], {"num_heads": 4}, {}),
    "keys apart": ([(2, 3, 8), (2, 2, 5, 4), (2, 2, 5, 4)], {"num_heads": 2}, {}),
    "half known": ([None, (6, 8), (4, 6)], MORE, {}),
    "first known": ([(2, 4, 6, 8), None, None], {}, {}),
    "nothing": ([None] * 6, {}, {}),
}  # fmt: skip


def value(at: int, dims: Any, listed: list[int] | None) -> Value:
    shape = None if dims is None else tuple(symbol(d) if isinstance(d, str) else d for d in dims)
    return Value(shape, None if listed is None else tuple(listed), (f"i{at}", 0))


def told(one: Value) -> str:
    """Return a value as text: its sizes, its elements, and what bounds it."""
    said = "?" if one.dims is None else sizes_text(one.dims)
    numbers = one.values()
    if numbers is not None:
        said += f" = {sizes_text(numbers[:6])}"
    return f"{said}{' in a sequence' if one.is_sequence else ''} {one.upper_bound or ''}".rstrip()


def said(domain: str, name: str, title: str, version: int) -> str:
    """Return what a rule says of one way to call it."""
    shapes, about, listed = WAYS[title]
    values = [value(at, dims, listed.get(at)) for at, dims in enumerate(shapes)]
    names = ["i" if dims is not None else "" for dims in shapes]
    node = onnx.helper.make_node(name, names, ["a", "b", "c"], domain=domain, **about)
    demands = Demands()
    try:
        found = ", ".join(map(told, RULES[domain][name](Call(node, values, demands, version))))
    except MALFORMED as error:
        found = type(error).__name__
    failed = "; ".join(demand.text for demand in demands.failed)
    bounds = [f"{key} {sizes_text([size for size, _ in b])}" for key, b in demands.bounds.items()]
    return f"{found} {failed and f'! {failed}'} {bounds or ''}".rstrip()


@pytest.mark.broad
def test_every_rule(recorded: Recorded) -> None:
    made = {}
    for domain, rules in RULES.items():
        for name in sorted(rules):
            lines: dict[str, list[str]] = {}
            for title in WAYS:
                line = said(domain, name, title, 9)
                versions = {"3": (3, 4), "4 more": (24,), "3 more": (24,)}.get(title, ())
                others = [(version, said(domain, name, title, version)) for version in versions]
                line += "".join(f" | of {at}: {other}" for at, other in others if other != line)
                lines.setdefault(line, []).append(title)
            made[f"{domain}.{name}".lstrip(".")] = "\n".join(
                f"{', '.join(titles)}: {line}" for line, titles in lines.items()
            )
    recorded("every_rule", made)
