"""Reusable views; they know core data, never the app."""
