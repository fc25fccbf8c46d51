"""The PTX front end: text in, a model of every function out, nothing lost and nothing guessed.

    >>> from ssmtool.ptx import parse
    >>> module = parse(text, "kernels.ptx")            # PtxSyntaxError (line, column) when it is not sound PTX
    >>> module.version, module.target
    ((7, 4), 'sm_37')
    >>> for kernel in module.require_entries():        # no .entry is an error, never an empty loop
    ...     print(kernel.name, kernel.local_bytes, kernel.histogram()["ld.local.f32"])
    >>> kernel = module.function("fc_sigmoid")
    >>> instruction = kernel.instructions[0]
    >>> instruction.base, instruction.modifiers, instruction.type, instruction.space
    ('ld', ('param', 'u64'), 'u64', 'param')
    >>> instruction.operands
    (Register(name='%rd2', ...), Address(base=Symbol(name='fc_sigmoid_param_0', ...), offset=0, extra=()))
    >>> instruction.line, instruction.loc, instruction.predicate, instruction.text

How the rooms lie, from text to meaning:

* `source` positions, and a copy of the text with comments and strings blanked; `embedded` finds PTX in C files.
* `module`, `header`, `declarations`, `body` scan. `Module.unknown` lists what was not known, verbatim.
* `function` and `instruction` are the model. Scanning keeps columns (`Function.opcodes`) and parses no operand;
  an `Instruction` is a view that parses its own when asked, so counting is cheap and looking closely is possible.
  Operand errors therefore come when operands are first read: `Function.check()` reads them all.
* `operands`, `opcode`, `expressions`, `registers`, `location` hold the parts.
* `isa` says what an instruction is and which registers it writes and reads; `cfg` gives blocks, dominators,
  post-dominators and loops; `dataflow` liveness and reaching definitions.

Register names are resolved in the scope of the instruction: `Register.scope` tells apart equal names that inline
assembly declares in nested braces.
"""

from __future__ import annotations

from ssmtool.ptx.cfg import Block, ControlFlowGraph, Loop
from ssmtool.ptx.declarations import Pointer, Variable
from ssmtool.ptx.embedded import EmbeddedPtx, extract
from ssmtool.ptx.errors import PtxSyntaxError
from ssmtool.ptx.function import Directive, Function, Header
from ssmtool.ptx.instruction import Instruction
from ssmtool.ptx.location import Loc
from ssmtool.ptx.module import Module, Unknown, parse
from ssmtool.ptx.opcode import TYPE_BITS, Opcode

__all__ = [
    "TYPE_BITS",
    "Block",
    "ControlFlowGraph",
    "Directive",
    "EmbeddedPtx",
    "Function",
    "Header",
    "Instruction",
    "Loc",
    "Loop",
    "Module",
    "Opcode",
    "Pointer",
    "PtxSyntaxError",
    "Unknown",
    "Variable",
    "extract",
    "parse",
]
