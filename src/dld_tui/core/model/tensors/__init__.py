"""Values of tensors of any size: generated, converted, inspected, read and written as .npy."""
