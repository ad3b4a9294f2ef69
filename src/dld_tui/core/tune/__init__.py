"""The fastest set-up of a model: what may be changed, the race between set-ups, its result."""
