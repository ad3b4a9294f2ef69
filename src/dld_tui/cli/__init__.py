"""The command line: one module a command, none of them imports the user interface."""
