"""Labels of Einsum's dimensions, against the shapes that NumPy makes."""

from __future__ import annotations

import numpy as np
import pytest

from dld_tui.core.model.operators.einsum import einsum_labels

CASES = [
    ("...ij,...jk->...ik", (2, 3, 4, 5), (3, 5, 6)),
    ("i...j, j", (4, 2, 5), (5,)),
    ("...i,...->i...", (3, 4), (3,)),
    ("ba,b", (3, 4), (3,)),
    ("iij,jk->ik", (4, 4, 3), (3, 8)),
    ("ij,jk", (4, 5), (5, 6)),
    ("...,...", (2, 1, 3), (4, 1)),
    ("ij->", (2, 3)),
]


@pytest.mark.parametrize(("equation", "shapes"), [(one[0], one[1:]) for one in CASES])
def test_the_output_has_the_shape_that_numpy_makes(
    equation: str, shapes: tuple[tuple[int, ...], ...]
) -> None:
    inputs, output = einsum_labels(equation, [*map(len, shapes)])
    sizes: dict[str, int] = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        for label, size in zip(labels, shape, strict=True):
            sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
    made = np.einsum(equation, *(np.ones(shape) for shape in shapes))
    assert tuple(sizes[label] for label in output) == made.shape


@pytest.mark.parametrize(("equation", "ranks"), [("ij,jk", (2,)), ("ij", (3,)), ("ij...", (1,))])
def test_an_equation_that_does_not_fit_is_refused(equation: str, ranks: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"fit|zip"):
        einsum_labels(equation, ranks)
