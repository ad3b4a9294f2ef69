"""The equation of Einsum: which dimensions of its inputs and of its output are the same one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def einsum_labels(equation: str, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    """Return a label for each dimension of each input, and for those of the output.

    Dimensions with one label are broadcast to one size. Those that ``...`` stands for are counted
    from the last one: ``2.``, ``1.``.

    Args:
        equation: As ``...ij,...jk->...ik``; without ``->`` the output has what ``...`` stands for,
            then the letters that are there once, in the order of the alphabet.
        ranks: Of the inputs.

    Raises:
        ValueError: The equation does not fit the ranks.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    inputs = []
    for term, rank in zip(terms, ranks, strict=True):
        before, dots, after = term.partition("...")
        covered = rank - len(before) - len(after)
        if covered < 0 or (covered and not dots):
            raise ValueError(f"{term} does not fit {rank} dimensions")
        inputs.append([*before, *_covered(covered), *after])
    hidden = _covered(max(sum(label.endswith(".") for label in labels) for labels in inputs))
    if arrow:
        before, dots, after = right.partition("...")
        return inputs, [*before, *(hidden if dots else ()), *after]
    count = Counter(label for labels in inputs for label in labels)
    once = sorted(label for label in count if count[label] == 1 and not label.endswith("."))
    return inputs, [*hidden, *once]


def _covered(count: int) -> list[str]:
    return [f"{place}." for place in range(count, 0, -1)]
