"""What the parameters pane says, as rows of data."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
import textual

from dld_tui.core.model.document import Document, Node, Scope
from dld_tui.core.model.document.summary import summarise
from dld_tui.widgets.graph import boxes
from dld_tui.widgets.graph.boxes import Looks
from dld_tui.widgets.graph.overlays import Overlay
from dld_tui.widgets.graph.state import GraphModel, GraphNotes
from dld_tui.widgets.parameters.descriptions import (
    DEFAULTS,
    DOCUMENTATION,
    INITIALIZERS,
    NodeRows,
    ParameterLines,
    ParameterRow,
    ScopeRows,
)
from dld_tui.widgets.parameters.pane import Parameters
from tests.support import models
from tests.support.conversions import LOOPS
from tests.support.recorded import Recorded
from tests.support.sessions import document_of
from tests.support.transcript_files import ATTRIBUTES, CONSTANT, HEAD_OF_ATTRIBUTES, TWICE
from tests.support.tui import HostApp
from tests.support.walks import Steps, walked

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


def scope_rows(scope: Scope, folds: Mapping[Hashable, bool] | None = None) -> list[ParameterRow]:
    summary = summarise(document_of(scope))
    return ScopeRows(scope, summary, folds or {}, lambda key, tensor: [], 60).rows()


@pytest.mark.parametrize("width", [0, 1, 7, 20, 40, 79, 120, 300])
def test_rows_fit_any_width(document: Document, width: int) -> None:
    folds = {DEFAULTS: True, DOCUMENTATION: True, INITIALIZERS: True}
    for rows in (rows_of(node_named(document, "lstm"), folds), scope_rows(document.main, folds)):
        lines = ParameterLines(rows)
        for at in range(len(lines)):
            cells = sum(len(text) for text, _ in lines.line(at, width))
            assert cells <= width + 1, lines.text(at)


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


COMPILED = """<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
m (float[batch_size] x) => (float[batch_size] y) {
    [part] y = com.microsoft.EPContext <embed_mode = 0, ep_cache_context = "gone.engine",
        hardware_architecture = "86", source = "TensorrtExecutionProvider"> (x)
}"""
USED = f"""<ir_version: 10, opset_import: ["" : 18]>
hub (float[N] x) => (float[N] o0) {{
    [hub] a = Relu(x)
    {" ".join(f"[u{at}] o{at} = Neg(a)" for at in range(24))}
}}"""
_MODELS = {
    "everything": MODEL, "branches": models.BRANCHES, "functions": models.FUNCTIONS,
    "compiled": COMPILED, "attributes": f"{HEAD_OF_ATTRIBUTES}{ATTRIBUTES}",
    "constant": CONSTANT, "twice": TWICE, "loops": LOOPS, "one input": models.CHAIN, "used": USED,
}  # fmt: skip
_PLAIN = ParameterRow("")
_SHOWN = ("label_style", "value_style", "right_style", "keep", "attribute", "name_of", "copied")


def _told(rows: list[ParameterRow]) -> str:
    """Return rows as they are drawn, each above its key and where it leads."""
    told, lines = [], ParameterLines(rows)
    for at, one in enumerate(rows):
        told.append("".join(text for text, _ in lines.line(at, 60)).rstrip() + "|")
        values = [
            f"{name}={value}"
            for name in _SHOWN
            if (value := getattr(one, name)) != getattr(_PLAIN, name)
        ]
        values += [f"node={one.node.ref}"] if one.node is not None else []
        values += [f"scope={one.scope.title}"] if one.scope is not None else []
        values += ["tensor"] if one.tensor is not None else []
        told.append(f"    {one.key} {one.fold_key} {' '.join(values)}")
    return "\n".join(told)


def test_rows_of_all_nodes_and_scopes(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    shown: dict[str, str] = {}
    unfolded = {
        DEFAULTS: True, INITIALIZERS: True, ("output", 0): True, ("input", 1): True,
        ("section", "Inputs"): True,
    }  # fmt: skip
    for title, text in _MODELS.items():
        proto = models.parse(text)
        if title == "one input":
            for tensor in proto.graph.initializer:
                proto.graph.input.add(name=tensor.name)
        elif title == "branches":
            proto.producer_version = "1"
            proto.doc_string = "Two words.\n\n" + "And more " * 9
            proto.graph.node[0].doc_string = "Of a node"
        path = tmp_path / "model.onnx"
        path.write_bytes(proto.SerializeToString())
        with contextlib.closing(Document.open(path)) as opened:
            for scope in opened.scopes():
                for folds in ({}, unfolded):
                    name = f"{title}: {' > '.join(scope.path) or 'main'}{' unfolded' * bool(folds)}"
                    shown[name] = _told(scope_rows(scope, folds))
                    for node in scope.nodes[:9]:
                        shown[f"{name}, {node.ref}"] = _told(rows_of(node, folds))
    recorded("rows_of_parameters", shown)


def pane_steps(pane: Parameters, opened: Document) -> Steps:
    main = opened.main
    conv, lstm = main.nodes[:2]

    def around() -> None:
        model = GraphModel(main)
        model.weigh()
        looks = Looks(model, GraphNotes(model), Overlay())
        pane.ask_nearest = partial(boxes.around, looks)

    def edited() -> None:
        opened.apply("rename_node", scope=[], node="conv", name="other")
        pane.rebuild()

    return {
        "a scope": lambda: pane.show(main), "end enter ~": None, "down enter": None, "home z": None,
        "a node ~": lambda: pane.show(conv), "down down down down enter": None, "left": None,
        "right": None, "space": None, "end": None, "up enter ~": None, "escape": None,
        "slash g r o u p": None, "enter": None, "n": None, "slash s i n c e enter": None,
        "another": lambda: pane.show(lstm), "end ": None, "Y": None, "40x12 ~": None, "24x30": None,
        "boxes": around, "60x60": None, "again": lambda: pane.show(conv), "click:30,45": None,
        "edited ~": edited, "verdicts": pane.show_verdicts, "home": None, "double:12,7": None,
        "back": lambda: pane.return_to(pane.place), "nothing": lambda: pane.show(None),
    }  # fmt: skip


@pytest.mark.broad
@pytest.mark.skipif(textual.__version__ != "8.2.8", reason="as Textual 8.2.8 draws")
async def test_a_walk_through_the_pane(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    pane = Parameters(preview_bytes=1 << 20)
    app = HostApp(pane)
    with contextlib.closing(Document.open(models.write(tmp_path, MODEL))) as opened:
        async with app.run_test(size=(60, 30), message_hook=app.note) as pilot:
            pane.list.focus()
            texts = await walked(app, pilot, pane_steps(pane, opened))
    recorded("walk_of_parameters", texts)
