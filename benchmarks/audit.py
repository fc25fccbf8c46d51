"""How fast real PTX is parsed and audited, and how much memory that takes, against the `ptx-parser` wheel.

Targets: 10 MB/s or better on one core, memory at most 40 times the text, a 100 MB file works. The text is the
product's own PTX, its kernels repeated under new names to the size asked for: `python benchmarks/audit.py [MB]`.
`ptx-parser` (Rust, PyPI) parses only; install it to have it measured on the same text. Run with `make bench`.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ssmtool.header import read_header
from ssmtool.project import find_project

ROOT = Path(__file__).parent.parent
# Each engine runs in a process of its own, so that its peak memory is its own.
ENGINES = ("ssmtool parse", "ssmtool parse + audit", "ptx-parser parse")


def enlarge(ptx: str, size: int) -> str:
    """The kernels of `ptx` again and again, each copy under new names, until `size` bytes."""
    start = ptx.index(".visible .entry")
    head, body = ptx[:start], ptx[start:]
    parts = [head]
    length = len(head)
    while length < size:
        copy = re.sub(r"\bfc_|(?<=\$L__BB)", f"x{len(parts)}_", body)
        parts.append(copy)
        length += len(copy)
    return "".join(parts)


def run(engine: str, path: Path) -> None:
    """Parse (and audit) the file; print seconds, peak memory in bytes, and what was recognised."""
    text = path.read_text()
    if engine == "ptx-parser parse":
        import ptx_parser

        started = time.perf_counter()
        parsed = ptx_parser.parse_ptx(text)
        found = type(parsed).__name__
    else:
        from ssmtool.audit.inputs import read_input
        from ssmtool.audit.kernels import audit
        from ssmtool.ptx import parse

        started = time.perf_counter()
        if engine == "ssmtool parse":
            found = f"{len(parse(text).functions)} kernels"
        else:
            found = f"{len(audit(read_input(str(path)), []).kernels)} kernels"
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    size = len(text)
    print(f"{engine:24} {size / 1e6 / seconds:8.1f} MB/s {peak / size:6.1f} x the text   {found}")


def main() -> None:
    if len(sys.argv) == 3:
        run(sys.argv[1], Path(sys.argv[2]))
        return
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    ptx = read_header(find_project(ROOT).header_path).modules[0].ptx
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.ptx"
        path.write_text(enlarge(ptx, int(megabytes * 1e6)))
        print(f"{path.stat().st_size / 1e6:.0f} MB of PTX")
        for engine in ENGINES:
            ran = subprocess.run(
                [sys.executable, __file__, engine, str(path)], capture_output=True, text=True, timeout=600
            )
            last = (ran.stderr.strip() or "no output").splitlines()[-1]
            print(ran.stdout.rstrip() if ran.returncode == 0 else f"{engine:24} did not run: {last}")


if __name__ == "__main__":
    main()
