"""The tolerances that a case may name. A file can bring others of its own under `policies`.

Measured on the product's kernels (docs/vectors.md has the table): a correct fp32 recurrence is within NMSE 1e-13 and
5e-6 of the RMS of the float64 result after 2048 steps, so the limits below leave room for another order of summation
and none for a mistake. Cosine is not used: it hides offsets and factors.
"""

from __future__ import annotations

from ssmtool.golden.case import Policy

# Some steps of the smallest subnormal: products that end there are rounded to it. Flushing to zero is still seen.
_SUBNORMAL = 2.0**-146

POLICIES: dict[str, Policy] = {
    # States and outputs of the recurrence: sums whose order is free, per head.
    "recurrence": Policy(nmse=1e-11, max_rms=1e-4, atol=_SUBNORMAL),
    # Sums of at most a handful of products, then an activation.
    "convolution": Policy(nmse=1e-12, max_rms=1e-5, atol=_SUBNORMAL),
    # One norm over a head, then products: each element is as good as the norm.
    "norm": Policy(max_ulp=16, atol=_SUBNORMAL),
    # A formula of one element: exp and log1p of CUDA are within 2 ulp.
    "elementwise": Policy(max_ulp=8, atol=_SUBNORMAL),
    # Copies, and whatever must not change.
    "exact": Policy(exact=True),
}
