"""`python -m ssmtool.doctor`: the same with the standard library alone, for when `ssmtool` does not start."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> int:
    """Print the report, as JSON with `--json`; 0, or 1 when something needed is broken, or 2 for another argument."""
    from ssmtool.doctor.run import examine
    from ssmtool.report.doctor import print_doctor

    if sys.argv[1:] not in ([], ["--json"]):
        print("usage: python -m ssmtool.doctor [--json]", file=sys.stderr)
        return 2
    report = examine(Path.cwd())
    if sys.argv[1:]:
        print(json.dumps(report.to_json(), indent=2))
    else:
        print_doctor(report)
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
