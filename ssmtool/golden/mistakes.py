"""What people get wrong, each as the reference with one rule made otherwise.

A case's `exposes` names mistakes that its tolerances must reject; a diagnosis runs the reference with each and says
which one a kernel's output equals. Not here, because no output shows them: a kernel that is missing from the PTX, and
a host that launched nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ssmtool.golden.case import GoldenCase, Run
from ssmtool.golden.mistaken import convolution, fast, norms, recurrence
from ssmtool.golden.reference import KERNELS, run
from ssmtool.golden.reference.rules import Rules

_STEP = ("fc_ssm_decode_step",)
_STATES = ("fc_ssm_recurrence*", *_STEP)
_CONVOLUTIONS = ("fc_ssm_conv1d_silu*", *_STEP)
_QKNORM = ("fc_ssm_qknorm_gqa*", *_STEP)
_DECAY = ("fc_ssm_decay_gate*", *_STEP)
_NORM = ("fc_ssm_gated_norm", *_STEP)
_SLOTS = ("fc_ssm_*_slots*", *_STEP)
_ALL = ("fc_*",)


@dataclass(frozen=True)
class Mistake:
    """`says` completes "your output equals the reference with ..."; `kernels` are shell patterns of entries."""

    name: str
    says: str
    rules: type[Rules]
    kernels: tuple[str, ...]

    def fits(self, entry: str) -> bool:
        """Whether a kernel of this name can make it."""
        from fnmatch import fnmatchcase

        return entry in KERNELS and any(fnmatchcase(entry, pattern) for pattern in self.kernels)


MISTAKES: tuple[Mistake, ...] = (
    Mistake("grouped-heads", "the heads grouped (kh = vh div groups) instead of interleaved (kh = vh mod n_k_heads)",
            norms.GroupedHeads, (*_QKNORM, *_STATES)),
    Mistake("state-transposed", "the state transposed: s[h][i][j], read and written", recurrence.Transposed, _STATES),
    Mistake("state-read-transposed", "the state transposed when it is read", recurrence.ReadTransposed, _STATES),
    Mistake("state-written-transposed", "the state transposed when it is written", recurrence.WrittenTransposed,
            _STATES),
    Mistake("state-reset", "the state or history taken as zero at the start of each launch", recurrence.Reset,
            (*_STATES, *_CONVOLUTIONS)),
    Mistake("state-not-written", "the state or history not written back", recurrence.NotWritten,
            (*_STATES, *_CONVOLUTIONS)),
    Mistake("state-bf16", "the state rounded to bfloat16 after each position", recurrence.StateBf16, _STATES),
    Mistake("state-fp16", "the state rounded to float16 after each position", recurrence.StateFp16, _STATES),
    Mistake("linear-decay", "g taken as the decay itself, not as its logarithm", recurrence.LinearDecay, _STATES),
    Mistake("decay-twice", "exp applied twice: g was already a decay", recurrence.DecayTwice, _STATES),
    Mistake("decay-missing", "no decay at all", recurrence.DecayMissing, _STATES),
    Mistake("decay-quotients", "decays of a chunk as quotients of running products, which underflow",
            recurrence.DecayQuotients, _STATES),
    Mistake("decay-on-update", "the decay applied to the update as well", recurrence.DecayOnUpdate, _STATES),
    Mistake("decay-after-update", "the decay applied after the update, not before", recurrence.DecayAfterUpdate,
            _STATES),
    Mistake("predicted-before-decay", "the prediction read from the state before its decay",
            recurrence.PredictedBeforeDecay, _STATES),
    Mistake("y-from-old-state", "y read from the state before its update", recurrence.OldState, _STATES),
    Mistake("beta-missing", "beta left out", recurrence.BetaMissing, _STATES),
    Mistake("delta-missing", "v written without subtracting what the state predicts", recurrence.DeltaMissing, _STATES),
    Mistake("scale-missing", "the factor 1/sqrt(S) left out", recurrence.ScaleMissing, _STATES),
    Mistake("scale-twice", "the factor 1/sqrt(S) applied twice", recurrence.ScaleTwice, _STATES),
    Mistake("unfused-update", "the update's product rounded before it is added (no fma)", recurrence.Unfused, _STATES),
    Mistake("lost-warp", "sums over i of the first warp only, as after a dropped barrier", recurrence.LostWarp,
            _STATES),
    Mistake("snapshot-before", "snaps[t] taken before position t", recurrence.SnapshotBefore,
            ("fc_ssm_*_seq*",)),
    Mistake("snapshots-reversed", "the snapshots in reverse order", recurrence.SnapshotsReversed, ("fc_ssm_*_seq*",)),
    Mistake("zero-length-writes", "one position done where there is none", recurrence.ZeroLengthWrites,
            ("fc_ssm_*_seq*", "fc_sigmoid", "fc_ssm_decay_gate*")),
    Mistake("guard-missing", "the guard on the state size or filter length left out", recurrence.GuardMissing,
            ("fc_ssm_recurrence_seq_*", "fc_ssm_conv1d_silu_seq", "fc_ssm_recurrence_slots_warp", *_STEP)),
    Mistake("slot-0-for-all", "the state of slot 0 used for every user", recurrence.SlotZero, _SLOTS),
    Mistake("slots-shifted", "the state of the next user's slot", recurrence.SlotsShifted, _SLOTS),
    Mistake("all-slots", "slots worked on that were not launched", recurrence.AllSlots, _SLOTS),
    Mistake("taps-flipped", "the filter's taps flipped: the first multiplies the newest sample",
            convolution.TapsFlipped, _CONVOLUTIONS),
    Mistake("silu-missing", "no silu after the convolution", convolution.SiluMissing, _CONVOLUTIONS),
    Mistake("history-stale", "the history not shifted: old samples stay", convolution.HistoryStale, _CONVOLUTIONS),
    Mistake("history-from-prompt", "the history made of the new samples alone, with zeros before them",
            convolution.HistoryFromPrompt, _CONVOLUTIONS),
    Mistake("history-activated", "the output kept in the history instead of the raw sample",
            convolution.HistoryActivated, _CONVOLUTIONS),
    Mistake("history-newest-first", "the history stored newest first", convolution.NewestFirst, _CONVOLUTIONS),
    Mistake("channel-major", "qkv read as [channel][position]", convolution.ChannelMajor, ("fc_ssm_conv1d_silu_seq",)),
    Mistake("l2-rsqrt-eps", "1/sqrt(sum + eps) for the L2 norm", norms.RsqrtEps, _QKNORM),
    Mistake("l2-eps-added", "1/(norm + eps) for the L2 norm", norms.EpsAdded, _QKNORM),
    Mistake("l2-eps-squared", "1/sqrt(max(sum, eps)) for the L2 norm", norms.EpsSquared, _QKNORM),
    Mistake("l2-no-eps", "no eps in the L2 norm", norms.NoEps, _QKNORM),
    Mistake("rms-instead-of-l2", "an RMS norm instead of an L2 norm of q and k", norms.RmsInsteadOfL2,
            (*_QKNORM, *_STATES)),
    Mistake("qk-swapped", "q and k swapped", norms.Swapped, (*_QKNORM, *_STATES)),
    Mistake("v-from-k", "v copied from where k is", norms.ValueFromKey, ("fc_ssm_qknorm_gqa_nx", *_STEP)),
    Mistake("weight-plus-one", "the norm's weight taken as 1 + w", norms.WeightPlusOne, _NORM),
    Mistake("l2-instead-of-rms", "an L2 norm instead of an RMS norm", norms.L2InsteadOfRms, _NORM),
    Mistake("rms-eps-missing", "no eps in the RMS norm", norms.RmsEpsMissing, _NORM),
    Mistake("gate-sigmoid", "sigmoid(z) for the gate instead of silu(z)", norms.GateSigmoid, _NORM),
    Mistake("gate-before-norm", "the gate applied before the norm", norms.GateBeforeNorm, _NORM),
    Mistake("sigmoid-of-minus", "1/(1 + exp(x)): the sign of x lost", norms.SigmoidOfMinus, ("fc_sigmoid", *_STEP)),
    Mistake("softplus-no-branch", "softplus without its branch: exp overflows", norms.SoftplusNoBranch, _DECAY),
    Mistake("softplus-missing", "no softplus", norms.SoftplusMissing, _DECAY),
    Mistake("a-log", "ssm_a taken as A_log: -exp(ssm_a)", norms.ALog, _DECAY),
    Mistake("dt-missing", "ssm_dt left out", norms.DtMissing, _DECAY),
    Mistake("nan-to-zero", "infinity times zero taken as zero", norms.NanToZero, _DECAY),
    Mistake("gate-heads-divided", "the head as index div positions instead of index mod n_heads", norms.HeadsDivided,
            ("fc_ssm_decay_gate_nx", *_STEP)),
    Mistake("gate-heads-grouped", "ssm_dt and ssm_a of the head that a grouped order has there", fast.GateHeadsGrouped,
            _STEP),
    Mistake("values-grouped", "v of the head that a grouped order has there", fast.ValuesGrouped, _STEP),
    Mistake("history-before-use", "the history moved on before the convolution reads it", fast.HistoryBeforeUse,
            _CONVOLUTIONS),
    Mistake("beta-raw", "beta left without its sigmoid", fast.BetaRaw, _STEP),
    Mistake("norm-eps-of-qk", "the eps of q and k taken for the gated norm as well", fast.OneEps, _STEP),
    Mistake("subnormals-flushed", "subnormal numbers flushed to zero", norms.Flushed, _ALL),
    Mistake("nan-spread", "a NaN of one head, row or channel in all others", norms.NanSpread, _ALL),
)  # fmt: skip

BY_NAME = {mistake.name: mistake for mistake in MISTAKES}


def mistakes_for(case: GoldenCase, which: Run | None = None) -> tuple[Mistake, ...]:
    """The mistakes that the kernels of a run (the first, or `which`) can make, in the order of the list."""
    entries = (which or case.meta.runs[0]).entries
    return tuple(mistake for mistake in MISTAKES if any(mistake.fits(entry) for entry in entries))


def run_mistaken(case: GoldenCase, mistake: Mistake, which: Run | None = None) -> dict[str, NDArray[Any]]:
    """Every buffer after a run of the case by the reference with this mistake, as `reference.run` returns them."""
    return run(case, which, rules=mistake.rules(dict(case.meta.conventions)))


def rejected(case: GoldenCase, mistake: Mistake, which: Run | None = None) -> bool:
    """Whether the case's tolerances reject the mistake."""
    from ssmtool.golden.compare import compare

    return not all(result.ok for result in compare(case, run_mistaken(case, mistake, which)))
