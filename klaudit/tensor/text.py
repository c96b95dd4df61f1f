"""What is measured, as text for a terminal or a log."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from klaudit.reports.visible import visible
from klaudit.tensor.fingerprint_type import Fingerprint
from klaudit.tensor.numerics import Numeric
from klaudit.tensor.rollouts import Measurement
from klaudit.tensor.rows import VerifyRow
from klaudit.tensor.scale import ScaleReport
from klaudit.tensor.verification import Verification

_EXACT = 1e-9  # smaller relative numbers are rounding
_HEAD = f"  {'configuration':34} {'value':>8} {'bias':>8} {'norm':>8} {'cosine':>7} {'angle':>6} {'variance':>8}  {'verdict':18} descends"
_LEGEND = (
    "value: relative bias of the estimate; bias: |g - grad KL| / |grad KL|; norm: |g| / |grad KL|; angle in degrees;\n"
    "variance: relative to k1 in the reward; medians over random policies; every number is exact unless an interval is given."
)


def of_verification(found: Verification) -> str:
    """The table at the middle distance of each regime, and what became of the theory's statements."""
    parts = [f"klaudit verify: device {found.device}, {found.dtype}, seed {found.seed}", _LEGEND]
    for (regime, kl), rows in groupby(_shown(found.rows), key=lambda row: (row.regime, row.kl)):
        distance = "" if kl is None else f", KL(pi||ref) = {kl:.3g}"
        parts.append("\n".join([f"\n{regime}{distance}", _HEAD, *map(_row, rows)]))
    parts.append("")
    parts += [
        f"DRIFT {claim.about}: {claim.says}: {claim.residual:.3g}, {'at least' if claim.at_least else 'at most'} {claim.bound:.3g}"
        for claim in found.broken
    ]
    largest = max(claim.residual for claim in found.claims if not claim.at_least and claim.bound <= 1e-3)
    outcome = f"{len(found.broken)} do not hold" if found.broken else "all hold"
    parts.append(
        f"{len(found.claims)} statements of the theory asserted, {outcome}; "
        f"largest difference where it says exact {largest:.1e}; {found.seconds:.1f} s"
    )
    return "\n".join(parts)


def of_fingerprint(found: Fingerprint, how: str) -> str:
    """What the function is, what to know about it, and its samples."""
    lines = [found.summary(), f"  {how}"]
    if found.clamp is not None:
        lines.append(f"  this holds for {found.clamp[0]:.4g} < d < {found.clamp[1]:.4g}")
    lines += [f"  note: {visible(note)}" for note in found.notes]
    return "\n".join([*lines, found.table()])


def of_measurement(found: Measurement, name: str) -> str:
    """Estimates, the distribution of d, and how far each configuration is from the stated gradient on these rollouts."""
    lines = [
        f"{name}: {found.sequences} sequences, {found.tokens} tokens",
        "KL(pi||ref), nats a token, 95 % intervals:",
    ]
    for estimator, estimate in found.estimates.items():
        interval = estimate.interval()
        lines.append(
            f"  {estimator}  {estimate.mean:.6g} +- {estimate.standard_error:.2g}  ({interval.low:.6g} to {interval.high:.6g})"
        )
    per_sequence = found.sequence_kl.interval()
    lines.append(
        f"  k1 summed over a sequence  {found.sequence_kl.mean:.6g}  ({per_sequence.low:.6g} to {per_sequence.high:.6g})"
    )
    quantiles = ", ".join(f"{level:g}: {value:.3g}" for level, value in found.quantiles.items())
    lines.append(
        f"d = log pi - log ref: mean {found.mean:.4g}, deviation {found.deviation:.4g}, {found.lowest:.4g} to {found.highest:.4g}"
    )
    lines.append(f"  quantiles {quantiles}")
    lines += [f"  {share:.4%} of tokens without gradient under {clamp}" for clamp, share in found.clamped]
    if found.staleness is not None:
        lines.append(
            "sampling policy: "
            + ", ".join(f"{key.replace('_', ' ')} {value:.4g}" for key, value in found.staleness.items())
        )
    lines += [f"note: {note}" for note in found.notes]
    lines.append("on these tokens, against the stated gradient (score vectors taken as orthogonal):")
    lines.append(f"  {'configuration':40} {'coefficient x':>13} {'bias':>8} {'cosine':>7}  {'verdict':18} w(d)")
    for effect in found.effects:
        lines.append(
            f"  {effect.configuration:40} {_number(effect.multiplier):>13} {_number(effect.bias):>8} {_number(effect.cosine):>7}  "
            f"{effect.verdict:18} {effect.weight}"
        )
    return "\n".join(lines)


def of_scale(found: ScaleReport, numerics: Sequence[Numeric]) -> str:
    """Biases at vocabulary scale, what they cost, and the numerics."""
    size = f"{found.tokens} tokens x {found.vocabulary} logits, {found.chunk} at a time"
    lines = [f"klaudit verify --scale: device {found.device}, {found.dtype}, {size}"]
    if found.reduced:
        lines.append("reduced size: no CUDA device (there it is 4096 tokens in float32)")
    for kl, rows in groupby(found.rows, key=lambda row: row.kl):
        lines.append(f"\nKL(pi||ref) = {kl:g} a token\n  {'configuration':44} {'bias':>8} {'norm':>8} {'cosine':>7}")
        lines += [
            f"  {row.configuration:44} {_number(row.gradient_bias):>8} {_number(row.norm_ratio):>8} {_number(row.cosine):>7}"
            for row in rows
        ]
    lines.append(
        f"\nk3 in the loss against pi - ref: largest difference {found.closed_form_error:.1e}\n"
        f"{found.seconds:.2f} s, {found.tokens_per_second:.3g} tokens/s, peak memory {found.peak_bytes / 2**20:.0f} MiB, "
        f"{found.bandwidth_share:.1%} of the copy bandwidth ({found.copy_bandwidth / 1e9:.1f} GB/s)"
    )
    lines += [f"WRONG {each}" for each in found.broken]
    lines.append("\nnumerics")
    lines += [f"  {each.case} [{each.dtype}]: {each.text}" for each in numerics]
    return "\n".join(lines)


def _shown(rows: Sequence[VerifyRow]) -> Iterator[VerifyRow]:
    """Of each exact regime the middle distance."""
    for regime, of_regime in groupby(rows, key=lambda row: row.regime):
        kept = list(of_regime)
        distances = sorted({row.kl for row in kept if row.kl is not None})
        middle = distances[len(distances) // 2] if distances else None
        yield from (row for row in kept if row.kl == middle or not row.exact or regime.startswith("group"))


def _row(row: VerifyRow) -> str:
    numbers = (
        f"{_number(row.value_bias):>8} {_number(row.gradient_bias):>8} {_number(row.norm_ratio):>8} {_number(row.cosine):>7} "
        f"{_angle(row.angle):>6} {_number(row.variance_ratio):>8}"
    )
    line = f"  {row.configuration:34} {numbers}  {row.verdict:18} {row.descends}"
    if row.interval is not None:
        line += f"; coefficient x {row.multiplier:.4g} ({row.interval.low:.4g} to {row.interval.high:.4g} at {row.interval.level:.3%})"
    return line


def _angle(degrees: float | None) -> str:
    return "-" if degrees is None else f"{degrees:.1f}"


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "-"
    if abs(value) < _EXACT:
        return "0"
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
