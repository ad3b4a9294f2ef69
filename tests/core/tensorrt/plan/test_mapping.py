"""Which ONNX nodes the layers of an engine compute."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from dld_tui.core.model.document import Document
from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan
from dld_tui.core.tensorrt.plan.layer_names import ends_of
from dld_tui.core.tensorrt.plan.mapping import LayerNodes, map_plan, mapping_notes
from tests.support.models import BRANCHES, parse, write
from tests.support.plans import layer, named, plan
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


def test_a_layer_of_one_node(abcd: Document) -> None:
    found = mapped(abcd, "b")
    assert (names_of(found), found.how, found.confidence) == (["b"], "name", "exact")
    assert found.nodes[0].op_type == "Relu"
    assert found.nodes[0].node is abcd.main.nodes[1]


@pytest.mark.parametrize(
    ("name", "metadata", "nodes", "how", "confidence", "missing"),
    [
        ("a + b + c", "", "abc", "join", "exact", ()),
        ("PWN(a, b) + c", "", "abc", "join", "exact", ()),
        ("PWN(PWN(a, PWN(b)), c)", "", "abc", "join", "exact", ()),
        ("a + b || c", "", "abc", "join", "exact", ()),
        ("a + PWN(b) || PWN(c)", "", "abc", "join", "exact", ()),
        ("a + b [profile 1]", "", "ab", "join", "exact", ()),
        ("__myl_MulSum_myl4_1", "", "", "myelin", "none", ()),
        ("b_myl0_2", "", "b", "name", "likely", ()),
        ("c_1", "", "c", "name", "likely", ()),
        ("b + elsewhere", "", "b", "join", "likely", ("elsewhere",)),
        # Metadata count before the name, also of another model, and with other properties.
        ("__myl_Fused_myl0_1",
         "[ONNX Layer: b]\x1e[ONNX Layer: c]\x1f[ONNX Layer: a][ONNX Layer: b]", "bca",
         "metadata", "exact", ()),
        ("x", "[ONNX Layer: b]\x1f[ONNX Layer: elsewhere]", "b", "metadata", "likely",
         ("elsewhere",)),
        ("x", "[ONNX Layer: b | File net.py, line 3 | x = relu(x)]", "b", "metadata", "exact", ()),
    ],
)  # fmt: skip
def test_names_and_metadata_tell_the_nodes(
    abcd: Document, name: str, metadata: str, nodes: str, how: str, confidence: str,
    missing: tuple[str, ...],
) -> None:  # fmt: skip
    found = mapped(abcd, name, metadata)
    assert (names_of(found), found.how, found.confidence) == ([*nodes], how, confidence)
    assert (found.missing, found.truncated) == (missing, False)


@pytest.mark.parametrize(
    "name",
    [
        "Reformatting CopyNode for Input Tensor 0 to a + b",
        "Reformatting CopyNode for Output Tensor 1 to a + b",
        "a + b input reformatter 0",
        "a + b copy",
        "Reformatting CopyNode for Input Tensor 0 to a + b [profile 0]",
    ],
)
def test_copies_belong_to_the_layer_that_they_are_for(abcd: Document, name: str) -> None:
    found = mapped(abcd, name)
    assert names_of(found) == ["a", "b"]
    assert found.inserted
    assert not mapped(abcd, "a + b").inserted


def test_copies_of_bindings_belong_to_the_nodes_there(abcd: Document) -> None:
    found = mapped(abcd, "Reformatting CopyNode for Network Input v0")
    assert (names_of(found), found.inserted) == (["a"], True)
    assert names_of(mapped(abcd, "Reformatting CopyNode for Network Output v4")) == ["d"]


@pytest.mark.parametrize("middle", [False, True])
def test_cut_metadata_is_flagged(abcd: Document, middle: bool) -> None:
    text = "\x1f".join(["[ONNX Layer: a]", *["[ONNX Layer: b]"] * 400, "[ONNX Layer: d]"])
    cut = text[:2000] + " ... " + text[-2000:] if middle else text[:4000]
    found = mapped(abcd, "x", cut)
    assert found.truncated
    assert found.confidence == "likely"
    assert names_of(found) == (["a", "b", "d"] if middle else ["a", "b"])
    assert "was cut" in mapping_notes({0: found})[0]


def test_helpers_and_weights_are_no_nodes(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (float[1, 4] x) => (float[1, 4] y) <float[4] w.bias = {1, 2, 3, 4}>
    { [mul] m = Relu(x) [add] y = Add(m, w.bias) }
    """
    document = document_of(tmp_path, parse(text.replace("w.bias", "w_bias")))
    name = (
        "mul + w_bias + (Unnamed Layer* 21) [Shuffle] + unsqueeze_node_after_w_bias +"
        " (Unnamed Layer* 21) [Shuffle]_(Unnamed Layer* 21) [Shuffle]_output + ONNXTRT_Broadcast_4"
        " + add"
    )
    found = mapped(document, name)
    assert (names_of(found), found.confidence) == (["mul", "add"], "exact")
    beside = mapped(document, "copied_squeeze_after_add")
    assert (names_of(beside), beside.inserted) == (["add"], True)


def test_nodes_without_a_name_go_by_their_first_output(tmp_path: Path) -> None:
    document = document_of(tmp_path, chain("a", "", "c"))
    found = mapped(document, "x", "[ONNX Layer: node_of_v2]")
    assert found.nodes[0].node is document.main.nodes[1]
    assert found.confidence == "exact"
    assert names_of(mapped(document, "node_of_v2 + c")) == ["node_of_v2", "c"]


def test_nodes_of_subgraphs_have_their_scope(tmp_path: Path) -> None:
    document = Document.open(write(tmp_path, BRANCHES))
    found = mapped(document, "inner")
    assert found.nodes[0].scope == ("choose:then_branch",)
    assert found.nodes[0].label == "choose:then_branch › inner"


FUNCTIONS = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
net (float[4] x) => (float[4] y) {
    [one] a = local.Outer(x)
    [two] b = local.Outer(a)
    [act] y = Relu(b)
}
<opset_import: ["" : 18, "local" : 1], domain: "local">
Outer (i) => (o) { [mid] t = local.Inner(i) [act] o = Neg(t) }
<opset_import: ["" : 18], domain: "local">
Inner (i) => (o) { [act] o = Abs(i) }
"""


@pytest.mark.parametrize("frames", ["mid (Inner) | one (Outer)", "one (Outer) | mid (Inner)"])
def test_nodes_of_nested_functions(tmp_path: Path, frames: str) -> None:
    document = Document.open(write(tmp_path, FUNCTIONS))
    found = mapped(document, "x", f"[ONNX Layer: act | {frames}]")
    (ref,) = found.nodes
    assert (ref.op_type, ref.scope) == ("Abs", ("function local:Inner",))
    assert ref.calls == ("one", "mid")
    assert ref.label == "one › mid › act"
    assert found.confidence == "exact"


def test_nodes_of_branches_are_told_with_the_branch(tmp_path: Path) -> None:
    text = BRANCHES.replace("e = Mul(x, x)", "[inner] e = Mul(x, x)")
    document = Document.open(write(tmp_path, text))
    for branch, operator in (("yes (then_branch)", "Neg"), ("no (else_branch)", "Mul")):
        found = mapped(document, "x", f"[ONNX Layer: inner | {branch} | choose (If)]")
        assert [ref.op_type for ref in found.nodes] == [operator]
        assert found.confidence == "exact"
        assert found.nodes[0].calls == ()
    unnamed = mapped(document, "x", "[ONNX Layer: node_of_t | yes (then_branch) | choose (If)]")
    assert [ref.op_type for ref in unnamed.nodes] == ["Add"]
    output = mapped(document, "choose_OutputLayer")
    assert (names_of(output), output.confidence) == (["choose"], "likely")
    assert mapped(document, "a_InputLayer").nodes == ()


def test_instances_of_a_function_are_told_apart(tmp_path: Path) -> None:
    document = Document.open(write(tmp_path, FUNCTIONS))
    first, second, old = (
        mapped(document, "x", f"[ONNX Layer: act | {frame}]").nodes[0]
        for frame in ("one (Outer)", "two (Outer)", "Local Function: Outer")
    )
    assert first.node is second.node is old.node
    assert first != second
    assert (first.op_type, old.calls) == ("Neg", ())


def test_a_name_of_several_nodes_is_a_guess(tmp_path: Path) -> None:
    document = document_of(tmp_path, chain("twin", "twin", "c"))
    found = mapped(document, "twin")
    assert len(found.nodes) == 2
    assert found.confidence == "guess"


def test_names_without_a_model() -> None:
    found = mapped(None, "conv1.weight + QuantizeLinear_7 + conv1 + PWN(act(1)) || b_myl3_1")
    assert names_of(found) == ["QuantizeLinear_7", "conv1", "act(1)", "b"]
    assert (found.how, found.confidence) == ("join", "guess")
    assert names_of(mapped(None, "Reformatting CopyNode for Input Tensor 0 to pool")) == ["pool"]
    assert names_of(mapped(None, "/If_OutputLayer")) == ["/If"]
    assert names_of(mapped(None, "/a/Relu_output_0_InputLayer")) == []
    told = mapped(None, "x", "[ONNX Layer: n | call (F)]")
    assert (told.nodes[0].label, told.confidence) == ("call › n", "exact")


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


@pytest.mark.parametrize(
    "name",
    [
        "x_copy_input", "/neck/Concat_/neck/Resize_output_0_clone_0 copy", "onnx::Mul_4284",
        "data to nvm", "data copy finish", "(Unnamed Layer* 67) [Convolution]_output from nvm",
        "loss3/classifier finish", "/neck/Resize_output_0",
    ],
)  # fmt: skip
def test_names_that_name_no_node(name: str, abcd: Document) -> None:
    """They are of tensors, copies and transfers, with a model and without."""
    for document in (None, abcd):
        found = mapped(document, name)
        assert (found.nodes, found.missing) == ((), ())


def test_a_clone_of_a_node_and_the_nodes_of_a_dla(tmp_path: Path) -> None:
    assert names_of(mapped(None, "/q/QuantizeLinear_clone_1")) == ["/q/QuantizeLinear"]
    assert names_of(mapped(None, "{a,b/c,d}")) == ["a", "b/c", "d"]
    # A comma may be part of a name: the model tells.
    found = mapped(document_of(tmp_path, chain("a,b/c", "d")), "{a,b/c,d}")
    assert (names_of(found), found.confidence) == (["a,b/c", "d"], "exact")


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


@pytest.fixture
def document(tmp_path: Path) -> Document:
    onnx.save(parse(GRAPH), tmp_path / "m.onnx")
    return Document.open(tmp_path / "m.onnx")


def found_in(document: Document | None, *layers: str) -> list[list[str]]:
    mapping = map_plan(named(*layers), document)
    return [[ref.name for ref in mapping[index].nodes] for index in range(len(layers))]


def test_what_lies_on_paths_between_the_ends(document: Document) -> None:
    mapping = map_plan(named("{ForeignNode[first...join]}"), document)
    assert [ref.name for ref in mapping[0].nodes] == ["first", "left", "right", "join"]
    assert (mapping[0].how, mapping[0].confidence) == ("range", "likely")


@pytest.mark.parametrize(
    ("layers", "nodes"),
    [
        # Nodes that other layers are named after are theirs.
        (["left", "{ForeignNode[first...mix]}"], [["left"], ["first", "right", "join", "mix"]]),
        # An end may be weights or a join.
        (["{ForeignNode[w...join]}"], [["right", "join"]]),
        (["{ForeignNode[w + ONNXTRT_Broadcast_4...join]}"], [["right", "join"]]),
        (["{ForeignNode[mix]}"], [["mix"]]),
        (["{ForeignNode[left...join]} + last_1"], [["last", "left", "join"]]),
    ],
)
def test_the_nodes_of_ranges(document: Document, layers: list[str], nodes: list[list[str]]) -> None:
    assert found_in(document, *layers) == nodes


def test_ends_without_a_path_between_them_are_a_guess(document: Document) -> None:
    mapping = map_plan(named("{ForeignNode[left...right]}"), document)
    assert [ref.name for ref in mapping[0].nodes] == ["left", "aside", "right"]
    assert mapping[0].confidence == "guess"


def test_ends_that_the_model_lacks(document: Document) -> None:
    mapping = map_plan(named("{ForeignNode[ONNXTRT_a_8...ONNXTRT_a_9]}"), document)
    assert (mapping[0].nodes, mapping[0].how, mapping[0].confidence) == ((), "range", "none")
    half = map_plan(named("{ForeignNode[first...elsewhere]}"), document)
    assert ([ref.name for ref in half[0].nodes], half[0].confidence) == (["first"], "guess")


def test_without_a_model_only_the_ends_are_known() -> None:
    mapping = map_plan(named("{ForeignNode[/a/Conv.../b/Add]}_myl0_3"), None)
    assert [ref.name for ref in mapping[0].nodes] == ["/a/Conv", "/b/Add"]
    assert mapping[0].confidence == "guess"


def test_names_with_dots_in_them(tmp_path: Path) -> None:
    model = parse(GRAPH)
    model.graph.node[1].name = "le...ft"
    onnx.save(model, tmp_path / "m.onnx")
    document = Document.open(tmp_path / "m.onnx")
    assert found_in(document, "{ForeignNode[le...ft...join]}") == [["le...ft", "join"]]


def test_nodes_out_of_order_come_in_an_order_that_runs(tmp_path: Path) -> None:
    model = parse(GRAPH)
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, tmp_path / "m.onnx")
    document = Document.open(tmp_path / "m.onnx")
    (names,) = found_in(document, "{ForeignNode[first...join]}")
    assert sorted(names) == ["first", "join", "left", "right"]
    assert (names[0], names[-1]) == ("first", "join")


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
