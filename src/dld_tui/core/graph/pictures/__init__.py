"""Pictures of graphs: what is drawn, where in pixels, and as SVG, PNG, JPEG and text."""
