"""Compare the executor's approximation units with a card's on all 2^32 inputs, with and without .ftz.

    python tools/numerics/every_input.py OUT.json [DEVICE] [PART]

DEVICE is a word of `--device` (default cuda:0). PART takes every PART-th block of 2^22 inputs only: 64 is a first look,
and the file says so. The machine code compared is the executor's own, as kernels run it. Writes counts, the first
inputs that differ, and the first half of SHA-256 of each form's results, 32 bits each, little-endian, in the order of
the inputs. Exit code 1 when any bit differs.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from ssmtool.device import open_devices  # noqa: E402
from ssmtool.device.diagnose import machine  # noqa: E402
from ssmtool.execute.numerics import approx  # noqa: E402
from ssmtool.execute.numerics.harness import Mapped, compile_one  # noqa: E402
from ssmtool.files import write_atomic  # noqa: E402

FORMAT = "ssmtool-units/1"
BLOCK = 1 << 22
_EXAMPLES = 4
_WAITING = 24
FORMS = tuple(f"{unit}.approx{ftz}.f32" for unit in approx.UNITS for ftz in (".ftz", ""))

_ENTRY = """
.visible .entry k{number}(.param .u64 out, .param .u32 first) {{
    .reg .b64 to, off; .reg .b32 i, n, t, x; .reg .f32 v;
    ld.param.u64 to, [out]; ld.param.u32 x, [first];
    mov.u32 i, %ctaid.x; mov.u32 n, %ntid.x; mov.u32 t, %tid.x; mad.lo.u32 i, i, n, t;
    mul.wide.u32 off, i, 4; add.u64 to, to, off;
    add.u32 x, x, i; mov.b32 v, x;
    {form} v, v;
    mov.b32 x, v; st.global.u32 [to], x; ret;
}}
"""


def ptx() -> str:
    """One entry for each form: out[i] = the form of the float with bits first + i."""
    entries = (_ENTRY.format(number=number, form=form) for number, form in enumerate(FORMS))
    return ".version 7.4\n.target sm_37\n.address_size 64\n" + "".join(entries)


def model(form: str) -> Mapped:
    """The executor's machine code of a form."""
    unit = form.partition(".")[0]
    return compile_one(lambda b, v: approx.approx(b, unit, v[0], ".ftz" in form), ("f32",), "f32")


class Tally:
    """What a form's blocks came to."""

    def __init__(self) -> None:
        self.inputs = self.different = 0
        self.examples: list[list[str]] = []
        self.digest = hashlib.sha256()

    def add(self, first: int, got: NDArray[np.uint32], expected: Future[NDArray[np.uint32]]) -> None:
        """One block, as soon as the executor's side of it is there."""
        want = expected.result()
        self.inputs += got.size
        places = np.flatnonzero(got != want)
        self.different += int(places.size)
        for place in places[: _EXAMPLES - len(self.examples)]:
            self.examples.append(
                [f"0x{first + int(place):08x}", f"0x{int(want[place]):08x}", f"0x{int(got[place]):08x}"]
            )
        self.digest.update(got.astype("<u4").tobytes())

    def to_json(self) -> dict[str, Any]:
        """`examples` are [input, executor, card], as bits."""
        found = {"inputs": self.inputs, "different": self.different, "examples": self.examples}
        return found | {"digest": self.digest.hexdigest()[:32]}


def compare(form: str, number: int, card: Any, part: int, pool: ThreadPoolExecutor) -> Tally:
    """All blocks of one form: card, executor and comparison side by side, the last in the order of the inputs."""
    mapped, tally = model(form), Tally()
    waiting: deque[Future[None]] = deque()
    with ThreadPoolExecutor(1) as comparing:
        for first in range(0, 1 << 32, BLOCK * part):
            want = pool.submit(mapped, np.arange(first, first + BLOCK, dtype=np.uint32))
            got = np.zeros(BLOCK, np.uint32)
            card.launch(f"k{number}", BLOCK // 256, 256, [got, first])
            waiting.append(comparing.submit(tally.add, first, got, want))
            while len(waiting) > _WAITING:
                waiting.popleft().result()
        for each in waiting:
            each.result()
    return tally


def main(out: str, device: str = "cuda:0", part: str = "1") -> int:
    """Compare, print a line for each form, write the file."""
    began = time.monotonic()
    with open_devices(device) as (opened,), ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 2)) as pool:
        card, properties = opened.load(ptx()), opened.properties
        forms = {}
        for number, form in enumerate(FORMS):
            forms[form] = compare(form, number, card, int(part), pool).to_json()
            seconds = time.monotonic() - began
            print(
                f"{form}: {forms[form]['inputs']} inputs, {forms[form]['different']} differ; {seconds:.0f} s",
                flush=True,
            )
        real = opened.real
    document = {
        "format": FORMAT,
        "model": properties.model,
        "target": properties.target,
        "driver": ".".join(map(str, properties.driver)) if properties.driver else None,
        "driver_version": machine().version if real else None,
        "binding": properties.binding,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "evidence": "answers of a card" if real else "the executor against itself: no evidence about any card",
        "every_input": int(part) == 1,
        "seconds": round(time.monotonic() - began, 1),
        "forms": forms,
    }
    write_atomic(Path(out), (json.dumps(document, indent=1) + "\n").encode())
    return 1 if any(form["different"] for form in forms.values()) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
