"""The report screen and its timeline."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
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
# fmt: on

ROWS: tuple[Command, ...] = (*_REPORT, *_REPORT_PANES, *_TIMELINE)
