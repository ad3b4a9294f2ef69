"""The parameters pane: everything about the node or scope under the cursor."""
