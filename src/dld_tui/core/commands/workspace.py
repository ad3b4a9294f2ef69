"""The workspace: files, history, moving about, panes."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_WORKSPACE = table(
    "workspace",
    ("model.profile", "profiling.profile", "f5", "", "profile",
     "Measure this model with ONNX Runtime."),
    ("model.build", "profiling.build", "f6", "", "build engine",
     "Build a TensorRT engine of this model."),
    ("model.profile_tensorrt", "profiling.profile_tensorrt", "shift+f5", "",
     "profile with TensorRT",
     "Measure this model with TensorRT."),
    ("model.save", "saving.save", "ctrl+s", "", "save", "Save the model."),
    ("model.save_as", "saving.save_as", "ctrl+shift+s,S,f12", "", "save as",
     "Save under another name."),
    ("edit.undo", "history.undo", "u,ctrl+z", "can_undo", "undo", "Take back the last edit."),
    ("edit.redo", "history.redo", "ctrl+y,ctrl+r", "can_redo", "redo",
     "Do again what was taken back."),
    ("edit.rename", "editing.rename", "r", "node", "rename",
     "Rename the node or value at the cursor."),
    ("edit.change", "editing.edit", "e", "attribute", "edit", "Edit the value at the cursor."),
    ("edit.delete", "editing.delete", "delete,d", "nodes", "delete",
     "Delete the marked nodes, or the one at the cursor."),
    ("edit.revert", "editing.revert", "backslash", "attribute", "revert",
     "Set the attribute back to its default."),
    ("go.back", "navigation.go_back", "backspace", "history", "back",
     "Go back to before the last jump."),
    ("go.forward", "navigation.go_forward", "shift+backspace,B", "forward", "forward",
     "Go forward again."),
    ("go.source", "navigation.go_source", "left_square_bracket", "node", "to source",
     "Go to the node that makes the first input."),
    ("go.destination", "navigation.go_destination", "right_square_bracket", "node",
     "to destination",
     "Go to a node that uses the output."),
    ("go.body", "navigation.open_body", "s", "body", "open body",
     "Open the node's subgraph or function."),
    ("view.filter", "node_list.filter", "f", "", "filter",
     "Filter by operator type and attributes."),
    ("view.constants", "node_list.toggle_constants", "C", "", "constants",
     "Show or hide all constant nodes."),
    ("view.constant", "node_list.toggle_constant", "W", "node", "this constant",
     "Show or hide the constants of the node at the cursor, or the constant itself."),
    ("view.by", "node_list.cycle_view", "b", "", "list by",
     "List by type, by name or by name scope."),
    ("view.maximise", "panes.maximise", "m", "", "maximise", "Give the pane all the room."),
    ("view.reset", "panes.reset_layout", "", "", "reset layout",
     "Show all panes in their first order and sizes."),
    ("view.hide_pane", "panes.hide", "underscore", "", "hide pane",
     "Hide the pane; its number shows it again."),
    ("view.show_panes", "panes.show_all", "", "", "show panes", "Show the hidden panes again."),
    ("view.move_left", "panes.move -1", "ctrl+left", "", "move pane left",
     "Let the pane change places with the one at its left, or above it."),
    ("view.move_right", "panes.move 1", "ctrl+right", "", "move pane right",
     "Let the pane change places with the one at its right, or below it."),
    ("view.documentation", "node_list.documentation", "D", "node", "documentation",
     "Show the operator's documentation."),
    ("view.clear_filters", "node_list.clear_filters", "", "", "clear filters",
     "Show all nodes again."),
    ("view.grow", "panes.grow", "greater_than_sign", "", "larger pane", "Make the pane larger."),
    ("view.shrink", "panes.shrink", "less_than_sign", "", "smaller pane",
     "Make the pane smaller."),
    ("view.save_layout", "panes.save_layout", "", "", "save layout",
     "Keep the layout of the panes by a name."),
    ("view.choose_layout", "panes.choose_layout", "", "", "choose layout",
     "Take a layout of the panes that was kept."),
    ("edit.copy_name", "editing.copy_name", "", "", "copy name", "Copy the name at the cursor."),
    ("model.allow_links", "checks.allow_links", "", "", "allow links",
     "Read external data through links that leave the model's folder."),
    common="document", footer="model.profile model.save edit.undo edit.change",
    menus={
        "edit.rename": "input output boundary",
        "edit.change": "output boundary metadata",
        "edit.delete": "boundary metadata",
        "edit.copy_name": "node input output boundary attribute initializer scope",
        "go.body": "scope",
        "view.filter": "scope",
    },
)
_PANES = table(
    "workspace",
    ("pane.1", "panes.go_to 1", "1", "", "pane 1", "Go to pane 1."),
    ("pane.2", "panes.go_to 2", "2", "", "pane 2", "Go to pane 2."),
    ("pane.3", "panes.go_to 3", "3", "", "pane 3", "Go to pane 3."),
    ("pane.4", "panes.go_to 4", "4", "", "pane 4", "Go to pane 4."),
    palette=False,
)
_WORK = table(
    "workspace",
    ("work.stop", "stop", "escape", "", "stop", "Stop opening or saving."),
    palette=False,
)
_EXPLORER = table(
    "explorer",
    ("explorer.fold", "toggle_fold", "z", "", "fold", "Fold or unfold the branch."),
    palette=False,
)
_ALL = table(
    "explorer",
    ("explorer.sort", "sort_next", "o", "", "sort", "Sort by the next column."),
    ("explorer.reverse", "sort_reverse", "tilde", "", "reverse order", "Reverse the order."),
    ("explorer.unfold_all", "unfold_all", "Z", "", "unfold all", "Unfold every branch."),
    ("explorer.fold_all", "fold_all", "", "", "fold all", "Fold every branch."),
)
_PARAMETERS = table(
    "parameters",
    ("parameters.fold", "toggle_fold", "z", "", "fold", "Fold or unfold the row."),
    ("parameters.leave", "leave", "escape", "", "to layers",
     "Stop reading a tensor, or else go back to the layers."),
    palette=False,
)
# fmt: on

ROWS: tuple[Command, ...] = (*_WORKSPACE, *_PANES, *_WORK, *_EXPLORER, *_ALL, *_PARAMETERS)
