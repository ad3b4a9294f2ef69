"""Commands on reports, engine plans and comparisons."""
