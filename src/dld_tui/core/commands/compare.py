"""Comparing profile reports."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_APP = table(
    "app",
    ("app.compare_reports", "compare_reports", "", "", "compare reports",
     "Show profile reports or engines side by side: what differs, and where the time went."),
)
_REPORT = table(
    "report",
    ("report.compare", "compare_with", "equals_sign", "report", "compare",
     "Compare this report with another one."),
    footer="report.compare",
)
_COMPARE = table(
    "compare",
    ("compare.filter", "filter", "slash", "comparison", "filter",
     "Filter the rows while you type."),
    ("compare.group", "group", "b", "comparison", "group",
     "Compare by layer, node, type, operator, scope, provider or precision; engines also by what"
     " has another precision or tactic."),
    ("compare.sure", "sure", "f", "comparison", "no noise",
     "Show only what changed by more than noise, or all again."),
    ("compare.base", "base", "equals_sign", "comparison", "next base",
     "Compare with the next report instead of the first."),
    ("compare.layer", "show_layer", "t", "compared_layer", "show layer",
     "Show the layer in its report."),
    ("compare.node", "go_to_node", "s", "compared_node", "go to node",
     "Show the ONNX node in the model."),
    ("compare.csv", "save_csv", "w", "comparison", "save csv",
     "Write the shown rows as a CSV file."),
    ("compare.export", "export", "W", "comparison", "export",
     "Write the whole comparison as one page that can be mailed."),
    ("compare.add", "add_report", "a", "comparison", "add report", "Compare with one more report."),
    ("compare.model", "choose_model", "m", "compared_engine", "find nodes",
     "Find the ONNX nodes of the engines in the model that they were built from."),
    ("compare.again", "again", "f5", "comparison", "read again", "Read the reports once more."),
    footer="compare.filter compare.group compare.sure compare.layer compare.node compare.csv",
)
_CLEAR = table(
    "compare",
    ("compare.clear", "clear", "escape", "", "clear",
     "Take back the filter, the group or the noise; stop reading."),
    palette=False,
)
# fmt: on

ROWS: tuple[Command, ...] = (*_APP, *_REPORT, *_COMPARE, *_CLEAR)
