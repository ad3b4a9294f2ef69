"""The explorer pane: the nodes of a model as rows, with filters and findings."""
