"""Pages of results: reports, engine plans, logs, comparisons, accuracy, tuning, tables."""
