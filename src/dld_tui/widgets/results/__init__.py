"""Views of profile reports and engines: summaries, details, tables of layers."""
