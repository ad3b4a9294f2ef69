"""What a machine has and whether it works: checks, a test end to end, TensorRT libraries."""
