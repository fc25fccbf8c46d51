"""`python -m ssmtool`, and the entry point of the `ssmtool` command.

Nothing but this file is loaded when the guard below is in place, so that Ctrl-C while the rest is being imported ends
in one line too.
"""

import os
import sys


def main() -> None:
    """Run the command line and end the process with its exit code; 130 after Ctrl-C. Never returns."""
    code = 130
    try:
        from ssmtool.streams import guard_streams, undelivered

        guard_streams()
        from ssmtool.cli import run

        code = run(sys.argv[1:])
        code = undelivered(code)
    except KeyboardInterrupt:
        os.write(2, b"interrupted\n")
    # Taking the interpreter apart costs 10 ms, and there is nothing left to do: streams are flushed, files closed.
    os._exit(code)


if __name__ == "__main__":
    main()
