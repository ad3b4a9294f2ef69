"""Every command of the TUI, one row each.

Key bindings, the command palette, the help screen and the greyed state all come from this table. A
row names facts that must hold (``needs``); a screen says which facts hold now, so a command that
cannot run shows why. To add a command: one row here and one ``action_…`` method on the object whose
``SCOPE`` is the row's scope.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Command:
    """One thing a user can do."""

    id: str
    """``area.verb``; also the name under ``[keys]`` in config.toml."""
    title: str
    """One to three words, for the footer and the palette."""
    help: str
    """One sentence."""
    keys: str = ""
    """Default keys, comma separated, in Textual's names; the first is the one shown."""
    scope: str = "app"
    """Who has the action: ``app``, ``list``, ``table``, ``workspace``, ``explorer``, …"""
    action: str = ""
    """Name of the action; by default the part of the id after the dot."""
    needs: tuple[str, ...] = ()
    """Facts that must hold, keys of :data:`FACTS`."""
    footer: bool = False
    """Among the few that the footer shows."""
    palette: bool = True
    priority: bool = False
    """Wins over the focused widget, text fields too."""
    parameter: str = ""
    """An argument of the action."""

    @property
    def action_name(self) -> str:
        """Return the action's name without ``action_`` and without its argument."""
        return self.action or self.id.partition(".")[2]

    @property
    def action_string(self) -> str:
        """Return the action with its argument, as a binding wants it."""
        return f"{self.action_name}({self.parameter!r})" if self.parameter else self.action_name

    def unavailable(self, facts: Collection[str]) -> str | None:
        """Return why it cannot run now, or None when it can."""
        return next((FACTS[need] for need in self.needs if need not in facts), None)


FACTS: Mapping[str, str] = {
    "document": "no model is open",
    "report": "no report is open",
    "tab": "nothing is open",
    "tabs": "only one thing is open",
    "dirty": "nothing is changed",
    "can_undo": "nothing to undo",
    "can_redo": "nothing to redo",
    "node": "no node under the cursor",
    "nodes": "no node under the cursor or marked",
    "attribute": "no attribute under the cursor",
    "value": "no value under the cursor",
    "body": "this node has no body",
    "history": "no earlier place",
    "forward": "no later place",
    "layer": "no layer under the cursor",
    "linked": "the layer has no ONNX node",
    "model": "the model of the report is not found",
    "compared": "the models are not compared yet",
    "old_node": "the old model has no such node",
    "new_node": "the new model has no such node",
    "running": "nothing runs",
    "finished": "the job still runs",
    "result": "the job has no result",
    "valid": "the form has an error",
    "marks": "nothing is marked",
    "searched": "nothing was searched for",
}
"""Fact to the reason shown while it does not hold."""


def _table(
    scope: str,
    *rows: tuple[str, str, str, str, str, str],
    common: str = "",
    footer: str = "",
    palette: bool = True,
    priority: bool = False,
) -> tuple[Command, ...]:
    """Return the rows of a scope: (id, action, keys, facts it needs, title, help).

    Args:
        scope: Who has the actions.
        rows: The rows.
        common: Facts that all of them need.
        footer: The ids that the footer shows.
        palette: False for movements, which make no sense in a menu.
        priority: True when they win over a text field.
    """
    made = []
    for id, action, keys, needs, title, help in rows:
        name, _, parameter = action.partition(" ")
        facts = tuple(f"{common} {needs}".split())
        shown = id in footer.split()
        made.append(Command(
            id, title, help, keys, scope, name, facts, shown, palette, priority, parameter
        ))  # fmt: skip
    return tuple(made)


# fmt: off
_APP = _table(
    "app",
    ("app.help", "help", "question_mark,f1", "", "help",
     "Show the keys and what the focused pane does."),
    ("file.open", "open_file", "ctrl+o", "", "open", "Open a model or a report by path."),
    ("model.new", "new_model", "ctrl+n", "", "new model", "Start an empty model."),
    ("app.start", "start_page", "ctrl+t", "", "start page", "Show recent files and activities."),
    ("app.activities", "activities", "f4", "", "activities", "Start a job, such as a profile."),
    ("tab.next", "next_tab", "ctrl+pagedown,right_curly_bracket", "tabs", "next tab",
     "Show the next open file."),
    ("tab.previous", "previous_tab", "ctrl+pageup,left_curly_bracket", "tabs", "previous tab",
     "Show the previous open file."),
    ("tab.close", "close_tab", "ctrl+w", "tab", "close tab",
     "Close this file; asks when it has unsaved edits."),
    ("app.compare", "compare", "", "", "compare models", "Show what differs between two models."),
    ("app.settings", "settings", "f2", "", "settings", "Change theme, glyphs, mouse and more."),
    ("app.theme", "next_theme", "", "", "next theme", "Try the next theme; settings keep it."),
    ("app.redraw", "redraw", "ctrl+l", "", "redraw", "Draw the whole screen again."),
    ("app.quit", "quit", "ctrl+q", "", "quit", "Leave; asks when there are unsaved edits."),
    footer="app.help",
)
_PALETTE = _table(
    "app",
    ("app.palette", "command_palette", "ctrl+p", "", "commands", "Search and run any command."),
    palette=False, priority=True, footer="app.palette",
)
_PAGE = _table(
    "page",
    ("page.close", "close", "escape", "", "close", "Close this page."),
    footer="page.close", palette=False,
)
_START = _table(
    "start",
    ("recent.forget", "forget", "delete,d", "", "forget", "Take the file from this list."),
    ("start.path", "path", "i", "", "type a path", "Go to the field for a path."),
    footer="start.path",
)
_LIST = _table(
    "list",
    ("list.up", "cursor_up", "up,k", "", "up", "Move up."),
    ("list.down", "cursor_down", "down,j", "", "down", "Move down."),
    ("list.left", "cursor_left", "left,h", "", "left", "Scroll left, or fold."),
    ("list.right", "cursor_right", "right,l", "", "right", "Scroll right, or unfold."),
    ("list.page_up", "page_up", "pageup,ctrl+b", "", "page up", "Move one page up."),
    ("list.page_down", "page_down", "pagedown,ctrl+f", "", "page down", "Move one page down."),
    ("list.first", "first", "home,g", "", "first", "Move to the first line."),
    ("list.last", "last", "end,G", "", "last", "Move to the last line."),
    ("list.activate", "activate", "enter", "", "open", "Open or jump to the cursor's line."),
    ("list.mark", "mark", "space", "", "mark", "Mark or unmark the line and move down."),
    ("list.mark_range", "mark_range", "M", "", "mark range", "Mark from the last mark to here."),
    ("list.search", "search", "slash", "", "search", "Search in this list."),
    ("list.search_next", "search_next", "n", "", "next match", "Go to the next match."),
    ("list.search_previous", "search_previous", "N", "", "previous match",
     "Go to the previous match."),
    ("list.copy", "copy_line", "Y", "", "copy line", "Copy the line's text to the clipboard."),
    palette=False,
)
_SORT = _table(
    "table",
    ("table.sort", "sort_next", "o", "", "sort", "Sort by the next column."),
    ("table.reverse", "sort_reverse", "O", "", "reverse", "Reverse the order."),
    palette=False,
)
_WORKSPACE = _table(
    "workspace",
    ("model.profile", "profile", "f5", "", "profile", "Measure this model with ONNX Runtime."),
    ("model.save", "save", "ctrl+s", "", "save", "Save the model."),
    ("model.save_as", "save_as", "ctrl+shift+s,S,f12", "", "save as", "Save under another name."),
    ("edit.undo", "undo", "u,ctrl+z", "can_undo", "undo", "Take back the last edit."),
    ("edit.redo", "redo", "ctrl+y,ctrl+r", "can_redo", "redo", "Do again what was taken back."),
    ("edit.rename", "rename", "r", "node", "rename", "Rename the node or value at the cursor."),
    ("edit.change", "edit", "e", "attribute", "edit", "Edit the value at the cursor."),
    ("edit.delete", "delete", "delete,d", "nodes", "delete",
     "Delete the marked nodes, or the one at the cursor."),
    ("edit.revert", "revert", "backslash", "attribute", "revert",
     "Set the attribute back to its default."),
    ("go.back", "go_back", "backspace", "history", "back", "Go back to before the last jump."),
    ("go.forward", "go_forward", "shift+backspace,B", "forward", "forward", "Go forward again."),
    ("go.source", "go_source", "left_square_bracket", "node", "to source",
     "Go to the node that makes the first input."),
    ("go.destination", "go_destination", "right_square_bracket", "node", "to destination",
     "Go to a node that uses the output."),
    ("go.body", "open_body", "s", "body", "open body", "Open the node's subgraph or function."),
    ("view.filter", "filter", "f", "", "filter", "Filter by operator type and attributes."),
    ("view.constants", "toggle_constants", "C", "", "constants", "Show or hide constant nodes."),
    ("view.by", "cycle_by", "b", "", "list by", "List by type, by name or by name scope."),
    ("view.maximise", "maximise_pane", "m", "", "maximise", "Give the pane all the room."),
    ("view.reset", "reset_layout", "", "", "reset layout", "Give the panes their first sizes."),
    ("view.documentation", "documentation", "D", "node", "documentation",
     "Show the operator's documentation."),
    ("view.clear_filters", "clear_filters", "", "", "clear filters", "Show all nodes again."),
    ("view.grow", "grow_pane", "greater_than_sign", "", "larger pane", "Make the pane larger."),
    ("view.shrink", "shrink_pane", "less_than_sign", "", "smaller pane",
     "Make the pane smaller."),
    ("view.save_layout", "save_layout", "", "", "save layout", "Keep the pane sizes by a name."),
    ("view.choose_layout", "choose_layout", "", "", "choose layout",
     "Take pane sizes that were kept."),
    ("edit.copy_name", "copy_name", "y", "", "copy name", "Copy the name at the cursor."),
    ("model.allow_links", "allow_links", "", "", "allow links",
     "Read external data through links that leave the model's folder."),
    common="document", footer="model.profile model.save edit.undo edit.change",
)
_PANES = _table(
    "workspace",
    ("pane.1", "pane 1", "1", "", "pane 1", "Go to pane 1."),
    ("pane.2", "pane 2", "2", "", "pane 2", "Go to pane 2."),
    ("pane.3", "pane 3", "3", "", "pane 3", "Go to pane 3."),
    ("pane.4", "pane 4", "4", "", "pane 4", "Go to pane 4."),
    palette=False,
)
_EXPLORER = _table(
    "explorer",
    ("explorer.fold", "toggle_fold", "z", "", "fold", "Fold or unfold the branch."),
    ("explorer.sort", "sort_next", "o", "", "sort", "Sort by the next column."),
    palette=False,
)
_PARAMETERS = _table(
    "parameters",
    ("parameters.fold", "toggle_fold", "z", "", "fold", "Fold or unfold the row."),
    ("parameters.leave", "leave", "escape", "", "to layers",
     "Stop reading a tensor, or else go back to the layers."),
    palette=False,
)
_WORK = _table(
    "workspace",
    ("work.stop", "stop", "escape", "", "stop", "Stop opening or saving."),
    palette=False,
)
_REPORT = _table(
    "report",
    ("report.again", "profile", "f5", "model", "profile again", "Measure the same model again."),
    ("report.filter", "filter", "slash", "report", "filter", "Filter the layers while you type."),
    ("report.group", "group", "b", "report", "group",
     "Group the layers by type, node, operator, scope, provider or precision."),
    ("report.node", "go_to_node", "s", "linked", "go to node",
     "Show the layer's ONNX node in the model."),
    ("report.show", "show_other", "t", "layer", "timeline",
     "Show the layer in the timeline, or the timeline's layer in the table."),
    ("report.csv", "save_csv", "w", "report", "save csv", "Write the shown table as a CSV file."),
    ("report.columns", "columns", "f", "report", "columns", "Choose the layer table's columns."),
    ("report.unit", "unit", "percent_sign", "report", "ms or percent",
     "Switch the chart between milliseconds and percent."),
    ("report.zoom_in", "zoom_in", "plus,equals_sign", "report", "zoom in",
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
_REPORT_PANES = _table(
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
_TIMELINE = _table(
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
    ("timeline.open", "activate", "enter", "", "show layer", "Show the layer in the table."),
    palette=False, footer="timeline.measure timeline.open",
)
_DIFF = _table(
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
_JOB = _table(
    "job",
    ("job.cancel", "cancel", "escape", "", "cancel or close",
     "Stop the job, after asking when it has run for a while; close the page when it has ended."),
    ("job.result", "result", "enter", "result", "open result", "Open what the job made."),
    ("job.again", "again", "f5", "finished", "run again", "Run the same job again."),
    ("job.copy", "copy_log", "y", "", "copy log", "Copy the log and the error, if there is one."),
    footer="job.cancel job.result job.again job.copy",
)
_ACTIVITY = _table(
    "activity",
    ("activity.run", "run", "f5", "valid", "run", "Run it with these settings."),
    ("activity.next_page", "next_page", "ctrl+pagedown", "", "next page", "Show the next page."),
    ("activity.previous_page", "previous_page", "ctrl+pageup", "", "previous page",
     "Show the previous page."),
    ("activity.defaults", "defaults", "f8", "", "defaults", "Set every field to its default."),
    ("activity.copy", "copy_command", "f9", "", "copy command", "Copy the equal command line."),
    footer="activity.run activity.next_page activity.defaults activity.copy", priority=True,
)
_SETTINGS = _table(
    "settings",
    ("settings.save", "save", "f5,ctrl+s", "valid", "save", "Write the settings and use them."),
    footer="settings.save", priority=True,
)
# fmt: on

COMMANDS: tuple[Command, ...] = (
    *_APP, *_PALETTE, *_START, *_WORKSPACE, *_PANES, *_WORK, *_EXPLORER, *_PARAMETERS,
    *_REPORT, *_REPORT_PANES, *_TIMELINE, *_DIFF, *_JOB, *_ACTIVITY, *_SETTINGS, *_PAGE, *_LIST,
    *_SORT,
)  # fmt: skip


@lru_cache(maxsize=1)
def by_id() -> Mapping[str, Command]:
    """Return the commands by their id."""
    return {command.id: command for command in COMMANDS}


@lru_cache(maxsize=64)
def in_scope(scope: str) -> tuple[Command, ...]:
    """Return the commands of a scope, in the order of the table."""
    return tuple(command for command in COMMANDS if command.scope == scope)


@lru_cache(maxsize=512)
def for_action(scope: str, action: str) -> Command | None:
    """Return the first command of a scope that runs an action, or None."""
    return next((row for row in in_scope(scope) if row.action_name == action), None)
