"""Numbers with one right answer: every numeric PTX instruction of sm_37 as straight-line LLVM IR.

The way in is `instruction.parse`, which turns an opcode's text into a checked `form.Form` or refuses it by name
(`form.UnsupportedError`), before anything runs:

    form = instruction.parse("fma.rm.ftz.f32")
    form.operands, form.results      # ('f32', 'f32', 'f32'), ('f32',)
    (value,) = form.emit(builder, [x, y, z])
    str(form.evidence)               # 'exact'

Values are scalars or vectors of any length: f32 and f64 as LLVM floats, predicates and CC.CF (`carry`) as i1, all
else as integers of the kind's width (f16 as i16). No emitter branches, calls back, or depends on the FPU's rounding
mode; none traps or is undefined for any bits, so inactive lanes may hold anything. setp has two results, p and q.

| module | operations |
|---|---|
| ieee | add, sub, mul, fma, div, rcp, sqrt in rn, rz, rm, rp: f32 and f64, `.ftz`, `.sat` |
| approx, multifunction | the `.approx` and `.full` forms, from tables measured on an H200 (data/unit_tables) |
| convert | cvt, f16 included |
| minmax, compare | min, max, abs, neg, copysign, testp; setp, set, slct |
| integer, bits, video | integer arithmetic and carries; shifts, fields, permutes, counts; v-instructions |
| instruction, integral, floating, video_forms, form | opcode text to form |
| evidence | the label of a result: exact, contraction dependent, unit-model dependent |
| harness | compile an emitter and map it over NumPy arrays |

Where PTX leaves an answer open (a NaN's payload, a division by zero, the position of a 64-bit bfe beyond 255), the
H200's is taken and said so in the module.
"""
