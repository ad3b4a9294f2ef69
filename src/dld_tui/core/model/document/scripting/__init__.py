"""Edits as lines of text: arguments, scripts and the journal."""
