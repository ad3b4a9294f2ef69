"""Which ONNX nodes the layers of an engine compute."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from dld_tui.core.model.document import Document
from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan
from dld_tui.core.tensorrt.plan.layer_names import ends_of
from dld_tui.core.tensorrt.plan.mapping import LayerNodes, map_plan, mapping_notes
from tests.support.models import BRANCHES, parse
from tests.support.plans import layer, named, plan
from tests.support.recorded import Recorded
from tests.support.work import steps_in


def chain(*names: str) -> onnx.ModelProto:
    """Return a model of Relu nodes one after another; value ``vN`` comes out of node N."""
    nodes = [
        helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], name=name)
        for i, name in enumerate(names)
    ]
    ends = [
        helper.make_tensor_value_info(value, TensorProto.FLOAT, [1])
        for value in ("v0", f"v{len(names)}")
    ]
    return helper.make_model(helper.make_graph(nodes, "chain", ends[:1], ends[1:]))


def document_of(folder: Path, model: onnx.ModelProto) -> Document:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return Document.open(path)


def mapped(document: Document | None, name: str, metadata: str = "") -> LayerNodes:
    return map_plan(named(name, metadata=[metadata]), document)[0]


def names_of(found: LayerNodes) -> list[str]:
    return [ref.name for ref in found.nodes]


@pytest.fixture
def abcd(tmp_path: Path) -> Document:
    return document_of(tmp_path, chain("a", "b", "c", "d"))


GRAPH = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}>
{
    [first] a = Relu(x)
    [left] l = Neg(a)
    [aside] s = Abs(x)
    [right] r = Mul(a, w)
    [join] j = Add(l, r)
    [mix] m = Add(j, s)
    [last] y = Sigmoid(m)
}
"""
FUNCTIONS = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
net (float[4] x) => (float[4] y) {
    [one] a = local.Outer(x)
    [two] b = local.Outer(a)
    [act] y = Relu(b)
}
<opset_import: ["" : 18, "local" : 1], domain: "local">
Outer (i) => (o) { [mid] t = local.Inner(i) [act] o = Neg(t) [end] u = Exp(o) [end] v = Exp(o) }
<opset_import: ["" : 18], domain: "local">
Inner (i) => (o) { [act] o = Abs(i) [deep] p = Exp(o) [w] q = Sin(o) }
"""
HELPERS = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[1, 4] x) => (float[1, 4] y) <float[4] w_bias = {1, 2, 3, 4}, float[4] z = {1, 2, 3, 4}>
{
    [const] k = Neg(z)
    [mul] m = Relu(x)
    [add] n = Add(m, w_bias)
    [data] d = Constant<value = float[4] {1, 2, 3, 4}>()
    [sum] y = Add(n, d)
}
"""


def reordered() -> onnx.ModelProto:
    model = parse(GRAPH)
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def renamed(text: str, names: dict[str, str]) -> onnx.ModelProto:
    """Return a model with names of nodes that no text has."""
    model = parse(text)
    for node in model.graph.node:
        node.name = names.get(node.name, node.name)
    return model


CUT = "\x1f".join(["[ONNX Layer: a]", *["[ONNX Layer: b]"] * 400, "[ONNX Layer: d]"])
INNER = BRANCHES.replace("e = Mul(x, x)", "[inner] e = Mul(x, x)")
Case: TypeAlias = "str | tuple[str, str]"
"""The name of a layer, perhaps with its metadata."""


def told_by(*metadata: str) -> list[list[Case]]:
    return [[("x", f"[ONNX Layer: {text}]")] for text in metadata]


CASES: dict[str, tuple[onnx.ModelProto | None, list[list[Case]]]] = {
    "a chain": (chain("a", "b", "c", "d"), [
        ["b"], ["a + b + c"], ["PWN(a, b) + c"], ["PWN(PWN(a, PWN(b)), c)"], ["a + b || c"],
        ["a + PWN(b) || PWN(c)"], ["a + b [profile 1]"], ["__myl_MulSum_myl4_1"], ["b_myl0_2"],
        ["c_1"], ["b + elsewhere"], ["elsewhere"], ["{a,c}"],
        ["Reformatting CopyNode for Input Tensor 0 to a + b"],
        ["Reformatting CopyNode for Output Tensor 1 to a + b"], ["a + b input reformatter 0"],
        ["a + b copy"], ["Reformatting CopyNode for Input Tensor 0 to a + b [profile 0]"],
        ["Reformatting CopyNode for Network Input v0"],
        ["Reformatting CopyNode for Network Output v4"],
        ["Reformatting CopyNode for Network Output none"], ["a_InputLayer"], ["a_OutputLayer"],
        ["x_copy_input"], ["/neck/Concat_/neck/Resize_output_0_clone_0 copy"],
        ["onnx::Mul_4284"], ["data to nvm"], ["data copy finish"],
        ["(Unnamed Layer* 67) [Convolution]_output from nvm"], ["loss3/classifier finish"],
        ["/neck/Resize_output_0"], ["v2"],
        [("x", "[ONNX Layer: b]\x1e[ONNX Layer: c]\x1f[ONNX Layer: a][ONNX Layer: b]")],
        [("x", "[ONNX Layer: b]\x1f[ONNX Layer: elsewhere]")],
        [("x", "[ONNX Layer: elsewhere]")],
        [("x", "[ONNX Layer: b | File net.py, line 3 | x = relu(x)]")],
        [("x", "[ONNX Layer: b | call (F)]")],
        [("x", CUT[:4000])], [("x", CUT[:2000] + " ... " + CUT[-2000:])],
        ["a", "{ForeignNode[a...c]}", "{ForeignNode[c...d]}"], ["{ForeignNode[a...b]}", "c"],
        ["{ForeignNode[d...a]}"], ["{ForeignNode[b...b]}"],
    ]),
    "twins": (chain("twin", "twin", "c", *["many"] * 9), [
        ["twin"], ["twin + c"], ["many"], ["{ForeignNode[twin...c]}"],
        [("x", "[ONNX Layer: twin]")], [("x", "[ONNX Layer: many]")],
    ]),
    "without a name": (chain("a", "", "c"), [
        [("x", "[ONNX Layer: node_of_v2]")], ["node_of_v2 + c"], ["node_of_v9"], ["_1"],
    ]),
    "commas": (chain("a,b/c", "d"), [["{a,b/c,d}"], ["a,b/c"]]),
    "names like joins": (chain("a", "b", "a + b", "c + d", "PWN(a)", "c"), [
        ["a + b"], ["c + d"], ["a + b + c"], ["PWN(a)"], ["c + d + a"], ["a + b || c + d"],
    ]),
    "helpers": (renamed(HELPERS, {"data": "data/out_1", "sum": "/a/Add"}), [
        ["mul + w_bias + (Unnamed Layer* 21) [Shuffle] + unsqueeze_node_after_w_bias +"
         " (Unnamed Layer* 21) [Shuffle]_(Unnamed Layer* 21) [Shuffle]_output +"
         " ONNXTRT_Broadcast_4 + add"],
        ["copied_squeeze_after_add"], ["copied_squeeze_after_elsewhere"], ["k + add"], ["const"],
        ["data/out_1"], ["d"], ["w_bias"], ["/a/Add_output_0"], ["/a/Add_myl0_1"],
        ["{ForeignNode[mul.../a/Add]}"], ["{ForeignNode[w_bias...add]}"],
        ["{ForeignNode[const...data/out_1]}"],
    ]),
    "branches": (parse(INNER), [
        ["inner"], *told_by(*(
            f"inner | {branch} | choose (If)"
            for branch in ("yes (then_branch)", "no (else_branch)", "no (other)")
        )),
        [("x", "[ONNX Layer: node_of_t | yes (then_branch) | choose (If)]")],
        [("x", "[ONNX Layer: inner | choose (If)]")],
        [("x", "[ONNX Layer: inner | choose (Loop)]")],
        [("x", "[ONNX Layer: inner | yes (then_branch)]")], ["choose_OutputLayer"],
        ["{ForeignNode[inner...end]}"], ["{ForeignNode[choose...inner]}"],
    ]),
    "functions": (parse(FUNCTIONS), [
        *told_by(
            "act", "act | mid (Inner) | one (Outer)", "act | one (Outer) | mid (Inner)",
            "act | one (Outer)", "act | two (Outer)", "act | Local Function: Outer",
            "act | one (Inner)", "act | none (Outer)", "act | none (None)", "deep",
            "deep | mid (Inner) | two (Outer)", "deep | one (Outer)", "end | one (Outer)", "end",
            "mid | one (Outer)", "act | mid (Inner) | mid (Inner)", "one",
            "elsewhere | one (Outer)", "w | mid (Inner) | one (Outer)",
        ),
        ["act"], ["deep"], ["{ForeignNode[mid...end]}"], ["{ForeignNode[one...two]}"],
    ]),
    "paths": (parse(GRAPH), [
        ["{ForeignNode[first...join]}"], ["left", "{ForeignNode[first...mix]}"],
        ["left", "right", "{ForeignNode[left...right]}"],
        ["left copy", "{ForeignNode[first...join]}"], ["{ForeignNode[w...join]}"],
        ["{ForeignNode[w + ONNXTRT_Broadcast_4...join]}"], ["{ForeignNode[mix]}"],
        ["{ForeignNode[left...join]} + last_1"], ["{ForeignNode[left...right]}"],
        ["{ForeignNode[ONNXTRT_a_8...ONNXTRT_a_9]}"], ["{ForeignNode[first...elsewhere]}"],
        ["{ForeignNode[first...left]} + {ForeignNode[mix...last]}_myl0_1"],
        ["{ForeignNode[left...join]} copy"], ["{ForeignNode[elsewhere]}"],
    ]),
    "out of order": (reordered(), [
        ["{ForeignNode[first...join]}"], ["{ForeignNode[left...last]}"],
    ]),
    "dots": (renamed(GRAPH, {"left": "le...ft"}), [
        ["{ForeignNode[le...ft...join]}"], ["{ForeignNode[le...ft]}"],
    ]),
    "no model": (None, [
        ["conv1.weight + QuantizeLinear_7 + conv1 + PWN(act(1)) || b_myl3_1"],
        ["Reformatting CopyNode for Input Tensor 0 to pool"], ["/If_OutputLayer"],
        ["Reformatting CopyNode for Network Input x"], ["/a/Relu_output_0_InputLayer"],
        [("x", "[ONNX Layer: n | call (F)]")], [("x", "[ONNX Layer: n | in (G) | call (F)]")],
        ["{ForeignNode[/a/Conv.../b/Add]}_myl0_3"], ["{ForeignNode[a...a]}"],
        ["/q/QuantizeLinear_clone_1"], ["{a,b/c,d}"], ["onnx::Mul_4284"], ["data to nvm"],
        ["x_copy_input"], ["copied_squeeze_after_add"], ["copied_squeeze_after_w.bias"],
        ["squeeze_after_(Unnamed Layer* 21) [Shuffle]"], ["__myl_MulSum_myl4_1"], ["alone"],
    ]),
}  # fmt: skip


def told(found: LayerNodes) -> str:
    nodes = ", ".join(f"{ref.label}={ref.op_type or '?'}" for ref in found.nodes)
    flags = [name for name in ("inserted", "truncated") if getattr(found, name)]
    lacking = [f"without {', '.join(found.missing)}"] if found.missing else []
    return "; ".join([nodes or "nothing", f"{found.how} {found.confidence}", *flags, *lacking])


def short(case: Case) -> str:
    text = case if isinstance(case, str) else f"{case[0]} {case[1]!r}"
    return text if len(text) < 200 else f"{text[:40]}… of {len(text)}"


def test_whole_mappings(tmp_path: Path, recorded: Recorded) -> None:
    """The nodes of layers by names, joins, ranges and metadata, with a model and without."""
    texts = {}
    for title, (model, layers) in CASES.items():
        document = None if model is None else document_of(tmp_path, model)
        lines = []
        for together in layers:
            pairs = [(case, "") if isinstance(case, str) else case for case in together]
            engine = named(*(name for name, _ in pairs), metadata=[more for _, more in pairs])
            mapping = map_plan(engine, document)
            assert [*mapping] == [*range(len(together))]
            lines += [f"{short(case)}: {told(mapping[at])}" for at, case in enumerate(together)]
            notes = mapping_notes(mapping)
            lines += [f"  {' | '.join(notes)}"] if notes else []
            if document is not None:
                assert all(ref.node is not None for of in mapping.values() for ref in of.nodes)
        texts[title] = "\n".join(lines)
    recorded("whole_mappings", texts)


@pytest.mark.broad
def test_hostile_names_end_quickly(abcd: Document) -> None:
    for name in ("PWN(" * 50_000, "a + " * 50_000, "[profile 1]" * 5_000, ")" * 9, ""):
        mapped(abcd, name)
    assert mapped(abcd, "", "[ONNX Layer: " * 10_000).nodes == ()


_NAMES = st.text(st.sampled_from("abc/_.:0(),+| []"), min_size=1, max_size=12).map(str.strip)


@st.composite
def joins(draw: st.DrawFn) -> tuple[list[str], str, list[str]]:
    """Return names of nodes, the name of a layer made of some, and which ones."""
    letters = _NAMES.filter(lambda name: any(one.isalnum() for one in name))
    names = draw(st.lists(letters, min_size=1, max_size=6, unique=True))
    # What can be read in two ways is not asked for.
    names = [n for n in names if not any(o != n and o in n for o in names)]
    chosen = draw(st.permutations(names).map(lambda p: p[: len(p) // 2 + 1]))
    text = chosen[0]
    for name in chosen[1:]:
        form = draw(st.sampled_from(["{} + {}", "{} || {}", "PWN({}, {})", "{} + PWN({})"]))
        text = form.format(text, name)
    return names, text, chosen


@pytest.mark.broad
@settings(max_examples=50)
@given(case=joins())
def test_joins_of_any_names_map_back(
    case: tuple[list[str], str, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    names, text, chosen = case
    document = document_of(tmp_path_factory.mktemp("model"), chain(*names))
    found = mapped(document, text)
    assert set(names_of(found)) == set(chosen)
    assert found.missing == ()
    document.close()


def test_folded_layers_are_mapped_too(abcd: Document) -> None:
    kept, folded = layer(0, "a"), layer(1, "b", type="NoOp")
    whole = plan([kept])
    from dataclasses import replace

    mapping = map_plan(replace(whole, all_layers=(kept, folded)), abcd)
    assert {index: names_of(found) for index, found in mapping.items()} == {0: ["a"], 1: ["b"]}


def chain_of_ranges(path: Path, count: int) -> tuple[EnginePlan, Document]:
    nodes = [
        helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], name=f"/block{i}/Relu")
        for i in range(count)
    ]
    ends = [
        helper.make_tensor_value_info(value, TensorProto.FLOAT, [1])
        for value in ("v0", f"v{count}")
    ]
    graph = helper.make_graph(nodes, "long", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph), path)
    layers = [
        f"{{ForeignNode[/block{i}/Relu.../block{i + 3}/Relu]}}"
        if i % 8
        else f"/block{i}/Relu + PWN(/block{i + 1}/Relu, /block{i + 2}/Relu) + /block{i + 3}/Relu"
        for i in range(0, count, 4)
    ]
    return named(*layers), Document.open(path)


def test_the_work_grows_with_the_layers_and_no_faster(tmp_path: Path) -> None:
    work = []
    for count in (400, 800):
        plan, document = chain_of_ranges(tmp_path / f"{count}.onnx", count)
        work.append(steps_in(map_plan, plan, document))
        mapping = map_plan(plan, document)
        assert sum(len(found.nodes) for found in mapping.values()) == count
    assert work[1] < 2.5 * work[0]


@pytest.mark.parametrize(
    ("inner", "ends"),
    [
        ("a...b", [("a", "b")]), ("a...b...c", [("a", "b...c"), ("a...b", "c")]),
        ("a....b", [("a", ".b"), ("a.", "b")]), ("a...", []), ("...b", []), ("a..b", []),
    ],
)  # fmt: skip
def test_a_range_is_split_where_both_ends_have_a_name(
    inner: str, ends: list[tuple[str, str]]
) -> None:
    assert ends_of(inner) == ends
