"""Parts of a model: copied, cut out, made models of their own, compiled by a provider."""
