"""Types of values: declared, inferred, and made stale by edits."""
