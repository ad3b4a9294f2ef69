"""Commands that print what was measured or built: reports, engines, comparisons."""
