from __future__ import annotations

import pytest

from dld_tui.core.types import plain_domain


@pytest.mark.parametrize(
    ("domain", "plain"),
    [("", ""), ("ai.onnx", ""), ("ai.onnx.ml", "ai.onnx.ml"), ("a\x1b", "a\x1b")],
)
def test_the_default_domain_has_one_name(domain: str, plain: str) -> None:
    assert plain_domain(domain) == plain
