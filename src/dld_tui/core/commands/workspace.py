"""The workspace: files, history, moving about, panes."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_WORKSPACE = table(
    "workspace",
    ("model.profile", "profile", "f5", "", "profile", "Measure this model with ONNX Runtime."),
    ("model.build", "build", "f6", "", "build engine", "Build a TensorRT engine of this model."),
    ("model.profile_tensorrt", "profile_tensorrt", "shift+f5", "", "profile with TensorRT",
     "Measure this model with TensorRT."),
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
    ("view.constants", "toggle_constants", "C", "", "constants",
     "Show or hide all constant nodes."),
    ("view.constant", "toggle_constant", "W", "node", "this constant",
     "Show or hide the constants of the node at the cursor, or the constant itself."),
    ("view.by", "cycle_by", "b", "", "list by", "List by type, by name or by name scope."),
    ("view.maximise", "maximise_pane", "m", "", "maximise", "Give the pane all the room."),
    ("view.reset", "reset_layout", "", "", "reset layout",
     "Show all panes in their first order and sizes."),
    ("view.hide_pane", "hide_pane", "underscore", "", "hide pane",
     "Hide the pane; its number shows it again."),
    ("view.show_panes", "show_panes", "", "", "show panes", "Show the hidden panes again."),
    ("view.move_left", "move_pane -1", "ctrl+left", "", "move pane left",
     "Let the pane change places with the one at its left, or above it."),
    ("view.move_right", "move_pane 1", "ctrl+right", "", "move pane right",
     "Let the pane change places with the one at its right, or below it."),
    ("view.documentation", "documentation", "D", "node", "documentation",
     "Show the operator's documentation."),
    ("view.clear_filters", "clear_filters", "", "", "clear filters", "Show all nodes again."),
    ("view.grow", "grow_pane", "greater_than_sign", "", "larger pane", "Make the pane larger."),
    ("view.shrink", "shrink_pane", "less_than_sign", "", "smaller pane",
     "Make the pane smaller."),
    ("view.save_layout", "save_layout", "", "", "save layout",
     "Keep the layout of the panes by a name."),
    ("view.choose_layout", "choose_layout", "", "", "choose layout",
     "Take a layout of the panes that was kept."),
    ("edit.copy_name", "copy_name", "", "", "copy name", "Copy the name at the cursor."),
    ("model.allow_links", "allow_links", "", "", "allow links",
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
    ("pane.1", "pane 1", "1", "", "pane 1", "Go to pane 1."),
    ("pane.2", "pane 2", "2", "", "pane 2", "Go to pane 2."),
    ("pane.3", "pane 3", "3", "", "pane 3", "Go to pane 3."),
    ("pane.4", "pane 4", "4", "", "pane 4", "Go to pane 4."),
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
