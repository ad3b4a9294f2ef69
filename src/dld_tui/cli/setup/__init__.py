"""Commands about what the program uses: targets, tools, what this machine has."""
