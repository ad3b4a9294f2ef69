"""Types of values: as the model states them, as they are inferred, and which an edit made stale."""
