"""Steps of nodes from version to version of their operators."""
