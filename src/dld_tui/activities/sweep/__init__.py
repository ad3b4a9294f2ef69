"""A model measured at several sizes, prompts, settings and precisions, on several targets."""
