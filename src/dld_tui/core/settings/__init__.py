"""Settings of the user: configuration, saved targets, tools, secrets, and what pages remember."""
