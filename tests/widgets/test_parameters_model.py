"""What the parameters pane says, as rows of data."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path

import pytest

from dld_tui.core.model.document import Document, Node, Scope
from dld_tui.core.model.document.summary import summarise
from dld_tui.widgets.parameters.descriptions import (
    DEFAULTS,
    DOCUMENTATION,
    INITIALIZERS,
    NodeRows,
    ParameterLines,
    ParameterRow,
    ScopeRows,
)
from tests.support import models
from tests.support.sessions import document_of

MODEL = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1], producer_name: "maker">
everything (float[1, 4, 8, 8] x, float[N] lone) => (float[M] y)
<float[1, 4, 1, 1] w = {1, 2, 3, 4}, float big, int64[2] steps = {1, -1}>
{
    [conv] a = Conv <kernel_shape = [1, 1]> (x, w)
    [lstm] b, , c = LSTM <hidden_size = 4> (a, w, w, , steps, ghost)
    [cat] y = Concat <axis = 0> (b, c, a)
    [call] z = local.twice(x)
    [gone] q = Reluu(z)
    [nothing] r = Cast(q)
}
<domain: "local", opset_import: ["" : 18]>
twice <factor>(v) => (r)
{
    [sum] r = Mul(v, v)
    [ref] s = Elu <alpha: float = @factor> (r)
}
"""


@pytest.fixture
def document(tmp_path: Path) -> Iterator[Document]:
    opened = Document.open(models.write(tmp_path, MODEL))
    yield opened
    opened.close()


def node_named(document: Document, name: str) -> Node:
    return next(n for scope in document.scopes() for n in scope.nodes if n.name == name)


def rows_of(node: Node, folds: Mapping[Hashable, bool] | None = None) -> list[ParameterRow]:
    return NodeRows(node, folds or {}, lambda key, tensor: [], 60).rows()


def texts(rows: list[ParameterRow]) -> list[str]:
    return [row.text() for row in rows]


def row(rows: list[ParameterRow], key: Hashable) -> ParameterRow:
    return next(row for row in rows if row.key == key)


def test_rows_of_inputs_and_outputs(document: Document) -> None:
    # Header says operator name version and place.
    first, second, *_ = texts(rows_of(node_named(document, "conv")))
    assert first == "Conv conv"
    assert second == "ai.onnx 18 · main node 1 of 6"
    # Inputs have their formal names and lead to their source.
    rows = rows_of(node_named(document, "conv"))
    data, weight = row(rows, ("input", 0)), row(rows, ("input", 1))
    assert (data.label, data.value, data.extra) == ("X", "x", "graph input")
    assert (weight.label, weight.value, weight.right) == ("W", "w", "f32[1,4,1,1]")
    assert weight.tensor is not None
    assert weight.unfolded is False
    assert weight.extra == "= [1, 2, 3, 4]"
    # Left out and unmade inputs are told apart.
    rows = rows_of(node_named(document, "lstm"))
    assert row(rows, ("input", 3)).value == "– omitted"
    ghost = row(rows, ("input", 5))
    assert (ghost.value, ghost.value_style) == ("ghost", "bad")
    assert row(rows, ("output", 1)).value == "– omitted"
    # Variadic inputs are numbered.
    rows = rows_of(node_named(document, "cat"))
    assert [row(rows, ("input", at)).label for at in range(3)] == [
        "inputs 0",
        "inputs 1",
        "inputs 2",
    ]
    assert row(rows, ("output", 0)).extra == "graph output"
    # Outputs list their users.
    conv, lstm = node_named(document, "conv"), node_named(document, "lstm")
    cat = node_named(document, "cat")
    rows = rows_of(conv)
    users = [row.node for row in rows if row.key[:2] == ("output", 0) and row.node]  # type: ignore[index]
    assert users == [lstm, cat]
    assert row(rows_of(node_named(document, "nothing")), ("output", 0)).extra == "not used"


def test_a_compiled_node_says_what_it_holds(tmp_path: Path) -> None:
    text = """
<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
m (float[1] x) => (float[1] y) {
    [part] y = com.microsoft.EPContext <embed_mode = 0, ep_cache_context = "gone.engine",
        hardware_architecture = "86", source = "TensorrtExecutionProvider"> (x)
}
"""
    with contextlib.closing(Document.open(models.write(tmp_path, text))) as opened:
        shown = " ".join(texts(rows_of(node_named(opened, "part"))))
    assert "holds TensorrtExecutionProvider, gone.engine, not there," in shown
    assert "compute capability 8.6" in shown


def test_many_users_fold(tmp_path: Path) -> None:
    uses = "\n".join(f"    [u{at}] o{at} = Neg(a)" for at in range(60))
    text = f"""<ir_version: 10, opset_import: ["" : 18]>
    hub (float[N] x) => (float[N] o0) {{ [hub] a = Relu(x)\n{uses} }}"""
    opened = Document.open(models.write(tmp_path, text))
    hub = opened.main.nodes[0]
    folded = rows_of(hub)
    assert row(folded, ("output", 0)).extra == "60 uses"
    assert len([r for r in folded if r.node is not None]) < 10
    unfolded = rows_of(hub, {("output", 0): True})
    assert len([r for r in unfolded if r.node is not None]) == 60
    opened.close()


def test_attributes_documentation_and_bodies(document: Document) -> None:
    # Defaults are folded and required attributes missed.
    conv = node_named(document, "conv")
    assert "Defaults 5" in texts(rows_of(conv))
    assert not any(row.attribute == "group" for row in rows_of(conv))
    unfolded = rows_of(conv, {DEFAULTS: True})
    assert row(unfolded, ("attribute", "group")).value == "1"
    assert row(unfolded, ("attribute", "auto_pad")).value == "'NOTSET'"
    missing = row(rows_of(node_named(document, "nothing")), ("attribute", "to"))
    assert (missing.value, missing.value_style) == ("not set, but required", "warn")
    # Documentation unfolds and unknown operators say so.
    documented = [one for one in rows_of(conv, {DOCUMENTATION: True}) if not one.label_style]
    assert len(documented) > 10
    assert {one.indent for one in documented} == {1, 2}
    assert max(len(one.label) + 2 * one.indent for one in documented) <= 60 - 2
    heading = row(rows_of(node_named(document, "gone")), DOCUMENTATION)
    assert (heading.value, heading.unfolded) == ("unknown operator", None)
    # Function calls lead to the function and references to parameters.
    body = row(rows_of(node_named(document, "call")), ("function",))
    assert body.scope is document.functions[0]
    alpha = row(rows_of(node_named(document, "ref")), ("attribute", "alpha"))
    assert alpha.value == "@factor of the function"


def test_subgraphs_lead_to_their_scope(tmp_path: Path) -> None:
    opened = Document.open(models.write(tmp_path, models.BRANCHES))
    holder = opened.main.nodes[1]
    bodies = [r.scope for r in rows_of(holder) if r.scope is not None]
    assert bodies == holder.subgraphs()
    opened.close()


def scope_rows(scope: Scope, folds: Mapping[Hashable, bool] | None = None) -> list[ParameterRow]:
    summary = summarise(document_of(scope))
    return ScopeRows(scope, summary, folds or {}, lambda key, tensor: [], 60).rows()


def test_the_main_graph_tells_of_the_model(document: Document) -> None:
    shown = texts(scope_rows(document.main))
    assert "opset ai.onnx 18, local 1" in shown
    assert "producer maker" in shown
    assert "nodes 8 in all scopes" in shown
    assert any(text.startswith("x f32[1,4,8,8]") for text in shown)
    assert not any(text.startswith("steps") for text in shown)
    unfolded = texts(scope_rows(document.main, {INITIALIZERS: True}))
    assert any(text.startswith("steps int64[2]") for text in unfolded)


def test_inputs_with_a_default_are_listed_apart(tmp_path: Path) -> None:
    proto = models.parse(models.CHAIN)
    for tensor in proto.graph.initializer:
        proto.graph.input.add(name=tensor.name)
    path = tmp_path / "old.onnx"
    path.write_bytes(proto.SerializeToString())
    opened = Document.open(path)
    shown = texts(scope_rows(opened.main))
    assert "Inputs 1" in shown
    assert "Inputs with a default 2" in shown
    opened.close()


def test_a_subgraph_tells_what_it_captures(tmp_path: Path) -> None:
    opened = Document.open(models.write(tmp_path, models.BRANCHES))
    then_branch = opened.main.nodes[1].subgraphs()[0]
    rows = scope_rows(then_branch)
    captured = row(rows, ("captured", "a"))
    assert captured.extra == "from main"
    assert captured.node is opened.main.nodes[0]
    assert row(rows, ("owner",)).node is opened.main.nodes[1]
    opened.close()


@pytest.mark.parametrize("width", [0, 1, 7, 20, 40, 79, 120, 300])
def test_rows_fit_any_width(document: Document, width: int) -> None:
    folds = {DEFAULTS: True, DOCUMENTATION: True, INITIALIZERS: True}
    for rows in (rows_of(node_named(document, "lstm"), folds), scope_rows(document.main, folds)):
        lines = ParameterLines(rows)
        for at in range(len(lines)):
            cells = sum(len(text) for text, _ in lines.line(at, width))
            assert cells <= width + 1, lines.text(at)


def test_long_dimensions_have_short_names_that_the_page_of_the_model_explains() -> None:
    text = "g (float[batch_size, 4] x) => (float[batch_size, 4] y) { [a] y = Relu(x) }"
    model = models.parse(f'<ir_version: 10, opset_import: ["" : 18]>\n{text}')
    main = Document(model).main
    assert row(rows_of(node_named(document_of(main), "a")), ("output", 0)).right == "f32[B,4]"
    shown = row(scope_rows(main), ("dimension", "batch_size"))
    assert (shown.label, shown.value) == ("B", "batch_size")
    assert row(scope_rows(main), ("Inputs", 0)).right == "f32[B,4]"


def test_requirements_are_shown_with_what_was_found(document: Document) -> None:
    from dld_tui.core.compare.gate import Outcome
    from dld_tui.core.compare.requirement_files import keep_verdict
    from dld_tui.core.compare.requirements import Judged, RequirementsResult

    path = document.path
    assert path is not None
    assert "Requirements" not in [row.label for row in scope_rows(document.main)]
    beside = path.with_name("dld.toml")
    beside.write_text(f'[requirements]\n"{path.name}" = ["size <= 1 kB", "p95 <= 3 ms"]\n')
    judged = Judged("size <= 1 kB", Outcome.FAIL, "size", 2000.0, shown="2.0 kB")
    keep_verdict(path, RequirementsResult(str(path), (judged,)))
    rows = {row.label: row for row in scope_rows(document.main)}
    assert rows["size <= 1 kB"].value.startswith("FAIL, 2.0 kB (")
    assert (rows["size <= 1 kB"].value_style, rows["p95 <= 3 ms"].value) == ("bad", "not checked")
    assert any(row.value.endswith("checks them") for row in scope_rows(document.main))
    beside.write_text("x = [")
    assert any("not valid TOML" in row.value for row in scope_rows(document.main))
