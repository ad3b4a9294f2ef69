"""Single values that are followed backwards, with and without types."""

from __future__ import annotations

import pytest

from dld_tui.core.model.document.document import Document
from dld_tui.core.model.shapes.following import Following
from dld_tui.core.model.shapes.size import symbol
from tests.support.models import parse

HEAD = '<ir_version: 10, opset_import: ["" : 18]>'


@pytest.mark.parametrize("size", ["?", "unk__7", "M"])
def test_an_open_size_is_looked_for_in_what_makes_it(size: str) -> None:
    text = f"{HEAD} g (float[N, 4] x) => (y) <float[{size}, 4] a> {{ a = Relu (x) y = Neg (a) }}"
    dims = Following().value(Document(parse(text)).main, "a").dims
    assert dims == (symbol("M" if size == "M" else "N"), 4)


def test_a_chain_without_types_ends_and_a_cycle_does() -> None:
    steps = "".join(f"v{at + 1} = Add (v{at}, v{at})" for at in range(300))
    scope = Document(parse(f"{HEAD} g (float[N, 8] v0) => (y) {{ {steps} y = Neg (v300) }}")).main
    assert Following().value(scope, "v300").dims is None  # too far
    following = Following()
    for at in range(301):
        assert following.value(scope, f"v{at}").dims == (symbol("N"), 8)
    cycle = Document(
        parse(f"{HEAD} g (float[N] x) => (y) {{ a = Add (b, b) b = Neg (a) y = Neg (a) }}")
    )
    assert Following().value(cycle.main, "y").dims is None
