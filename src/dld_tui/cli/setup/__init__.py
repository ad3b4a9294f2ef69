"""Commands on targets, custom tools and this installation."""
