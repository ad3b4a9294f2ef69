"""Activities: forms, running jobs, and what remains of them."""
