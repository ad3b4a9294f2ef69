"""The panes of a report or comparison."""
