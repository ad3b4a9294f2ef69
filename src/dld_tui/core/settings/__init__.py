"""Settings of the user: configuration, saved targets, tools, secrets, plugins, and their paths."""
