target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare float @llvm.fma.f32(float, float, float)
declare i32 @external(ptr, i64)
@lookup = internal addrspace(4) constant [4 x i16] [i16 1, i16 -2, i16 3, i16 4]
@scratch = internal addrspace(3) global [64 x float] poison, align 16
define ptx_kernel void @dot(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n) {
entry:
  %spill = alloca [4 x i64], align 16
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [0, %entry], [%next, %loop]
  %s = phi float [0.0, %entry], [%s2, %loop]
  %p = getelementptr <4 x float>, ptr addrspace(1) %x, i32 %i
  %v = load <4 x float>, ptr addrspace(1) %p, align 16
  %a = extractelement <4 x float> %v, i32 0
  %b = extractelement <4 x float> %v, i32 3
  %s2 = call float @llvm.fma.f32(float %a, float %b, float %s)
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  %k = sext i32 %t to i64
  %slot = getelementptr [4 x i64], ptr %spill, i64 0, i64 %k
  store i64 %k, ptr %slot
  %w = call i32 @external(ptr %spill, i64 %k)
  %sh = getelementptr [64 x float], ptr addrspace(3) @scratch, i32 0, i32 %t
  store float %s2, ptr addrspace(3) %sh
  %c = getelementptr [4 x i16], ptr addrspace(4) @lookup, i32 0, i32 %w
  %l = load i16, ptr addrspace(4) %c
  %f = sitofp i16 %l to float
  %q = getelementptr float, ptr addrspace(1) %y, i32 %t
  store float %f, ptr addrspace(1) %q
  ret void
}
