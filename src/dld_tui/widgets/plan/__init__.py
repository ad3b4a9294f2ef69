"""The panes of an engine plan."""
