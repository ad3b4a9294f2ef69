"""Commands about a model: what is in it, what is wrong with it, changes, parts, pictures."""
