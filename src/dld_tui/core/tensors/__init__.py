"""Making, converting, looking at and exchanging the values of tensors, of any size."""
