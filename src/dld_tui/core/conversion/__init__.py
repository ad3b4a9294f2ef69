"""Modifications of whole models: each makes a copy, and says what is another in it."""
