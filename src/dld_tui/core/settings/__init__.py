"""What the program keeps for its user: settings, connections, tools, and where they lie."""
