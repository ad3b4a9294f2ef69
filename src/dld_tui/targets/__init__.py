"""Where a job runs: a child process on this machine; the protocol is the same everywhere."""
