"""The formulas against loops over single elements, written from the contract's words alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from golden.checked_in import NAMES, case

from ssmtool.golden.build import Builder
from ssmtool.golden.case import CaseError
from ssmtool.golden.compare import compare
from ssmtool.golden.reference import KERNELS, knows, reference_hash, run


def _close(got: np.ndarray, want: list[float]) -> None:
    assert got.reshape(-1).tolist() == pytest.approx(want, rel=2e-7, abs=1e-12)


def test_recurrence_by_hand() -> None:
    vector = case("recurrence/mistake-grouped-heads")
    size, heads, n = 8, 4, 2
    names = ("s", "q", "k", "v", "g", "beta")
    s, q, k, v, g, beta = (vector.image(name).astype(float).reshape(-1).tolist() for name in names)
    outputs = []
    for t in range(n):
        for h in range(heads):
            at = (t * heads + h) * size
            for j in range(size):
                row = [s[h * size * size + j * size + i] * math.exp(g[t * heads + h]) for i in range(size)]
                delta = (v[at + j] - sum(row[i] * k[at + i] for i in range(size))) * beta[t * heads + h]
                row = [row[i] + k[at + i] * delta for i in range(size)]
                s[h * size * size + j * size : h * size * size + (j + 1) * size] = row
                outputs.append(sum(row[i] * q[at + i] for i in range(size)) / math.sqrt(size))
    after = run(vector)
    _close(after["y"], outputs)
    _close(after["s"], s)


def test_convolution_by_hand() -> None:
    vector = case("convolution/k3-t5")
    channels, taps, n = 70, 3, 5
    x, w, history = (vector.image(name).astype(float).tolist() for name in ("qkv", "weight", "conv_state"))
    outputs = []
    for t in range(n):
        for c in range(channels):
            window = [*history[c], x[t][c]]
            acc = sum(window[m] * w[c][m] for m in range(taps))
            outputs.append(acc / (1 + math.exp(-acc)))
            history[c] = window[1:]
    after = run(vector)
    assert after["out"].reshape(-1).tolist() == pytest.approx(outputs, rel=1e-6, abs=1e-7)
    assert after["conv_state"].tolist() == history


def test_norms_and_gates_by_hand() -> None:
    vector = case("gated-norm/small-norms")
    y, w, z = (vector.image(name).astype(float).tolist() for name in ("y", "weight", "z"))
    want = []
    for row, gates in zip(y, z, strict=True):
        inv = 1 / math.sqrt(sum(each * each for each in row) / 16 + float(np.float32(1e-6)))
        want += [a * inv * b * c / (1 + math.exp(-c)) for a, b, c in zip(row, w, gates, strict=True)]
    _close(run(vector)["gated"], want)

    vector = case("qknorm/mistake-grouped-heads-nx")
    row, size = vector.image("conv_out").astype(float), 8
    after = run(vector)
    for t in range(2):
        for vh in range(4):
            kh = vh % 2
            k = row[t, 16 + kh * size : 16 + (kh + 1) * size]
            _close(after["kg"][t, vh], (k / max(math.sqrt(sum(k * k)), 1e-6)).tolist())
        assert after["vg"][t].reshape(-1).tolist() == row[t, 32:].tolist()

    vector = case("decay-gate/h5-n3")
    alpha, dt, a = (vector.image(name).astype(float).tolist() for name in ("alpha", "ssm_dt", "ssm_a"))
    want = [a[h] * math.log1p(math.exp(alpha[t][h] + dt[h])) for t in range(3) for h in range(5)]
    _close(run(vector)["g"], want)


def test_decode_step_by_hand() -> None:
    # Element by element, from the contract's words: 2 users would say nothing more, 2 x 2 heads show their order.
    vector = case("decode-step/mistake-grouped-heads")
    size, key_heads, heads, tokens = 128, 2, 4, 2
    names = ("qkv", "conv_weight", "alpha", "ssm_dt", "ssm_a", "beta", "z", "norm_weight")
    qkv, taps, alpha, dt, a, beta, z, weight = (vector.image(name).astype(float) for name in names)
    channels = qkv.shape[-1]
    history = [[0.0] * 3 for _ in range(channels)]
    state = np.zeros((heads, size, size))
    eps, scale = float(np.float32(1e-6)), float(np.float32(1 / math.sqrt(size)))
    want = []
    for t in range(tokens):
        row = np.empty(channels)
        for c in range(channels):
            window = [*history[c], float(qkv[t, 0, c])]
            acc = math.fsum(x * w for x, w in zip(window, taps[c].tolist(), strict=True))
            row[c], history[c] = acc / (1 + math.exp(-acc)), window[1:]
        for vh in range(heads):
            kh = vh % key_heads
            q, k = (row[part * key_heads * size + kh * size :][:size] for part in (0, 1))
            q, k = (x / max(math.sqrt(math.fsum((x * x).tolist())), eps) for x in (q, k))
            v = row[2 * key_heads * size + vh * size :][:size]
            decay = math.exp(a[vh] * math.log1p(math.exp(alpha[t, 0, vh] + dt[vh])))
            rate = 1 / (1 + math.exp(-beta[t, 0, vh]))
            y = []
            for j in range(size):
                r = state[vh, j] * decay
                r = r + k * ((v[j] - math.fsum((r * k).tolist())) * rate)
                state[vh, j] = r
                y.append(scale * math.fsum((r * q).tolist()))
            inv = 1 / math.sqrt(math.fsum(each * each for each in y) / size + eps)
            gates = z[t, 0, vh].tolist()
            want += [m * inv * w * g / (1 + math.exp(-g)) for m, w, g in zip(y, weight.tolist(), gates, strict=True)]
    after = run(vector)
    _close(after["gated"], want)
    _close(after["s"], state.reshape(-1).tolist())
    assert after["conv_state"][0].tolist() == history


@pytest.mark.parametrize("name", NAMES)
def test_fp32_as_the_kernels_round_is_within_the_tolerances(name: str) -> None:
    # If this fails the inputs are badly conditioned: a right kernel would be rejected.
    vector = case(name)
    for each in vector.meta.runs:
        bad = [result for result in compare(vector, run(vector, each, dtype=np.float32)) if not result.ok]
        assert not bad, (each.name, bad[0].name, bad[0].reasons, bad[0].worst)


def test_every_kernel_has_a_formula_and_cases() -> None:
    assert len(KERNELS) == 18
    assert {entry for name in NAMES for entry in case(name).kernels} == set(KERNELS)


def test_a_launch_that_does_not_fit_its_buffers_is_told() -> None:
    b = Builder("bad/short", "too short")
    b.given("x", np.zeros(3, np.float32), "i", "elementwise")
    b.launch("r", "fc_sigmoid", (1,), 256, 0, "x", 4)
    with pytest.raises(CaseError, match="x needs 4 elements, its buffer has 3 left"):
        b.case()


def test_the_hash_is_of_the_program_not_of_its_comments() -> None:
    from ssmtool.golden.reference import _program

    assert _program('"""Doc."""\nx = 1  # why\n\n\ndef f():\n    """Doc."""\n    return "s"\n') == _program(
        'x = 1\ndef f():\n  return "s"\n'
    )
    assert len(reference_hash()) == 64


def test_a_formula_of_one_kernel_changes_only_the_hash_of_its_vectors() -> None:
    # Else every file would change with each new kernel.
    plain = reference_hash(["fc_ssm_recurrence", "fc_sigmoid", "fc_ssm_recurrence_seq_warp"])
    assert plain == reference_hash()
    assert reference_hash(["fc_ssm_decode_step", "fc_sigmoid"]) == reference_hash(["fc_ssm_decode_step"]) != plain


def test_nothing_is_known_of_other_kernels() -> None:
    assert knows(case("sigmoid/n1"))


def test_the_hashed_program_has_no_f_strings() -> None:
    # Python 3.12 cuts them into other tokens than 3.11, and the hash would depend on it.
    import ast
    from pathlib import Path

    from ssmtool.golden import reference

    for path in Path(reference.__file__).parent.glob("*.py"):
        if path.name not in ("__init__.py", "bound.py"):
            assert not [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.JoinedStr)]
