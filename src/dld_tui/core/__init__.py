"""What the program knows about models, reports and jobs, with no user interface."""
