"""What was measured, built or compared: reports, engines, two of either, two models."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
# The report screen and its timeline.
_REPORT = table(
    "report",
    ("report.again", "profile", "f5", "model", "profile again", "Measure the same model again."),
    ("report.improve", "improve", "i", "model", "what may help",
     "Choose what the figures say may help, and do it to the model."),
    ("report.path", "critical_path", "p", "model", "critical path",
     "Find the longest path through the nodes, and what running them at once could save."),
    ("report.card", "card", "y", "report", "share",
     "Copy the report in a few lines, or write them or a picture for a post."),
    ("report.filter", "filter", "slash", "report", "filter", "Filter the layers while you type."),
    ("report.group", "group", "b", "report", "group",
     "Group the layers by type, node, operator, scope, provider or precision."),
    ("report.node", "go_to_node", "s", "linked", "go to node",
     "Show the layer's ONNX node in the model."),
    ("report.show", "show_other", "t", "layer", "timeline",
     "Show the layer in the timeline, or the timeline's layer in the table."),
    ("report.csv", "save_csv", "w", "report", "save csv", "Write the shown table as a CSV file."),
    ("report.export", "export", "W", "report", "export",
     "Write the whole report: a page to mail, a trace for Perfetto, CSV, JSON or Parquet."),
    ("report.optimized", "open_optimized", "", "optimized", "open optimised model",
     "Open the model as the runtime optimised it, which the run saved."),
    ("report.columns", "columns", "f", "report", "columns", "Choose the layer table's columns."),
    ("report.chart", "chart", "c", "report", "next chart",
     "Show the next chart: per type, precision per type, distribution, time against memory."),
    ("report.unit", "unit", "percent_sign", "report", "ms or percent",
     "Switch the chart between milliseconds and percent."),
    ("report.zoom_in", "zoom_in", "plus", "report", "zoom in",
     "Show less of the timeline, larger."),
    ("report.zoom_out", "zoom_out", "minus", "report", "zoom out", "Show more of the timeline."),
    ("report.zoom_reset", "zoom_reset", "0", "report", "zoom all", "Show the whole pass."),
    ("report.previous_pass", "previous_pass", "left_square_bracket", "report", "previous pass",
     "Show the pass before in the timeline."),
    ("report.next_pass", "next_pass", "right_square_bracket", "report", "next pass",
     "Show the next pass in the timeline."),
    ("report.maximise", "maximise_pane", "m", "report", "maximise", "Give the pane all the room."),
    footer="report.again report.filter report.group report.node report.show report.csv",
)
_REPORT_PANES = table(
    "report",
    ("report.pane.1", "pane 1", "1", "", "pane 1", "Go to the summary."),
    ("report.pane.2", "pane 2", "2", "", "pane 2", "Go to the timeline."),
    ("report.pane.3", "pane 3", "3", "", "pane 3", "Go to the layers."),
    ("report.pane.4", "pane 4", "4", "", "pane 4", "Go to the charts."),
    ("report.pane.5", "pane 5", "5", "", "pane 5", "Go to the environment and settings."),
    ("report.clear", "clear", "escape", "", "clear",
     "Take back marks, the filter, the group, the measure; stop loading."),
    palette=False,
)
_TIMELINE = table(
    "timeline",
    ("timeline.left", "previous_span", "left,h", "", "previous layer", "Go to what ran before."),
    ("timeline.right", "next_span", "right,l", "", "next layer", "Go to what ran next."),
    ("timeline.up", "lane_up", "up,k", "", "lane above", "Go to the parent or another thread."),
    ("timeline.down", "lane_down", "down,j", "", "lane below", "Go to the body or another thread."),
    ("timeline.first", "first_span", "home,g", "", "first layer", "Go to what ran first."),
    ("timeline.last", "last_span", "end,G", "", "last layer", "Go to what ran last."),
    ("timeline.pan_left", "pan left", "shift+left,H", "", "pan left", "Move the window left."),
    ("timeline.pan_right", "pan right", "shift+right,L", "", "pan right", "Move the window right."),
    ("timeline.page_left", "pan page_left", "pageup,ctrl+b", "", "page left",
     "Move the window left by most of its width."),
    ("timeline.page_right", "pan page_right", "pagedown,ctrl+f", "", "page right",
     "Move the window right by most of its width."),
    ("timeline.measure", "measure", "space,M", "", "measure",
     "Set the first mark, then the second, then forget both."),
    ("timeline.cross", "cross", "x", "kernels", "kernel or layer",
     "Go from a layer to its kernel on the GPU, or from a kernel to the layer."),
    ("timeline.open", "activate", "enter", "", "show layer", "Show the layer in the table."),
    palette=False, footer="timeline.measure timeline.cross timeline.open",
)

# The plan screen: an engine of TensorRT.
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

# Comparing profile reports.
_APP = table(
    "app",
    ("app.compare_reports", "compare_reports", "", "", "compare reports",
     "Show profile reports or engines side by side: what differs, and where the time went."),
)
_COMPARE_REPORT = table(
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

# The screen that compares two models.
_DIFF = table(
    "diff",
    ("diff.filter", "filter_status", "f", "compared", "filter",
     "Show only what was added, removed, changed, renamed or moved."),
    ("diff.all", "toggle_same", "a", "compared", "all nodes",
     "Show the nodes that are the same, too."),
    ("diff.previous", "previous_change", "left_square_bracket", "compared", "previous change",
     "Go to the change before."),
    ("diff.next", "next_change", "right_square_bracket", "compared", "next change",
     "Go to the next change."),
    ("diff.new", "show_new", "s", "new_node", "new model", "Show the node in the new model."),
    ("diff.old", "show_old", "o", "old_node", "old model", "Show the node in the old model."),
    ("diff.again", "again", "f5", "compared", "compare again", "Compare the files once more."),
    ("diff.clear", "clear", "escape", "", "clear", "Stop comparing, or show all changes again."),
    footer="diff.filter diff.all diff.next diff.new diff.old",
)
# fmt: on

ROWS: tuple[Command, ...] = (
    *_REPORT,
    *_REPORT_PANES,
    *_TIMELINE,
    *_PLAN,
    *_PANES,
    *_LOG,
    *_APP,
    *_COMPARE_REPORT,
    *_COMPARE,
    *_CLEAR,
    *_DIFF,
)
