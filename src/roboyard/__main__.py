"""`python -m roboyard` is the command `roboyard`."""

from roboyard.cli.main import main

main()
