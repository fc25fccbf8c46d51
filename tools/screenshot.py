"""Write docs/images/ci.svg and ci-wrong.svg: what `ssmtool ci` prints on a terminal, all well and with a mistake.

    python tools/screenshot.py [ci] [ci-wrong]

Each runs the real command on a pseudo-terminal of 120 columns, and draws its standard output; progress, which is on
standard error and goes away, is not in it. `ci-wrong` runs in a scratch copy of examples/vector_kernels that has lost a
barrier and was built again. The title says when and on what. The pictures load nothing and have a background of their
own, so they are the same on light and dark pages.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
COLUMNS = 120
# The barrier in the tree of vec_rms_norm.
_ADD = "            sums[thread] = __fadd_rn(sums[thread], sums[thread + stride]);\n"
RIGHT, WRONG = f"{_ADD}        __syncthreads();\n", _ADD

# rich's own template without its fonts from the web, which GitHub does not load.
_TEMPLATE = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
  <style>
    .{unique_id}-matrix {{
      font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace;
      font-size: {char_height}px;
      line-height: {line_height}px;
      font-variant-east-asian: full-width;
    }}
    .{unique_id}-title {{ font-size: 16px; font-family: sans-serif; }}
    {styles}
  </style>
  <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
    </clipPath>
    {lines}
  </defs>
  {chrome}
  <g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">{matrix}</g>
  </g>
</svg>
"""


def on_a_terminal(arguments: list[str], folder: Path) -> tuple[int, str]:
    """Exit code and standard output of `ssmtool ARGUMENTS` on a terminal."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    child = subprocess.Popen(
        [sys.executable, "-m", "ssmtool", *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=subprocess.DEVNULL,
    )
    os.close(follower)
    data = io.BytesIO()
    try:
        while chunk := os.read(leader, 65536):
            data.write(chunk)
    except OSError:
        pass  # how Linux says that the other side is closed
    os.close(leader)
    return child.wait(), data.getvalue().decode().replace("\r\n", "\n")


def machine() -> str:
    """Processor and cores."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.partition(":")[2] for line in lines if line.startswith("model name")), "x86-64")
    for noise in ("(R)", "(TM)", "Processor", "CPU"):
        name = name.replace(noise, "")
    return f"{len(os.sched_getaffinity(0))} cores, {' '.join(name.split())}, no GPU"


def svg(command: str, output: str, title: str, name: str) -> str:
    """The terminal as a picture."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
    console.print(Text.from_ansi(output.rstrip("\n")), soft_wrap=False)
    drawn = console.export_svg(title=title, theme=SVG_EXPORT_THEME, code_format=_TEMPLATE, unique_id=name)
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


def broken(folder: Path) -> Path:
    """A copy of the example project without a barrier, built again; its folder."""
    project = folder / "vector_kernels"
    shutil.copytree(ROOT / "examples" / "vector_kernels", project)
    source = project / "kernels" / "vector.cu"
    text = source.read_text("utf-8")
    assert RIGHT in text, f"{source.name} no longer has {RIGHT}"
    source.write_text(text.replace(RIGHT, WRONG), "utf-8")
    subprocess.run([sys.executable, "-m", "ssmtool", "build", "--quiet"], cwd=project, check=True)
    return project


def main(names: list[str]) -> None:
    """Draw the pictures of these names, all without one."""
    IMAGES.mkdir(exist_ok=True)
    title = f"{datetime.now(timezone.utc):%Y-%m-%d}, {machine()}"
    if not names or "ci" in names:
        code, output = on_a_terminal(["ci"], ROOT)
        assert code == 0, output
        (IMAGES / "ci.svg").write_text(svg("ssmtool ci", output, title, "ci"), "utf-8")
    if not names or "ci-wrong" in names:
        with tempfile.TemporaryDirectory() as scratch:
            code, output = on_a_terminal(["ci"], broken(Path(scratch)))
        assert code == 1, output
        (IMAGES / "ci-wrong.svg").write_text(svg("ssmtool ci", output, title, "wrong"), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
