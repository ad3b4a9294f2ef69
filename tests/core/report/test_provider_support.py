from __future__ import annotations

from dld_tui.core.model.operators.provider_tables import Cause, Support
from dld_tui.core.report.provider_support import (
    Basis,
    NodeSupport,
    ProvidersResult,
    ProviderSupport,
    support_lines,
    support_table,
)
from dld_tui.core.tables.table import json_of


def node(op_type: str, reason: str, change: str = "", name: str = "n") -> NodeSupport:
    return NodeSupport("QNN", (), name, op_type, Support.NOT, Cause.OPERATOR, reason, change, 0.25)


PARTLY = NodeSupport(
    "QNN", ("If:then_branch",), "m", "Gather", Support.PARTLY, Cause.CONDITION, "if"
)
QNN = ProviderSupport(
    "QNN", "QNN", Basis.TABLE, "ONNX Runtime QNN 2.3.0", "2026-06", "", 5, 1, 4, 3, 0.5,
    (node("A", "dynamic", "fix"), node("B", "dynamic", "fix"), node("A", "dynamic", "fix"),
     node("C", "not in the table"), PARTLY),
    why="it does not start",
)  # fmt: skip
CPU = ProviderSupport("CPU", "CPU", Basis.ASKED, "ONNX Runtime 1.31.1", "", "", 10, 0, 0, 1, 1.0)
RTX = ProviderSupport("R", "RTX", Basis.PARSER, "TensorRT-RTX 1.7", "", "", 0, 0, 10, 0, 0.0)
FOUND = ProvidersResult("m.onnx", "time", (CPU, QNN, RTX))


def test_lines_say_what_is_taken_by_what_and_why_not() -> None:
    assert support_lines(FOUND) == [
        "CPU: 10 of 10 nodes taken, 1 partition. Asked: ONNX Runtime 1.31.1.",
        "QNN: 5 of 10 nodes taken (50 % of the measured time), 1 partly, 3 partitions. By the"
        " published table of ONNX Runtime QNN 2.3.0 (2026-06); the installed one was not asked: it"
        " does not start.",
        "  2 A, 1 B: dynamic → fix",
        "  1 C: not in the table",
        "  1 Gather: partly, if",
        "RTX: 0 of 10 nodes taken (0 % of the measured time). Asked: the parser of TensorRT-RTX"
        " 1.7.",
    ]


def test_the_table_has_the_nodes_of_all() -> None:
    rows = json_of(support_table(FOUND))
    assert [row["op_type"] for row in rows] == ["A", "B", "A", "C", "Gather"]
    assert rows[4]["node"] == "If:then_branch/m"
    assert rows[0]["share"] == 25.0
