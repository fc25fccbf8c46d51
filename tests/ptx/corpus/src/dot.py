"""Makes the llvmlite files: python dot.py, in this folder."""

from pathlib import Path

import llvmlite.binding as llvm

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
for cpu in ("sm_35", "sm_90"):
    machine = llvm.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(cpu=cpu, opt=2)
    module = llvm.parse_assembly(Path("dot.ll").read_text())
    Path(f"llvmlite-0.50-{cpu.replace('_', '')}.ptx").write_text(machine.emit_assembly(module))
