"""Pictures of graphs of models as text, compared with ``whole_pictures.txt``."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import DldError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.parts.extraction import body_at
from dld_tui.core.reading import model_pictures
from dld_tui.core.reading.model_pictures import Drawing, lacks_types, picture_of_scope
from dld_tui.core.report.records import Layer, NodeLink
from tests.support import models
from tests.support.profiles import write_report
from tests.support.recorded import Recorded
from tests.support.transcript_files import CONSTANT, COSTS

MODELS = {
    "chain": models.CHAIN, "branches": models.PLAIN_BRANCHES, "functions": models.FUNCTIONS,
    "layered": models.layered(6), "constant": CONSTANT, "costs": COSTS,
}  # fmt: skip


def report(path: Path, *times: tuple[str, float]) -> Path:
    layers = [
        (Layer(name, "X", nodes=(NodeLink((), name, name, "X", share=0.5),)), [ms, ms])
        for name, ms in times
    ]
    return write_report(path, layers)


def drawings(folder: Path) -> dict[str, Drawing]:
    """Return what is drawn, by its title."""
    timed = report(folder / "r.dldprof", ("first", 3.0), ("second", 1.0), ("first", 2.0))
    other = report(folder / "other.dldprof", ("nothing", 3.0))
    return {
        "chain": Drawing("text"),
        "chain around second": Drawing("text", node="second", hops=1),
        "chain with times": Drawing(report=timed),
        "chain with times of others": Drawing("text", report=other),
        "chain around nothing": Drawing("text", node="nothing"),
        "chain in ascii": Drawing("text", ascii=True),
        "branches": Drawing("text"),
        "functions rail": Drawing("text", "rail"),
        "layered": Drawing("text", folded=False),
        "layered folded": Drawing("text", folded=True),
        "layered rail": Drawing("text", "rail"),
        "layered overview": Drawing("text", "overview"),
        "constant": Drawing("text"),
        "constant with constants": Drawing("text", constants=True),
        "costs overview": Drawing("text", "overview", ascii=True),
    }  # fmt: skip


def test_whole_pictures(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    for title, drawing in drawings(tmp_path).items():
        document = Document(models.parse(MODELS[title.split()[0]]))
        told: list[str] = []
        try:
            made = picture_of_scope(document, document.main, "a title <", drawing, told.append)
        except DldError as error:
            texts[title] = str(error).replace(str(tmp_path), "FOLDER")
        else:
            size = f"{made.boxes} boxes, {made.width} x {made.height} {told}"
            texts[title] = f"{size}\n{made.data.decode()}".replace("><", ">\n<")
    document = Document(models.parse(models.CHAIN))
    svg = picture_of_scope(document, document.main, "a title <", Drawing(), print)
    texts["svg"] = svg.data.decode().replace("><", ">\n<")
    recorded("whole_pictures", texts)


def test_graphs_lack_types_where_more_than_a_quarter_is_unknown() -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
        m (float[2] x) => (float[2] y) <float[2] KNOWN> {
        a = Relu (x) b = Relu (a) c = Relu (b) y = Relu (c) }"""
    known = ("", "float[2] c", "float[2] c, float[2] b", "float[2] a, float[2] b, float[2] c")
    lacking = []
    for names in known:
        document = Document(models.parse(text.replace("<float[2] KNOWN>", f"<{names}>")))
        lacking.append(lacks_types(document.main))
    assert lacking == [True, True, False, False]
    with pytest.raises(DldError):
        body_at(document, ("nothing",))


def test_too_many_nodes_are_folded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    document = Document(models.parse(models.layered(6)))
    nodes = len(document.main.nodes)
    for most in (nodes, nodes - 1):
        monkeypatch.setattr(model_pictures, "_TOO_MANY", most)
        told: list[str] = []
        made = picture_of_scope(document, document.main, "m", Drawing(), told.append)
        assert bool(told) == (most < nodes)
        plain = picture_of_scope(document, document.main, "m", Drawing(folded=bool(told)), print)
        assert made.data == plain.data
