"""Where a build of the product's kernels spends its time, and how large the header is against the PTX it carries.

Targets: over 90 % of the build inside the compiler; the header within 10 % of its PTX. Run it with `make bench`.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from ssmtool.build.pipeline import compile_project
from ssmtool.header import read_header
from ssmtool.project import find_project

ROUNDS = 15


def main() -> None:
    project = find_project(Path(__file__).parent.parent)
    compile_project(project)
    builds = [compile_project(project) for _ in range(ROUNDS)]
    total = statistics.median(build.seconds for build in builds)
    inside = statistics.median(build.compile_seconds / build.seconds for build in builds)
    print(f"build of {len(builds[0].modules[0].held.entry_names)} kernels with {builds[0].compiler.info.title}:")
    print(f"  {1000 * total:.0f} ms, {100 * inside:.1f} % of it inside the compiler (median of {ROUNDS})")
    header = read_header(project.header_path)
    carried = sum(len(module.ptx.encode()) for module in header.modules)
    print(f"  header {len(header.data)} bytes, PTX {carried} bytes: {len(header.data) / carried:.3f}")


if __name__ == "__main__":
    main()
