// Tensor memory of sm_100a.
extern "C" __global__ void tensor_memory(unsigned *out, unsigned long long a, unsigned long long b) {
    __shared__ unsigned slot;
    unsigned s = (unsigned)__cvta_generic_to_shared(&slot), r[4];
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" :: "r"(s), "r"(32));
    unsigned t = slot;
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}" :: "r"(t), "l"(a), "l"(b), "r"(0), "r"(1));
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(s));
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(t));
    asm volatile("tcgen05.wait::ld.sync.aligned;");
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" :: "r"(t), "r"(32));
    for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = r[i];
}
