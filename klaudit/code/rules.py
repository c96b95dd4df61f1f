"""The rules that the analysis of code can raise, in one line each; the catalogue has the long form."""

from __future__ import annotations

from msgspec import Struct

from klaudit.model import Severity
from klaudit.theory import FORWARD, REVERSE


class Rule(Struct, frozen=True):
    id: str
    name: str
    severity: Severity
    why: str
    fix: str


RULES = {
    rule.id: rule
    for rule in (
        Rule(
            "KLA101", "k3-in-loss", "warning",
            f"k3 differentiated in the loss descends {FORWARD}, not {REVERSE}",
            "k1 in the reward, detached; in the loss k2, or k3 times the attached ratio pi/pi_old",
        ),
        Rule(
            "KLA102", "k3-in-reward", "error",
            f"a rewarded k3 descends {REVERSE} - {FORWARD}, which is unbounded below",
            "reward k1 instead",
        ),
        Rule(
            "KLA103", "k1-in-loss", "error",
            "the expected gradient of k1 is zero on-policy and pushes away from the old policy off it",
            "subtract k1, detached, from the reward",
        ),
        Rule(
            "KLA104", "biased-reward-estimator", "warning",
            f"as a reward only k1 has the gradient of {REVERSE}",
            "reward k1 instead",
        ),
        Rule(
            "KLA105", "biased-loss-estimator", "warning",
            "its gradient in the loss is that of neither KL direction, or of the wrong one",
            "k1 in the reward; in the loss k2, or k3 times the attached per-token ratio",
        ),
        Rule(
            "KLA106", "token-level-only", "note",
            "exact per token; over a sequence a token gets no credit for the KL of later tokens",
            "k1 in the reward, summed or as return-to-go, where that matters",
        ),
        Rule(
            "KLA301", "penalty-sign", "error",
            "a loss adds the penalty and a reward subtracts it; the other sign drives the policy away from the reference",
            "turn the sign",
        ),
        Rule(
            "KLA302", "reversed-ratio", "warning",
            "exp(d) - 1 - d with d = log pi - log pi_ref is k3 with the ratio upside down: a chi-square divergence, heavy-tailed",
            "write the ratio as log pi_ref - log pi",
        ),
        Rule(
            "KLA303", "detached-loss-penalty", "error",
            "a penalty without gradient is a constant of the loss: it does nothing",
            "compute it with gradient, or subtract k1 from the reward",
        ),
        Rule(
            "KLA304", "attached-reward-penalty", "warning",
            "gradient flows through the reward as well as through the score function",
            "detach the penalty, or use the log-probabilities of the rollout",
        ),
        Rule(
            "KLA305", "unstable-exponential", "note",
            "exp of an unbounded log-ratio overflows, and a clamp or mask after it leaves a NaN gradient",
            "clamp the log-ratio on both sides before exp",
        ),
        Rule(
            "KLA306", "probability-weighted-samples", "error",
            "p * (log p - log q) averaged over sampled tokens counts the probability twice",
            "average log p - log q over the samples, or sum p * (log p - log q) over the vocabulary",
        ),
        Rule(
            "KLA307", "log-of-softmax", "note",
            "log(softmax(x)) loses small probabilities that log_softmax keeps",
            "log_softmax",
        ),
        Rule(
            "KLA308", "kl-div-arguments", "warning",
            "torch.nn.functional.kl_div(input, target) is KL(target||input) of a log-probability and a probability",
            f"kl_div(log_ref, log_pi, log_target=True, reduction='none').sum(-1) is {REVERSE}",
        ),
    )
}  # fmt: skip
