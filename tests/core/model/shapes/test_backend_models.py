"""Rules of all operators, held against the 2,000 test models that the package onnx carries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.shapes.call import Call, Demands
from dld_tui.core.model.shapes.evaluation import Evaluation
from dld_tui.core.model.shapes.rules import RULES, Rule, rule_of
from dld_tui.core.model.shapes.size import Size, common, symbol, value_at
from dld_tui.core.model.shapes.value import NOTHING, Value
from dld_tui.core.model.tensors.value_types import value_type_of
from dld_tui.core.types import plain_domain
from tests.support.backend_cases import Case, backend_cases, claims, fits, known, less_known
from tests.support.tiers import first

_MOST_UNKNOWN = 0.03
_ON_THE_WAY = {"If", "Loop", "Scan", "SequenceMap"}
"""Operators with subgraphs, which are evaluated."""


@pytest.mark.slow
def test_what_is_claimed_is_what_comes_out(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    count = unknown = 0
    wrong: list[object] = []
    for case in backend_cases():
        onnx.save(case.model, path)
        with closing(Document.open(path)) as document:
            fed = {name: known(item) for name, item in case.inputs.items()}
            evaluation = Evaluation(document, fed)
            for name, item in case.outputs.items():
                value = evaluation.value(document.main, name)
                if value.items is not None and len(value.items) != len(item):
                    wrong.append((case.name, name, len(value.items), len(item)))
                for claim, shape in claims(value, item):
                    count += 1
                    unknown += not claim.is_known
                    if not fits(claim.dims, shape):
                        wrong.append((case.name, name, claim.dims, shape))
                    elif claim.elements is not None and not _same_numbers(claim.elements, item):
                        wrong.append((case.name, name, claim.elements, item))
            wrong += [(case.name, demand.text) for demand in evaluation.demands.failed]
    assert not wrong
    assert count > 2000
    assert unknown < _MOST_UNKNOWN * count


def _same_numbers(elements: tuple[Size, ...], item: Any) -> bool:
    if isinstance(item, (list, onnx.TensorProto)):
        return True
    pairs = zip(elements, np.asarray(item).reshape(-1).tolist(), strict=True)
    return all(
        not isinstance(claim, (int, float)) or np.isclose(claim, actual, rtol=1e-2, equal_nan=True)
        for claim, actual in pairs
    )


class _Call(NamedTuple):
    case: Case
    node: onnx.NodeProto
    rule: Rule
    inputs: list[Value]
    version: int

    def wrong(
        self, inputs: list[Value], read: Callable[[Size], Size] = common, count: int = 1
    ) -> Iterator[tuple[object, ...]]:
        """Yield what the rule claims of an output that is not so."""
        with np.errstate(all="ignore"):
            made = self.rule(Call(self.node, inputs, Demands(count), self.version))
        for at, name in enumerate(self.node.output):
            if name not in self.case.outputs:
                continue
            value = made[at] if at < len(made) else NOTHING
            for claim, shape in claims(value, self.case.outputs[name]):
                dims = None if claim.dims is None else tuple(map(read, claim.dims))
                # Where data and weights do not fit, sizes are negative: no size.
                if not fits(dims, shape):
                    yield self.case.name, [given.dims for given in inputs], dims, shape


@pytest.fixture(scope="module")
def calls() -> list[_Call]:
    """Return the cases of one node that has a rule."""
    found = []
    for case in backend_cases():
        if len(case.model.graph.node) != 1:
            continue
        node = case.model.graph.node[0]
        domain = plain_domain(node.domain)
        rule = rule_of(domain, node.op_type)
        if rule is not None:
            versions = {plain_domain(one.domain): one.version for one in case.model.opset_import}
            given = [known(case.inputs[n]) if n in case.inputs else NOTHING for n in node.input]
            found.append(_Call(case, node, rule, given, versions[domain]))
    return found


@pytest.mark.broad
@pytest.mark.parametrize("part", first(1, range(2)))
def test_an_operand_that_is_not_known_makes_no_rule_fail_or_lie(
    calls: list[_Call], part: int
) -> None:
    assert len({call.node.op_type for call in calls[part::2]}) > 170
    wrong = [
        problem
        for call in calls[part::2]
        for at, value in enumerate(call.inputs)
        for less in less_known(value)
        for problem in call.wrong([*call.inputs[:at], less, *call.inputs[at + 1 :]])
    ]
    assert not wrong


def _is_followed(value: Value) -> bool:
    """Return whether it is a small tensor that may be a shape, an axis or the like."""
    return value.elements is not None and value.dims is not None and len(value.dims) <= 1


@pytest.mark.parametrize(
    "is_shared",
    [pytest.param(False, marks=pytest.mark.broad), True],
    ids=["each its own", "one a size"],
)
def test_names_in_place_of_sizes_say_the_same(calls: list[_Call], is_shared: bool) -> None:
    wrong: list[object] = []
    for call in calls:
        sizes: dict[str, int] = {}
        given: list[Value] = []
        for place, value in enumerate(call.inputs):
            if value.dims is None or value.is_sequence or _is_followed(value):
                given.append(value)
                continue
            names = [f"s{size}" if is_shared else f"d{place}_{axis}"
                     for axis, size in enumerate(value.dims)]  # fmt: skip
            sizes.update(zip(names, value.dims, strict=True))
            given.append(Value(tuple(map(symbol, names))))
        wrong += call.wrong(given, partial(value_at, sizes=sizes.__getitem__))
    assert not wrong


@pytest.mark.broad
def test_one_of_two_candidates_is_as_if_alone(calls: list[_Call]) -> None:
    wrong: list[object] = []
    for call in calls:
        given = [
            value
            if value.dims is None or value.is_sequence or _is_followed(value)
            else Value(tuple(np.array([size, size + 1]) for size in value.dims))
            for value in call.inputs
        ]
        wrong += call.wrong(
            given, lambda size: int(size[0]) if isinstance(size, np.ndarray) else size, 2
        )
    assert not wrong


_WITHOUT_RULE: dict[str, dict[str, str]] = {
    "": {},
    "com.microsoft": {
        "BeamSearch": "how long the sequences become is known after the run",
        "GreedySearch": "how long the sequences become is known after the run",
        "Sampling": "how long the sequences become is known after the run",
        "WhisperBeamSearch": "how long the sequences become is known after the run",
        "BifurcationDetector": "how many tokens are merged depends on the data",
        "WordConvEmbedding": "its definition does not say the shape",
    },
    "ai.onnx.ml": {
        "CastMap": "a map has no shape",
        "DictVectorizer": "a map has no shape",
        "ZipMap": "a map has no shape",
    },
}
"""Operators whose results have no shape before a run, and why."""


def _told(domain: str) -> set[str]:
    return {*RULES[domain], *_WITHOUT_RULE[domain], *(_ON_THE_WAY if not domain else ())}


def test_each_standard_operator_has_a_rule_or_a_reason() -> None:
    for domain in ("", "ai.onnx.ml"):
        names = {s.name for s in onnx.defs.get_all_schemas() if s.domain == domain}
        assert names - _told(domain) == set()


def test_each_kernel_of_onnx_runtime_has_a_rule_or_a_reason() -> None:
    state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    kernels = {
        kernel.op_name
        for kernel in state.get_all_opkernel_def()
        if kernel.domain == "com.microsoft" and kernel.provider == "CPUExecutionProvider"
    }
    if not kernels:
        pytest.skip("this ONNX Runtime does not tell its kernels")
    assert kernels - _told("com.microsoft") == set()


@pytest.mark.slow
def test_inference_of_onnx_says_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    wrong: list[object] = []
    count = 0
    for case in backend_cases():
        inferred = onnx.shape_inference.infer_shapes(case.model, data_prop=True)
        onnx.save(case.model, path)
        with closing(Document.open(path)) as document:
            shapes = {
                name: Value(known(item).dims, is_sequence=isinstance(item, list))
                for name, item in case.inputs.items()
            }
            evaluation = Evaluation(document, shapes)
            for info in (*inferred.graph.output, *inferred.graph.value_info):
                told = value_type_of(info.type)
                mine = evaluation.value(document.main, info.name).dims
                if told is None or told.dims is None or told.container or mine is None:
                    continue
                count += 1
                if len(mine) != len(told.dims) or any(
                    isinstance(a, int) and isinstance(b, int) and a != b
                    for a, b in zip(mine, told.dims, strict=True)
                ):
                    wrong.append((case.name, info.name, mine, told.dims))
    assert not wrong
    assert count > 2000
