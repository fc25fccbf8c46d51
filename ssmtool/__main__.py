"""`python -m ssmtool`."""

from ssmtool.cli import main

if __name__ == "__main__":
    main(prog_name="ssmtool")
