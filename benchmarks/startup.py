"""Wall time of `ssmtool --help` and `ssmtool build --check` against `python -c "import click"`, in one run.

The target is a factor of 3. Run it with `make bench`; each command runs ROUNDS times in turn, and medians are compared.
A first round is not counted: it writes the byte code that every later start reads, as an installation does.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 21
ROOT = Path(__file__).parent.parent
COMMANDS = {
    'python -c "import click"': [sys.executable, "-c", "import click"],
    "ssmtool --help": [sys.executable, "-m", "ssmtool", "--help"],
    "ssmtool build --check": [sys.executable, "-m", "ssmtool", "build", "--check"],
}


def main() -> None:
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for number in range(1 + ROUNDS):
        for name, command in COMMANDS.items():
            started = time.perf_counter()
            subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, env=environment)
            if number:
                seconds[name].append(time.perf_counter() - started)
    base = statistics.median(seconds['python -c "import click"'])
    print(f"{'command':28} {'median ms':>9} {'factor':>7}")
    for name, times in seconds.items():
        median = statistics.median(times)
        print(f"{name:28} {1000 * median:9.1f} {median / base:7.2f}")


if __name__ == "__main__":
    main()
