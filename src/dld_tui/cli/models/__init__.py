"""Commands on models: inspect, check, diff, edit, extract, draw."""
