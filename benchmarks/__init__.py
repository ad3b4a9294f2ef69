"""Speed and memory beside the peers, in one run. Start them with ``make bench``."""
