"""The plan screen: an engine of TensorRT."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_PLAN = table(
    "plan",
    ("plan.filter", "filter", "slash", "plan", "filter", "Filter the layers while you type."),
    ("plan.narrow", "narrow", "f", "plan", "filter by",
     "Show only the layers of a type, a precision, or with a finding."),
    ("plan.group", "group", "b", "plan", "group",
     "Group the layers by type, precision, node, name scope, operator or tactic."),
    ("plan.node", "go_to_node", "s", "linked", "go to node",
     "Show the layer's ONNX node in the model."),
    ("plan.show", "show_other", "t", "layer", "graph",
     "Show the layer in the graph, or the layer of another pane in the table."),
    ("plan.details", "details", "d", "layer", "details", "Go to the details of the layer."),
    ("plan.model", "choose_model", "a", "plan", "choose model",
     "Name the ONNX model, so that layers are joined to its nodes."),
    ("plan.table", "next_table", "c", "plan", "next table",
     "Show the next chart, or the next of the special tables."),
    ("plan.unit", "unit", "percent_sign", "plan", "ms or percent",
     "Switch the chart between milliseconds and percent."),
    ("plan.columns", "columns", "C", "plan", "columns", "Choose the layer table's columns."),
    ("plan.compare", "compare_with", "equals_sign", "plan", "compare",
     "Compare this engine with another one, or with a report."),
    ("plan.csv", "save_csv", "w", "plan", "save csv", "Write the shown table as a CSV file."),
    ("plan.export", "export", "W", "plan", "export",
     "Write the whole engine as one page that can be mailed."),
    ("plan.picture", "save_picture", "p", "plan", "save picture",
     "Write what the graph pane shows as SVG, PNG, JPEG or text."),
    ("plan.again", "again", "f5", "plan", "read again", "Read the files once more."),
    ("plan.maximise", "maximise_pane", "m", "plan", "maximise", "Give the pane all the room."),
    footer="plan.filter plan.group plan.node plan.show plan.table plan.export",
)
_PANES = table(
    "plan",
    ("plan.pane.1", "pane 1", "1", "", "pane 1", "Go to the summary."),
    ("plan.pane.2", "pane 2", "2", "", "pane 2", "Go to the layers."),
    ("plan.pane.3", "pane 3", "3", "", "pane 3", "Go to the findings."),
    ("plan.pane.4", "pane 4", "4", "", "pane 4", "Go to the graph."),
    ("plan.pane.5", "pane 5", "5", "", "pane 5", "Go to the charts."),
    ("plan.pane.6", "pane 6", "6", "", "pane 6", "Go to the special tables."),
    ("plan.clear", "clear", "escape", "", "clear",
     "Take back marks, the filter, the group; stop reading."),
    palette=False,
)
_LOG = table(
    "log",
    ("log.command", "copy_command", "y", "log_command", "copy command",
     "Copy the command that reproduces the run."),
    ("log.problem", "next_problem", "exclamation_mark", "log", "next warning",
     "Go to the next warning or error."),
    ("log.plan", "open_plan", "t", "log_layers", "engine",
     "Show the layers that the log tells of."),
    footer="log.command log.problem log.plan",
)
# fmt: on

ROWS: tuple[Command, ...] = (*_PLAN, *_PANES, *_LOG)
