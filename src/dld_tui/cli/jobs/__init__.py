"""Commands that run an activity, here or on a target, and what they print of its result."""
