"""Which modifiers each instruction may have: a word that is none of them is reported, and its meaning not guessed.

From the syntax box of each instruction in the PTX ISA manual (to 9.1). A row is the instruction as `isa_table` names it
(several that are alike in one row), then a colon and its words. Types are not in the rows: any type the front end knows
(`TYPE_BITS`) passes. A word `a::b` stands in the rows as it is written.

Only instructions in these rows are checked. Textures, surfaces, matrices, asynchronous copies, `mbarrier`, `multimem`,
fences and clusters gain words with nearly every release: there a new word passes unseen.
"""

from __future__ import annotations

from functools import cache, lru_cache

from ssmtool.ptx import isa
from ssmtool.ptx.opcode import TYPE_BITS

# Groups of words, by the name that rows give them.
_GROUPS = {
    "ROUND": "rn rz rm rp",
    "COMPARE": "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan",
    "BOOL": "and or xor",
    "SCOPE": "cta cluster gpu sys",
    "SPACE": "const global local param param::entry param::func shared shared::cta shared::cluster",
    "VECTOR": "v2 v4 v8",
    "CACHED": "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate L2::evict_last"
    " L2::evict_normal L2::evict_first L2::cache_hint L2::64B L2::128B L2::256B",
    "VIDEO": "sat add min max shr7 shr15 po clamp wrap",
}

# Those that always have a type, then those that have a form without.
_TYPED = """
add sub: ROUND ftz sat cc
addc subc: cc
mul: hi lo wide ROUND ftz sat
mad: hi lo wide ROUND ftz sat cc
madc: hi lo cc
mul24 mad24: hi lo sat
sad rem popc clz brev and or xor not cnot shl shr bfe bfi fns copysign selp mov:
div: approx full ROUND ftz
abs neg: ftz
min max: ftz NaN xorsign abs relu
fma: ROUND ftz sat relu oob
dp4a:
dp2a: lo hi
bfind: shiftamt
bmsk szext: clamp wrap
prmt: f4e b4e rc8 ecl ecr rc16
lop3: and or
shf: l r clamp wrap
testp: finite infinite number notanumber normal subnormal
rcp sqrt: approx ROUND ftz
rsqrt sin cos lg2 ex2 tanh: approx ftz
set setp: COMPARE BOOL ftz
slct: ftz
cvt: ROUND rna rs rni rzi rmi rpi ftz sat satfinite relu scaled::n2::ue8m0
cvt.pack: pack sat
cvta: to SPACE
ld: weak volatile relaxed acquire mmio SCOPE SPACE ca cg cs lu cv nc VECTOR CACHED unified
ldu: global VECTOR
st: weak volatile relaxed release mmio SCOPE SPACE wb cg cs wt VECTOR CACHED
atom red: relaxed acquire release acq_rel SCOPE global shared shared::cta shared::cluster BOOL cas exch add inc dec min
  max noftz VECTOR L2::cache_hint
redux: sync add min max BOOL abs NaN
shfl: sync up down bfly idx
vadd vsub vabsdiff vmin vmax vshl vshr vmad: VIDEO
vset: COMPARE add min max
vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4: sat add
vset2 vset4: COMPARE add
"""
_UNTYPED = """
isspacep: SPACE
membar: cta gl sys proxy alias
bar: sync arrive cta
bar.red bar.cta.red: red cta popc and or
bar.warp: warp sync
barrier: sync arrive cta aligned
barrier.red barrier.cta.red: red cta popc and or aligned
vote: sync all any uni ballot
match: sync all any
activemask:
elect: sync
bra ret: uni
brx: idx uni
exit trap brkpt:
call: uni
nanosleep:
pmevent: mask
setmaxnreg: inc dec sync aligned
"""


@cache
def _table(rows: str) -> dict[str, frozenset[str]]:
    table = {}
    for row in rows.replace("\n  ", " ").split("\n"):
        names, colon, words = row.partition(":")
        if colon:
            allowed = frozenset(
                word for group in words.split() for word in (_GROUPS[group].split() if group in _GROUPS else [group])
            )
            table.update(dict.fromkeys(names.split(), allowed))
    return table


def checked_instructions() -> frozenset[str]:
    """Names of the instructions whose modifiers are checked."""
    return frozenset(_table(_TYPED) | _table(_UNTYPED))


@lru_cache(maxsize=65536)
def problem(opcode: str) -> str | None:
    """What is wrong with a known instruction's modifiers, in words; None when nothing is, or they are not checked."""
    found = isa.info(opcode)
    if found is None:
        return None
    typed = _table(_TYPED).get(found.name)
    allowed = _table(_UNTYPED).get(found.name) if typed is None else typed
    if allowed is None:
        return None
    words = opcode.split(".")[1:]
    strange = [word for word in words if word not in TYPE_BITS and word not in allowed]
    if strange:
        return f"{found.name} has no modifier .{strange[0]}"
    if typed is not None and not any(word in TYPE_BITS for word in words):
        return f"{found.name} has no type"
    return None
