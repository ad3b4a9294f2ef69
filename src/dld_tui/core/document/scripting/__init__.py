"""Edits as lines of text: their arguments, the scripts and the journal that are made of them."""
