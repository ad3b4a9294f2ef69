"""Settings and custom tools."""
