"""Metadata, layer precision, optimization profiles."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_WORKSPACE = table(
    "workspace",
    ("layer.precision", "metadata.choose_precision", "P", "nodes", "precision",
     "Set the TensorRT precision of the marked nodes, or of the one at the cursor."),
    ("mark.precision", "selection.mark_precision", "", "", "mark precision",
     "Mark the nodes that are set to one precision."),
    ("model.metadata", "metadata.show", "t", "", "metadata",
     "Show and change doc strings, metadata, producer, IR version, value types."),
    ("model.profiles", "metadata.show_profiles", "", "", "shape profiles",
     "Edit the optimization profiles: the smallest, usual and largest input shapes."),
    common="document",
    menus={
        "model.metadata": "node scope metadata",
        "model.profiles": "boundary scope",
    },
)
_METADATA = table(
    "metadata",
    ("metadata.edit", "edit", "e,enter", "entry", "edit", "Edit the text or type at the cursor."),
    ("metadata.add", "add", "a", "", "add entry", "Add a metadata entry to this part."),
    ("metadata.delete", "delete", "delete,d", "entry", "delete",
     "Remove the entry, the text or the declared type."),
    ("metadata.undo", "edits.undo", "u,ctrl+z", "can_undo", "undo", "Take back the last edit."),
    ("metadata.redo", "edits.redo", "ctrl+y,ctrl+r", "can_redo", "redo",
     "Do again what was taken back."),
    footer="metadata.edit metadata.add metadata.delete metadata.undo",
)
_PROFILES = table(
    "profiles",
    ("profiles.edit", "edit", "e,enter", "range", "edit", "Edit the shapes of this input."),
    ("profiles.add", "add", "a", "dynamic", "add profile", "Add a profile."),
    ("profiles.delete", "delete", "delete,d", "range", "delete",
     "Remove the profile at the cursor."),
    ("profiles.undo", "edits.undo", "u,ctrl+z", "can_undo", "undo", "Take back the last edit."),
    ("profiles.redo", "edits.redo", "ctrl+y,ctrl+r", "can_redo", "redo",
     "Do again what was taken back."),
    footer="profiles.edit profiles.add profiles.delete profiles.undo",
)

ROWS: tuple[Command, ...] = (*_WORKSPACE, *_METADATA, *_PROFILES)
