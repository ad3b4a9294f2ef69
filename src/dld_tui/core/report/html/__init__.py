"""Self-contained HTML pages of reports and comparisons."""
