"""The explorer's rows, without a widget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import onnx
import pytest

from dld_tui.core import fmt
from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.edits.model_swap import keep_model
from dld_tui.core.text import cell_width
from dld_tui.widgets.explorer import state
from dld_tui.widgets.explorer.branches import Branch, ExplorerEntry, Sort, View
from dld_tui.widgets.explorer.node_filter import NodeFilter, parse_conditions
from dld_tui.widgets.explorer.rows import ExplorerRows, view_title
from dld_tui.widgets.explorer.state import ExplorerModel, model_anew
from dld_tui.widgets.shell import glyphs
from tests.support import models
from tests.support.graph_panes import painted
from tests.support.recorded import Recorded

TREE = """
<ir_version: 10, opset_import: ["" : 18]>
tree (float[N] x) => (float[N] y)
{
    ["/enc/0/conv"] a = Relu(x)
    ["/enc/0/act"] b = Relu(a)
    ["/enc/1/conv"] c = Abs(b)
    ["/enc/1/act"] d = Relu(c)
    ["/head"] e = Neg(d)
    ["/dec/out/last"] y = Sigmoid(e)
}
"""


TYPED = """
<ir_version: 10, opset_import: ["" : 18]>
typed (float[N, 4] x, bool c) => (float[N, 4] y)
<float[N, 4] h, float16[2, 3, 4, 5] q, int8 s>
{
    ["/stem"] h = Neg(x)
    ["/enc/a rather long name of a node"] q = Cast<to = 10>(h)
    ["/enc/scalar"] s = Convert(q)
    ["/enc/unknown"] u = Custom(s)
    ["choose"] y = If(c) <
        then_branch = then () => (float[N, 4] t) { ["inner"] t = Neg(h) },
        else_branch = other () => (float[N, 4] e) { e = Mul(h, h) }>
    ["sink"] = Sink(u)
}
"""


@pytest.fixture
def explorer(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[state.ExplorerModel]:
    text = getattr(request, "param", TREE)
    document = Document.open(models.write(tmp_path, text))
    yield state.ExplorerModel(document)
    document.close()


def shown(model: state.ExplorerModel) -> list[str]:
    """Return the rows as text: two blanks a level, a number behind a branch."""
    rows = model.rows()
    lines = []
    for item, depth, start in zip(rows.items, rows.depths, rows.starts, strict=True):
        text = f"{item.label} {item.count}" if isinstance(item, Branch) else item.label[start:]
        lines.append("  " * depth + text)
    return lines


def unfold_all(model: state.ExplorerModel) -> None:
    for _ in range(20):
        for item in model.rows().items:
            if model.can_unfold(item):
                model.set_unfolded(item, True)


def node(model: state.ExplorerModel, name: str) -> Node:
    return next(n for s in model.document.scopes() for n in s.nodes if n.name == name)


def test_figures_are_a_column_and_an_order(explorer: state.ExplorerModel) -> None:
    explorer.view, explorer.sort = View.FILE, Sort.FIGURE
    plain = [line.strip() for line in shown(explorer)[1:]]
    assert plain[0] == "/enc/0/conv"  # no figures: the order of the file
    nodes = explorer.document.main.nodes
    values = {nodes[1]: 7.0, nodes[4]: 2_000_000.0}
    explorer.set_figures(state.Figures("FLOPs", values, fmt.short_count))
    assert [line.strip() for line in shown(explorer)[1:3]] == ["/head", "/enc/0/act"]
    rows = ExplorerRows(explorer.rows(), lambda item: None, explorer, lambda entry: False)
    for width in (33, 34, 62, 120):
        lines = ["".join(text for text, _ in rows.line(at, width)) for at in range(1, 4)]
        assert {cell_width(line) for line in lines} == {width}
        assert ("2 M" in lines[0]) == (" 7 " in lines[1] + " ") == (width > 33)
        header = "".join(text for text, _ in rows.header("By scope", width))
        assert ("FLOPs" in header) == (width > 33)
    explorer.set_figures(None)
    assert [line.strip() for line in shown(explorer)[1:]] == plain


@pytest.mark.parametrize("explorer", [TYPED], indirect=True, ids=["typed"])
def test_rows_at_each_width(explorer: state.ExplorerModel, recorded: Recorded) -> None:
    """With types that are known, of before an edit, and unknown; with what there are columns of."""
    document = explorer.document
    stem, other = document.main.nodes[:2]
    document.apply("set_precision", nodes=[[[], stem.name]], precision="fp16")
    document.main.stale.add(stem.outputs[0])
    document.shown_types.clear()
    unfold_all(explorer)
    texts = {}
    for title, figures in (
        ("plain", None),
        ("with figures", state.Figures("FLOPs a long title", {stem: 2e6}, fmt.short_count)),
    ):
        explorer.set_figures(figures)
        rows = ExplorerRows(
            explorer.rows(), explorer.is_unfolded, explorer,
            lambda entry: explorer.figures is not None and entry.node is other,
        )  # fmt: skip
        for width in (24, 33, 34, 62, 120):
            lines = [
                rows.header("By scope", width),
                *(rows.line(at, width) for at in range(len(rows))),
            ]
            texts[f"{title}, {width}"] = painted(lines)
    recorded("rows_of_explorer", texts)


def test_reversed_trees_and_types_are_the_other_way_round(explorer: state.ExplorerModel) -> None:
    # Reversed trees reverse folders and what is in them.
    explorer.sort, explorer.descending = Sort.NAME, True
    unfold_all(explorer)
    assert [line.strip() for line in shown(explorer)] == [
        "main 6", "/head", "/enc 4", "1 2", "conv", "act", "0 2", "conv", "act", "/dec/out/last",
    ]  # fmt: skip
    titles = {
        (view, sort): [view_title(view, sort), view_title(view, sort, True)]
        for view in View
        for sort in Sort
    }
    up, down = glyphs.current().up, glyphs.current().down
    for view in (View.TREE, View.TYPE, View.FILE):
        name = f"{view.value} {glyphs.current().unfolded}"
        assert titles[view, Sort.FILE] == [name, f"{name} reversed {down}"]
        assert titles[view, Sort.NAME] == [f"{name} by name {up}", f"{name} by name {down}"]
        is_most = view is View.TYPE
        assert titles[view, Sort.TYPE] == (
            [f"{name} most first", f"{name} fewest first {down}"]
            if is_most
            else [f"{name} by type {up}", f"{name} by type {down}"]
        )
    by_name = f"{View.NAME.value} {glyphs.current().unfolded}"
    assert titles[View.NAME, Sort.FILE] == [f"{by_name} {up}", f"{by_name} {down}"]
    # Reversed types are the fewest first.
    explorer.view, explorer.sort, explorer.descending = View.TYPE, Sort.TYPE, True
    unfold_all(explorer)
    lines = [line.strip() for line in shown(explorer)]
    assert [line for line in lines if line[-2] == " "] == [
        "main 6", "Sigmoid 1", "Neg 1", "Abs 1", "Relu 3",
    ]  # fmt: skip


def test_file_order_is_the_order_of_the_file(explorer: state.ExplorerModel) -> None:
    explorer.view = View.FILE
    assert [line.strip() for line in shown(explorer)[1:]] == [
        entry.label for entry in explorer.entries(explorer.root)
    ]


@pytest.mark.parametrize("explorer", [models.BRANCHES], indirect=True)
def test_a_folder_counts_what_is_in_subgraphs(explorer: state.ExplorerModel) -> None:
    explorer.document.apply("rename_node", scope=[], node="choose", name="/a/b")
    explorer.document.apply("rename_node", scope=[], node="pre", name="/a/c")
    assert shown(explorer)[1] == "  /a 6"


CONSTANTS = """
<ir_version: 10, opset_import: ["" : 18]>
constants (float[N] x) => (float[N] y)
{
    [one] c = Constant <value_float = 1.0> ()
    [two] d = Constant <value_float = 2.0> ()
    [sum] s = Add(c, d)
    [out] y = Mul(x, s)
}
"""


@pytest.mark.parametrize("explorer", [CONSTANTS], indirect=True)
def test_constants_are_hidden_counted_and_shown_one_by_one(explorer: state.ExplorerModel) -> None:
    # One constant is shown or hidden for itself.
    one = [node(explorer, "one")]
    explorer.set_constants(one, True)
    assert shown(explorer) == ["main 3", "  one", "  sum", "  out", "Constant 1"]
    explorer.set_constants(one, False)
    assert shown(explorer) == ["main 2", "  sum", "  out", "Constant 2"]
    explorer.set_show_constants(True)
    explorer.set_constants(one, False)
    assert shown(explorer) == ["main 3", "  two", "  sum", "  out", "Constant 1"]
    explorer.set_show_constants(True)  # all of them again
    assert shown(explorer) == ["main 4", "  one", "  two", "  sum", "  out"]
    explorer.set_show_constants(False)
    assert shown(explorer) == ["main 2", "  sum", "  out", "Constant 2"]
    assert (explorer.total, explorer.shown, explorer.hidden_constants) == (4, 2, 2)


def test_filters_keep_what_fits_and_leave_the_folds(explorer: state.ExplorerModel) -> None:
    # Filter keeps nodes with every word in type or name.
    explorer.set_text("RELU enc")
    assert shown(explorer) == [
        "main 3", "  /enc 3", "    0 2", "      conv", "      act", "    1/act",
    ]  # fmt: skip
    explorer.set_text("nothing like it")
    assert shown(explorer) == ["main 0", "No node matches the filter. Esc clears it. 0"]
    # Clearing the filter restores what was folded.
    explorer.set_text("")
    before = shown(explorer)
    explorer.set_text("conv")
    explorer.rows()
    explorer.set_text("")
    assert shown(explorer) == before
    # Advanced filter and text work together.
    chosen = NodeFilter(frozenset({("", "Relu")}), parse_conditions("name contains enc/0"))
    explorer.set_condition(chosen)
    assert len(explorer.rows()) == 4
    assert explorer.shown == 2
    explorer.set_text("act")
    assert len(explorer.rows()) == 2
    assert explorer.shown == 1


def test_reveal_unfolds_what_hides_a_node_and_says_when_a_filter_does(
    explorer: state.ExplorerModel,
) -> None:
    # Reveal unfolds what hides a node.
    wanted = node(explorer, "/enc/1/act")
    for view in View:
        explorer.view = view
        for item in explorer.rows().items:
            explorer.set_unfolded(item, False)
        assert state.reveal(explorer, wanted)
        assert any(item.key is wanted for item in explorer.rows().items), view
    # Reveal says when a filter hides the node.
    explorer.set_text("Sigmoid")
    assert not state.reveal(explorer, node(explorer, "/enc/1/act"))
    # Nor is what is in another root revealed.
    with closing(Document(models.parse(models.BRANCHES))) as document:
        chosen = document.main.find("choose")
        assert chosen is not None
        one, other = chosen.subgraphs()
        inside = ExplorerModel(document, one)
        assert state.reveal(inside, one.nodes[0])
        assert not state.reveal(inside, other.nodes[0])
        assert not state.reveal(inside, chosen)


@pytest.mark.parametrize("explorer", [models.BRANCHES], indirect=True)
def test_subgraphs_are_branches_below_their_node(explorer: state.ExplorerModel) -> None:
    # Reveal goes into subgraphs.
    wanted = node(explorer, "inner")
    for item in explorer.rows().items:
        explorer.set_unfolded(item, False)
    assert state.reveal(explorer, wanted)
    assert any(item.key is wanted for item in explorer.rows().items)
    # Filter shows the holder of a match but does not count it.
    explorer.set_text("inner")
    assert shown(explorer) == ["main 1", "  choose", "    then_branch 1", "      inner"]
    explorer.view = View.NAME
    assert shown(explorer) == ["main 1", "  inner"]
    explorer.set_text("")
    # By name lists nodes of subgraphs among the others.
    names = [line.strip() for line in shown(explorer)[1:]]
    assert names == ["choose", "e", "inner", "pre", "shadow", "t"]
    # Subgraphs are branches below their node.
    explorer.view = View.FILE
    unfold_all(explorer)
    assert shown(explorer) == [
        "main 6", "  pre", "  choose", "    then_branch 2", "      inner", "      t",
        "    else_branch 2", "      shadow", "      e",
    ]  # fmt: skip


@pytest.mark.parametrize("explorer", [TREE.replace('["/head"] ', "")], indirect=True)
def test_nodes_without_a_name_are_called_by_their_output(explorer: state.ExplorerModel) -> None:
    entry = explorer.entry(explorer.document.main.nodes[4])
    assert (entry.label, entry.named) == ("e", False)


def test_unfold_to_fill_opens_the_outer_branches_first(tmp_path: Path) -> None:
    model = _generated(tmp_path, 300)
    state.unfold_to_fill(model, 12)
    lines = shown(model)
    assert len(lines) <= 12
    assert lines[:3] == ["main 300", "  /layer_0 60", "  /layer_1 60"]
    model.document.close()


def test_hostile_names_make_rows(tmp_path: Path) -> None:
    names = [
        "/blk[0]/Conv [/weight]", "\x1b]0;x\x07/a", "/" * 5000, "x" * 100_000, "层/名/前",
        "a//b", "/",
    ]  # fmt: skip
    proto = onnx.ModelProto(ir_version=10)
    for at, name in enumerate(names * 2):
        proto.graph.node.add(op_type="Relu", name=name, input=["x"], output=[f"o{at}"])
    proto.graph.output.add(name="o0")
    path = tmp_path / "hostile.onnx"
    path.write_bytes(proto.SerializeToString())
    document = Document.open(path)
    model = state.ExplorerModel(document)
    for view in View:
        model.view = view
        unfold_all(model)
        labels = [item.label for item in model.rows().items]
        assert not any("\x1b" in label for label in labels)
        entries = [item for item in model.rows().items if isinstance(item, ExplorerEntry)]
        assert len(entries) == len(names) * 2
    document.close()


def _generated(tmp_path: Path, count: int) -> state.ExplorerModel:
    proto = onnx.ModelProto(ir_version=10)
    proto.opset_import.add(version=18)
    for at in range(count):
        name = f"/layer_{at // 60}/Conv_{at}"
        proto.graph.node.add(op_type="Relu", name=name, input=[f"v{at}"], output=[f"v{at + 1}"])
    path = tmp_path / "generated.onnx"
    path.write_bytes(proto.SerializeToString())
    return state.ExplorerModel(Document.open(path))


DEEP = """
<ir_version: 10, opset_import: ["" : 18]>
deep (float[N, 3, 8, 8] x, int64[2] at) => (float[N, 4, 8, 8] y)
<float[4, 3, 3, 3] w, float[1] tenth = {0.1}>
{
    [conv] c = Conv <pads = [1, 1, 1, 1], auto_pad = "NOTSET"> (x, w)
    [cast] i = Cast <to = 10> (c)
    [soft] s = Softmax <axis = 2> (c)
    [two] two = Constant <value = float {2.0}> ()
    [scale] t = Mul (s, tenth)
    [double] y = Mul (t, two)
}
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[n,3,8,8]", ["conv"]), ("nx3x8x8", ["conv"]), ("4x3x3x3", ["conv"]),
        ("f32[4,3", ["conv"]), ("axis=2", ["soft"]), ("=float16", ["cast"]),
        ("to=float16", ["cast"]), ("pads=[1,1,1,1]", ["conv"]), ("=0.1", ["scale"]),
        ("=2", ["soft", "double"]), ("auto_pad=notset", ["conv"]), ("mul =2.0", ["double"]),
        ("7x7", []), ("axis=3", []), ("soft", ["soft"]),
    ],
)  # fmt: skip
def test_a_search_finds_shapes_and_values(text: str, names: list[str]) -> None:
    document = Document(models.parse(DEEP))
    listing = state.ExplorerModel(document)
    listing.set_text(text)
    found = [node.name for node in document.main.nodes if listing.passes(node)]
    assert found == names


NESTED = """
<ir_version: 10, opset_import: ["" : 18, "here" : 1]>
nested (float[N] x, bool choice) => (float[N] y)
{
    [partQone] a = Relu(x)
    [partQtwo] b = here.Twice(a)
    [otherQone] c = Neg(b)
    [otherQtwo] d = Neg(c)
    [choose] y = If (choice) <
        then_branch = yes () => (float[N] t) { [inQleft] s = Relu(d) [inQright] t = Relu(s) },
        else_branch = no () => (float[N] e) { [right] e = Neg(d) }
    >
}
<domain: "here", opset_import: ["" : 18]>
Twice (p) => (q) { [fQone] r = Add(p, p) [fQtwo] q = Neg(r) }
"""


def write(folder: Path, text: str, name: str = "model.onnx") -> Path:
    """Write a model; the texts of models have no slash in a name."""
    path = models.write(folder, text, name)
    path.write_bytes(path.read_bytes().replace(b"Q", b"/"))
    return path


def folds(model: ExplorerModel) -> list[tuple[str, bool]]:
    items = model.rows().items
    return [(item.label, model.is_unfolded(item)) for item in items if model.can_unfold(item)]


def test_branches_stay_folded_and_unfolded_by_their_names(tmp_path: Path) -> None:
    path = write(tmp_path, NESTED)
    changed = NESTED.replace("[otherQtwo] d = Neg(c)", "[more] m = Neg(c) [otherQtwo] d = Neg(m)")
    made = write(tmp_path, changed, "made.onnx")
    with closing(Document.open(path)) as document:
        explorer = ExplorerModel(document)
        for row in range(30):
            items = explorer.rows().items
            if row < len(items) and explorer.can_unfold(items[row]):
                explorer.set_unfolded(items[row], row % 2 == 0)
        explorer.set_constants([document.main.nodes[0], document.main.nodes[2]], True)
        before = folds(explorer)
        assert {unfolded for _, unfolded in before} == {True, False}
        document.apply("replace_model", model=keep_model(document, made), title="convert it")
        again = model_anew(explorer)
        assert folds(again) == before
        kept = {document.main.nodes[0], document.main.nodes[2]}
        assert {entry.name for entry in again.exceptions} == {entry.name for entry in kept}
        assert again.exceptions <= set(document.main.nodes)
        assert [entry.label for entry in again.entries(document.main)].count("more") == 1
        document.undo()
        assert folds(model_anew(again)) == before


def test_what_is_gone_is_forgotten(tmp_path: Path) -> None:
    made = models.write(tmp_path, models.CHAIN, "made.onnx")
    with closing(Document.open(write(tmp_path, NESTED))) as document:
        explorer = ExplorerModel(document)
        for item in explorer.rows().items:
            if explorer.can_unfold(item):
                explorer.set_unfolded(item, False)
        for scope in document.scopes():
            explorer.set_unfolded(explorer.branch_of(scope), True)
        document.apply("replace_model", model=keep_model(document, made), title="convert it")
        again = model_anew(explorer)
        assert all(key[1] is document.main for key in again.unfolded)  # type: ignore[index]
        assert len(again.rows()) == 5
