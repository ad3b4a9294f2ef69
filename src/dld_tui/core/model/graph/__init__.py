"""What the graph pane and pictures draw: order, rails, folding, layout, routes, focus."""
