from __future__ import annotations

import pytest

from dld_tui.core.model.operators.categories import (
    CATEGORIES,
    COLOUR_CLASSES,
    colour_class,
    colour_class_of,
)


@pytest.mark.parametrize(
    ("operator", "domain", "expected"),
    [
        ("Conv", "", "conv"),
        ("MatMul", "", "matmul"),
        ("Add", "", "elem"),
        ("If", "", "control"),
        ("FusedGemm", "com.microsoft", "matmul"),
        ("Mine", "my.domain", "other"),
    ],
)
def test_the_class_of_operators(operator: str, domain: str, expected: str) -> None:
    assert colour_class(operator, domain) == expected


def test_every_category_has_a_class() -> None:
    assert {colour_class_of(category, "X") for category in CATEGORIES} == set(COLOUR_CLASSES)
