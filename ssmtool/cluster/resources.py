"""Which workers a run may use: the resource that each has to have, by the words of `--device` and `--require`.

CPU      a worker that runs the executor
GPU      a worker with one card of its own
sm_37    the same, of that compute capability; a die of a K80 has GPU and sm_37
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from ssmtool.errors import SsmtoolError

CPU = "CPU"
GPU = "GPU"
_WORD = re.compile(r"(cpu|all|cuda|cuda-bindings|ctypes|pycuda)(:\d+)?")
_REQUIRE = re.compile(r"sm_\d{2,3}")


@dataclass(frozen=True)
class Wanted:
    """One kind of device. `word` is how results name it and how a worker opens it; `require` is `sm_37` or None."""

    word: str
    resource: str
    require: str | None = None


def start_command(resource: str, address: str = "ADDRESS") -> str:
    """How a worker with a resource is started: for the CPU as many as there are processors, else one for each card."""
    if resource == CPU:
        return f"dask worker {address} --nworkers -1 --nthreads 1 --resources CPU=1"
    has = f"{resource}=1" if resource == GPU else f"GPU=1 {resource}=1"
    return f"CUDA_VISIBLE_DEVICES=0 dask worker {address} --nthreads 1 --resources '{has}'"


def choose(device: str | None, require: str | None, there: Collection[str]) -> tuple[Wanted, ...]:
    """The kinds of devices to run on, where the workers have the resources `there`.

    Without words the cards, or the CPU when no worker has one, as on one machine. Several words are run on each, and
    compared. Raises SsmtoolError for words that mean nothing here.
    """
    if require is not None and not _REQUIRE.fullmatch(require):
        raise SsmtoolError(f"--require {require}: expected a compute capability such as sm_37")
    card = require or GPU
    if device is None:
        return (Wanted("cuda", card, require),) if require or GPU in there else (Wanted("cpu", CPU),)
    found: list[Wanted] = []
    for word in (each.strip() for each in device.split(",")):
        match = _WORD.fullmatch(word)
        if match is None:
            raise SsmtoolError(f"--device {word or 'of nothing'}: expected cpu, cuda, cuda-bindings, ctypes, pycuda, "
                               "all, or several with commas")  # fmt: skip
        if match[2]:
            raise SsmtoolError(f"--device {word}: each worker has one card of its own, so with --scheduler there are "
                               "no numbers", hint=f"--device {match[1]}")  # fmt: skip
        if word == "all":
            found.append(Wanted("cpu", CPU))
            found += [Wanted("cuda", card, require)] if require or GPU in there else []
        else:
            found.append(Wanted("cpu", CPU) if word == "cpu" else Wanted(word, card, require))
    if len({each.word for each in found}) != len(found):
        raise SsmtoolError(f"--device {device}: a device is named twice")
    if len({each.resource for each in found}) != len(found):
        raise SsmtoolError(f"--device {device}: with --scheduler the cards are driven through one library")
    if require is not None and all(each.resource == CPU for each in found):
        raise SsmtoolError(f"--require {require} needs a card, and --device {device} names the executor alone")
    return tuple(found)
