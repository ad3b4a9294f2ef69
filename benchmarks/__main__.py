"""``python -m benchmarks``: all benchmarks, one after the other."""

import sys

from benchmarks.run_all import main

sys.exit(main(sys.argv[1:]))
