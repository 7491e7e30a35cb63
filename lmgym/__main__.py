"""`python -m lmgym`: the command line."""

from lmgym.cli import main

if __name__ == "__main__":
    main()
