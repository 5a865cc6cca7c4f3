"""`python -m otel_loopguard.cli`."""

import sys

from otel_loopguard.cli import main

if __name__ == "__main__":
    sys.exit(main())
