"""The errors of tensors, and what a search of precisions or tactics found."""
