"""What the program keeps for its user: settings, connections, tools, plugins; where they lie."""
