"""Models, reports and jobs, without a user interface."""
