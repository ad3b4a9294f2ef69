"""Commands that run an activity, here or on a target, and print its result."""
