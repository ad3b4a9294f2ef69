"""The command line: one module a command, none of them imports the user interface."""

COMPLETE = "_DLD_COMPLETE"
"""The environment variable through which a completion script asks."""
