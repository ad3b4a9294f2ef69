"""The workspace: a page of one open model, and a controller for each of its concerns."""
