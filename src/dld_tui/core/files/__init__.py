"""Model files on disk: read in parts, cut, checked, and written atomically."""
