"""Programs of others, each in a process with limits."""
