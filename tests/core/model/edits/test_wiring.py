"""The choices for a new node, and the edit that they become."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import onnx

from dld_tui.core.errors import DldError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.operator_listing import operator_palette
from dld_tui.core.model.document.summary import opset_imports
from dld_tui.core.model.edits.wiring import NodeWiring, Setting, parse_initializer
from tests.support import models
from tests.support.model_lines import changes
from tests.support.recorded import Answered
from tests.support.sessions import bytes_of

TEXT = """
<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
g (float[N, 4] x, float[1, 6, 8, 8] x4, int64[N, 4] i, bool c) => (float[N, 4] y)
<float[4] w = {1, 2, 3, 4}, float[N, 4] a, float[N, 4] b> {
    [first] a = Relu (x)  [second] b = Add (a, w)  [third] y = Mul (b, a)
    [plug] p, q = own.Plugin <p = 1> (a, a)
}
"""


def test_choices_become_the_edits_of_the_record(answered: Answered) -> None:
    answered("wiring", _told)


def _told(question: str) -> str:
    word, _, text = question.partition(" ")
    if word == "initializer":
        try:
            return str(parse_initializer(text))
        except DldError as error:
            return f"! {error}"
    with closing(Document(models.parse(TEXT))) as document:
        return "\n".join(_wired(document, *question.split("; ")))


def _wired(document: Document, operator: str, *steps: str) -> list[str]:
    """Return what is offered for an operator behind a value after some steps, and what comes."""
    name, _, source = operator.partition(" ")
    domain, _, op_type = name.rpartition(".")
    item = operator_palette(document.main).operator(op_type, domain)
    assert item is not None
    made = NodeWiring(document.main, item, source)
    for step in steps:
        what, first, rest = [*step.split(" ", 2), "", ""][:3]
        if what == "connect":
            made.connect(int(first), rest)
        elif what == "create":
            made.create(int(first), parse_initializer(rest))
        elif what == "set":
            made.attributes[first] = Setting("int", int(rest), rest)
        elif what == "insert":
            made.inserts = True
        elif what == "users":
            made.users_of = [[first, int(rest)]]
        elif what == "outputs":
            made.outputs = int(first)
        else:
            made.name = first
    limits = f"{made.outputs} of {made.output_limits[0]} to {made.output_limits[1]} outputs"
    lines = [f"{made.inputs} of {made.slots}, {limits}, {made.users} users, bodies {made.bodies}"]
    for at in range(made.slots):
        why = {value: made.why_not(at, value) for value in ("a", "i", "c", *made.created)}
        needed = "needed" if made.is_required(at) else "optional"
        refused = "".join(f", {value} {text}" for value, text in why.items() if text)
        lines.append(f"{at} {needed}, {made.likely_initializer(at)}{refused}")
    lines.append(f"missing {', '.join(made.missing())}; settable {len(made.settable)}")
    before = bytes_of(document)
    try:
        lines.append(document.apply(made.edit()).title)
    except DldError as error:
        return [*lines, f"! {error}"]
    return [*lines, *changes(*map(onnx.ModelProto.FromString, (before, bytes_of(document))))]


def test_imports_with_their_uses(tmp_path: Path) -> None:
    text = models.FUNCTIONS.replace('"local" : 1]', '"local" : 1, "idle" : 3]', 1)
    document = Document.open(models.write(tmp_path, text))
    found = {entry.domain: entry for entry in opset_imports(document)}
    assert {name: (e.version, e.used_by) for name, e in found.items()} == {
        "": (18, 1), "local": (1, 1), "idle": (3, 0)
    }  # fmt: skip
    assert found["idle"].newest is None
    document.apply("add_node", scope=[], op_type="P", domain="missing", inputs=["x"])
    last = opset_imports(document)[-1]
    assert last.version is not None or last.domain == "missing"
