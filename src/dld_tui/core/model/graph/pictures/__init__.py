"""Pictures of graphs: their content, layout in pixels, and drawing as SVG, PNG, JPEG and text."""
