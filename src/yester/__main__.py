"""`python -m yester` is `yester`."""

from yester.cli import main

main()
