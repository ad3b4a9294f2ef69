"""The search of Q/DQ places finds what a trial of every placement finds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Generator
from dataclasses import replace

import pytest

from dld_tui.core.compare.gate import judge
from dld_tui.core.events import Event, result_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.trials import Answer, LimitReachedError
from dld_tui.core.tune.placement import (
    Comparison,
    Placement,
    PlacementSearch,
    decisions_of,
)
from dld_tui.core.tune.regions import Pattern, Regions, Scheme, regions_of
from tests.support import models
from tests.support.recorded import Recorded, settled
from tests.support.tiers import first

Ms = Callable[[Placement], float]
Good = Callable[[Placement], bool]


def chain(count: int, *, mixed: bool = True) -> Regions:
    """Return patterns in a row, each beside the next."""
    patterns = []
    for at in range(count):
        nodes = (f"conv{at}", f"add{at}") if mixed else (f"conv{at}",)
        patterns.append(Pattern(("Conv", "Add")[: len(nodes)], (nodes,), frozenset(nodes[:1])))
    return Regions(tuple(patterns), frozenset((at, at + 1) for at in range(count - 1)))


def compared(base: Placement, new: Placement, ms: Ms, good: Good) -> Comparison:
    if not good(new):
        return Comparison(Answer.INSUFFICIENT, "output y: off")
    row = judge("end to end", [ms(base)] * 6, [ms(new)] * 6, 0.5)
    return Comparison(Answer.SUFFICIENT, row=row)


def searched(
    regions: Regions, ms: Ms, good: Good = lambda placement: True, most: int | None = None
) -> tuple[PlacementSearch, list[tuple[Placement, Placement]]]:
    """Search with a timer without noise; return it and what was asked."""
    asked: list[tuple[Placement, Placement]] = []
    known: dict[tuple[Placement, Placement], Comparison] = {}

    def ask(base: Placement, new: Placement) -> Generator[Event, None, Comparison]:
        yield from ()
        if (base, new) not in known:
            if most is not None and len(asked) >= most:
                raise LimitReachedError
            asked.append((base, new))
            known[base, new] = compared(base, new, ms, good)
        return known[base, new]

    search = PlacementSearch(regions, ask)
    result_of(search.run())
    return search, asked


def every(regions: Regions) -> list[Placement]:
    return [*itertools.product(*(pattern.schemes for pattern in regions.patterns))]


@pytest.mark.parametrize("seed", first(8, range(30)))
def test_separate_regions_get_the_best_of_all_placements(seed: int) -> None:
    drawn, regions = random.Random(seed), chain(5)
    gains = [{scheme: drawn.uniform(-2, 2) for scheme in Scheme} for _ in range(5)]

    def ms(placement: Placement) -> float:
        return 20 - sum(
            0 if scheme is Scheme.FLOAT else gain[scheme]
            for gain, scheme in zip(gains, placement, strict=True)
        )

    search, asked = searched(regions, ms)
    best = min(map(ms, every(regions)))
    # A gain within the tolerance of a comparison is no reason to quantize.
    assert ms(search.best) == pytest.approx(best, rel=0.5 * 0.01 * 5)
    assert search.is_whole
    assert len(asked) < len(every(regions)) / 3


def test_what_is_behind_a_scheme_that_was_left_is_tried() -> None:
    order = [Scheme.FLOAT, Scheme.PRODUCTS, Scheme.ALL]
    search, _ = searched(
        chain(2), lambda one: 20.0 - 3 * order.index(one[0]), lambda one: one[1] is Scheme.FLOAT
    )
    assert search.best == (Scheme.ALL, Scheme.FLOAT)


@pytest.mark.parametrize("most", range(1, 12))
def test_a_limit_leaves_the_best_so_far(most: int) -> None:
    regions = chain(3)

    def ms(placement: Placement) -> float:
        return 10.0 - sum(scheme is Scheme.ALL for scheme in placement[1:])

    search, asked = searched(regions, ms, most=most)
    assert len(asked) <= most
    tried = {one for pair in asked for one in pair}
    assert ms(search.best) == min(map(ms, tried))


SHORT = {Scheme.FLOAT: "-", Scheme.PRODUCTS: "p", Scheme.ALL: "a"}


def shown(placement: Placement) -> str:
    return "".join(map(SHORT.__getitem__, placement))


def test_whole_searches(recorded: Recorded) -> None:
    """What is asked in which order, and what is decided of each pattern."""

    def sums(*gains: float) -> Ms:
        return lambda placement: (
            10
            - sum(
                gain * {"-": 0.0, "p": 0.75, "a": 1.0}[SHORT[scheme]]
                for gain, scheme in zip(gains, placement, strict=False)
            )
        )

    def paired(placement: Placement) -> float:
        """Return less for two neighbours only: the border of one costs more than it gains."""
        return 10 - (
            2.0 if shown(placement).startswith("aa") else -0.5 * shown(placement).count("a")
        )

    def whole_is_best(placement: Placement) -> float:
        return 5.0 if set(placement) == {Scheme.ALL} else 9.0 + 0.5 * shown(placement).count("a")

    def products(placement: Placement) -> float:
        return 10 - 2.0 * shown(placement).count("p") + shown(placement).count("a")

    few = Regions((), frozenset())
    cases: dict[str, tuple[Regions, Ms, Good, int | None]] = {
        "nothing to decide": (few, sums(), lambda one: True, None),
        "all gain": (chain(3), sums(1, 1, 1), lambda one: True, None),
        "none gains": (chain(3), sums(-1, -1, -1), lambda one: True, None),
        "one loses": (chain(3), sums(1, -1, 1), lambda one: True, None),
        "the same": (chain(2), sums(0, 0), lambda one: True, None),
        "products": (chain(3), products, lambda one: True, None),
        "pairs": (chain(4, mixed=False), paired, lambda one: True, None),
        "only the whole": (chain(3, mixed=False), whole_is_best, lambda one: True, None),
        "one must not": (chain(3), sums(1, 1, 1), lambda one: one[1] is Scheme.FLOAT, None),
        "nothing may": (chain(2), sums(1, 1), lambda one: shown(one) == "--", None),
        "a limit": (chain(3), sums(1, -1, 1), lambda one: True, 4),
        "no time": (chain(3), sums(1, -1, 1), lambda one: True, 0),
    }
    texts = {}
    for name, (regions, ms, good, most) in cases.items():
        search, asked = searched(regions, ms, good, most)
        lines = [f"{shown(base)} {shown(new)}" for base, new in asked]
        lines.append(f"best {shown(search.best)}, whole {search.is_whole}, {search.everything}")
        lines += [str(row) for row in decisions_of(search, regions)]
        texts[name] = settled("\n".join(lines))
    shares = Regions(
        tuple(replace(one, share=at / 10) for at, one in enumerate(chain(3).patterns)),
        frozenset({(0, 2)}),
    )
    search, asked = searched(shares, sums(1, -1, 0.5))
    texts["shares"] = " ".join(f"{shown(base)}>{shown(new)}" for base, new in asked)
    recorded("whole_searches", texts)


BLOCKS = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[1, 4, 8, 8] x) => (float[1, 4, 8, 8] y)
<float[4, 4, 3, 3] w0, float[4, 4, 3, 3] w1, float[4, 4, 3, 3] w2, float[4, 4, 1, 1] w3>
{
    [k] k3 = Neg(w3)
    [c0] a0 = Conv<pads = [1, 1, 1, 1]>(x, w0)
    [r0] b0 = Relu(a0)
    [c1] a1 = Conv<pads = [1, 1, 1, 1]>(b0, w1)
    [r1] b1 = Relu(a1)
    [c2] a2 = Conv<pads = [1, 1, 1, 1]>(b1, w2)
    [s2] b2 = Sigmoid(a2)
    [c3] a3 = Conv(b1, k3)
    [sum] y = Add(b2, a3)
}
"""


def test_regions_that_are_alike_share_a_decision() -> None:
    document = Document(models.parse(BLOCKS))
    nodes = {node.name: node for node in document.main.nodes}
    types = dict.fromkeys(("a0", "b0", "a1", "b1", "a2", "b2", "a3"), "float32[1, 4, 8, 8]")
    types["x"] = types["a0"]
    found = regions_of(document.main, [*nodes.values()], types)
    assert [pattern.regions for pattern in found.patterns] == [
        (("c0", "r0"), ("c1", "r1")), (("c2", "s2"),), (("c3", "sum"),),
    ]  # fmt: skip
    assert found.patterns[0].title == "Conv, Relu"
    assert found.patterns[0].schemes == tuple(Scheme)
    assert found.patterns[0].floating(Scheme.PRODUCTS) == ["r0", "r1"]
    assert found.beside == {(0, 1), (0, 2), (1, 2)}
    # The order of the file does not matter.
    head, *lines = BLOCKS.split("\n    [")
    last = lines.pop().removesuffix("\n}\n")
    turned = "\n    [".join([head, last, *reversed(lines)]) + "\n}\n"
    main = Document(models.parse(turned)).main
    again = regions_of(main, main.nodes, types)
    assert [pattern.regions for pattern in again.patterns] == [
        pattern.regions for pattern in found.patterns
    ]
    # A sigmoid that is no candidate belongs to no region, and its region is one product only.
    fewer = regions_of(document.main, [one for name, one in nodes.items() if name != "s2"], types)
    assert fewer.patterns[1].schemes == (Scheme.FLOAT, Scheme.ALL)
    # A product that is a hundredth of all work stays in the region before it.
    small = regions_of(document.main, [*nodes.values()], types, {"c1": 0.009, "c2": 0.01})
    assert [pattern.regions for pattern in small.patterns] == [
        (("c0", "r0", "c1", "r1"),), (("c2", "s2"),), (("c3", "sum"),),
    ]  # fmt: skip
    assert [pattern.share for pattern in small.patterns] == [0.009, 0.01, 0.0]
    # Without the shapes of a run, types are those that are declared.
    declared = regions_of(document.main, [*nodes.values()])
    assert declared.patterns[0].regions == (("c0", "r0"),)
    # Another shape is another pattern, also that of a weight.
    weights = dict.fromkeys(("w0", "w1"), "float32[4, 4, 3, 3]")
    assert len(regions_of(document.main, [*nodes.values()], types | weights).patterns) == 3
    weights["w1"] = "float32[4, 4, 1, 1]"
    assert len(regions_of(document.main, [*nodes.values()], types | weights).patterns) == 4
    other = regions_of(document.main, [*nodes.values()], types | {"b0": "float32[1, 4, 4, 4]"})
    assert len(other.patterns) == 4


def test_regions_that_are_wired_otherwise_do_not_share_a_decision() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (float[1, 4, 8, 8] x) => (float[1, 4, 8, 8] y) <float[4, 4, 3, 3] w>
    {
        [c0] a0 = Conv<pads = [1, 1, 1, 1]>(x, w) [r0] b0 = Relu(a0) [s0] d0 = Sub(a0, b0)
        [c1] a1 = Conv<pads = [1, 1, 1, 1]>(d0, w) [r1] b1 = Relu(a1) [s1] d1 = Sub(a1, b1)
        [c2] a2 = Conv<pads = [1, 1, 1, 1]>(d1, w) [r2] b2 = Relu(a2) [s2] y = Sub(b2, a2)
    }
    """
    main = Document(models.parse(text)).main
    types = dict.fromkeys(("a0", "b0", "d0", "a1", "b1", "d1", "a2", "b2"), "float32[1, 4, 8, 8]")
    types |= dict.fromkeys("xy", types["a0"])
    found = regions_of(main, main.nodes, types)
    assert [pattern.regions for pattern in found.patterns] == [
        (("c0", "r0", "s0"), ("c1", "r1", "s1")), (("c2", "r2", "s2"),),
    ]  # fmt: skip
