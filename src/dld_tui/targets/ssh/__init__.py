"""Jobs on a machine that is reached over SSH."""
