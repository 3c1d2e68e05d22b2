"""`python -m agency.cli`: the command line where its script is not on the path."""

from agency.cli.main import main

main()
