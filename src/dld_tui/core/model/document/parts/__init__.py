"""Parts of a model: fragments to paste, extracted models, compiled contexts of providers."""
