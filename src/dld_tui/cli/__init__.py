"""The command line; of its modules only :mod:`.tui` imports the user interface, to start it."""

COMPLETE = "_DLD_COMPLETE"
"""The environment variable through which a completion script asks."""
