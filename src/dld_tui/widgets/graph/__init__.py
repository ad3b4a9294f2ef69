"""The graph pane and its views."""
