"""The state of a machine: checks, an end-to-end self-test, TensorRT libraries."""
