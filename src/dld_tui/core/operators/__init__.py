"""What is known of operators: signatures, defaults, documentation, categories."""
