"""The report screen."""
