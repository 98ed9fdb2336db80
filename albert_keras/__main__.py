"""`python -m albert_keras` is the command `albert-keras`."""

import sys

from albert_keras.cli import main

if __name__ == "__main__":
    sys.exit(main())
