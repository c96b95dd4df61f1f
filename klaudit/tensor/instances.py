"""Small policies whose every outcome can be enumerated, at a chosen distance from their reference.

Token level: a softmax over V logits.  Sequence level: a recurrent network with shared parameters over all sequences up to a length,
ended by a stop token.  The distance KL(pi||ref) is met exactly, by bisection on the size of a random step away from the reference; the
old policy lies half as far from pi in a direction of its own.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from klaudit.tensor.backend import seeded
from klaudit.tensor.errors import TensorError
from klaudit.tensor.outcomes import Outcomes

_OLD_STEP = 0.5
_SPARE = 2  # instances drawn for each one kept
_FURTHEST = 10.0  # nats
_DOUBLINGS = 6
_BISECTIONS = 42
_Randoms = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def categorical(kl: float, *, count: int = 40, vocabulary: int = 8, seed: int = 0) -> Outcomes:
    """`count` single-token policies with KL(pi||ref) = `kl` nats, sampled from the old policy; the parameters are the logits (P = V).

    Float64, on the CPU.  Raises TensorError where too few random policies reach that distance.
    """
    reference, step, old_step = _drawn(_SPARE * count, vocabulary, seed)

    def distance(size: Tensor) -> Tensor:
        policy, other = torch.log_softmax(reference + size * step, -1), torch.log_softmax(reference, -1)
        return (policy.exp() * (policy - other)).sum(-1)

    size, reached = _reaching(distance, kl, _SPARE * count)
    logits = reference + size * step
    old_logits = logits + _OLD_STEP * size * old_step
    kept = _kept(reached, [torch.log_softmax(each, -1) for each in (logits, reference, old_logits)], kl, count)
    logits, reference, old_logits = logits[kept], reference[kept], old_logits[kept]

    def table(of: Tensor) -> Tensor:
        return torch.log_softmax(of, -1)[:, None, None, :].expand(-1, vocabulary, 1, -1)

    policy = torch.softmax(logits, -1)
    jacobian = torch.eye(vocabulary, dtype=torch.float64) - policy[:, None, :]  # d log pi(v) / d logit(p)
    return Outcomes(
        tokens=torch.arange(vocabulary)[None, :, None],
        mask=torch.ones(1, vocabulary, 1, dtype=torch.float64),
        policy=table(logits),
        reference=table(reference),
        old=table(old_logits),
        jacobian=jacobian[:, None, None].expand(-1, vocabulary, 1, -1, -1),
        weights=torch.softmax(old_logits, -1),
    )


def autoregressive(kl: float, *, count: int = 20, vocabulary: int = 4, length: int = 4, seed: int = 0) -> Outcomes:
    """`count` recurrent policies with KL(pi||ref) = `kl` nats over whole sequences, all sequences of up to `length` tokens enumerated.

    Sampled from the old policy.  Token 0 ends a sequence.  The network has as many hidden units as there are tokens, and
    P = 2*V + 3*V*V parameters (56 for V = 4).  Float64, on the CPU.  Raises TensorError as `categorical` does.
    """
    parameters = 2 * vocabulary + 3 * vocabulary * vocabulary
    reference, step, old_step = _drawn(_SPARE * count, parameters, seed)
    tokens, mask = _sequences(vocabulary, length)
    index = tokens.expand(_SPARE * count, -1, -1).unsqueeze(-1)

    def tables(theta: Tensor) -> Tensor:
        return _recurrent_log_probs(theta, tokens, vocabulary)

    def log_probability(theta: Tensor) -> Tensor:
        return (tables(theta).gather(-1, index).squeeze(-1) * mask).sum(-1)

    log_ref = log_probability(reference)

    def distance(size: Tensor) -> Tensor:
        log_pi = log_probability(reference + size * step)
        return (log_pi.exp() * (log_pi - log_ref)).sum(-1)

    size, reached = _reaching(distance, kl, _SPARE * count)
    theta = reference + size * step
    old_theta = theta + _OLD_STEP * size * old_step
    kept = _kept(reached, [tables(each) for each in (theta, reference, old_theta)], kl, count)
    theta, reference, old_theta = theta[kept], reference[kept], old_theta[kept]
    everything = Outcomes(
        tokens=tokens[None],
        mask=mask[None].double(),
        policy=tables(theta),
        reference=tables(reference),
        old=tables(old_theta),
        jacobian=_jacobian(tables, theta),
        weights=torch.empty(0),
    )
    return everything.off_policy()


def _drawn(count: int, parameters: int, seed: int) -> _Randoms:
    """Reference parameters, the step from them to the policy, and the step from there to the old policy."""
    generator = seeded(seed)
    reference, step, old_step = (
        torch.randn(count, parameters, generator=generator, dtype=torch.float64) for _ in range(3)
    )
    return reference, step, old_step


def _reaching(distance: Callable[[Tensor], Tensor], target: float, drawn: int) -> tuple[Tensor, Tensor]:
    """Step sizes (drawn, 1) at which `distance` is `target`, and which of the instances reach it at all (drawn,).

    A step can saturate below the target: the token that it favours is likely under ref already.
    """
    low, high = torch.zeros(drawn, 1, dtype=torch.float64), torch.ones(drawn, 1, dtype=torch.float64)
    for _ in range(_DOUBLINGS):
        high = torch.where(distance(high)[:, None] < target, 2 * high, high)
    reached = distance(high) >= target
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        short = distance(middle)[:, None] < target
        low, high = torch.where(short, middle, low), torch.where(short, high, middle)
    return high, reached


def _kept(reached: Tensor, tables: list[Tensor], kl: float, count: int) -> Tensor:
    """The first `count` instances that reach the distance, those with log-ratios beyond 10 nats last: k3 loses its digits there."""
    policy, *others = tables
    furthest = torch.stack([(policy - other).abs().flatten(1).max(1).values for other in others]).max(0).values
    candidates = reached.nonzero().squeeze(-1)
    if len(candidates) < count:
        raise TensorError(
            f"only {len(candidates)} of {len(reached)} random policies reach KL(pi||ref) = {kl} nats; ask for a smaller distance"
        )
    return candidates[torch.argsort((furthest[candidates] > _FURTHEST).long(), stable=True)][:count]


def _sequences(vocabulary: int, length: int) -> tuple[Tensor, Tensor]:
    """All sequences (N, length), filled up with the stop token, and their masks; the stop token itself counts."""
    others = range(1, vocabulary)
    stopped = [(*body, 0) for size in range(length) for body in itertools.product(others, repeat=size)]
    sequences = [*stopped, *itertools.product(others, repeat=length)]
    tokens = torch.tensor([[*sequence, *[0] * (length - len(sequence))] for sequence in sequences])
    mask = torch.tensor([[position < len(sequence) for position in range(length)] for sequence in sequences])
    return tokens, mask


def _recurrent_log_probs(theta: Tensor, tokens: Tensor, vocabulary: int) -> Tensor:
    """Next-token log-probabilities (B, N, T, V) of Elman networks with parameters `theta` (B, P)."""
    v = vocabulary
    start, bias = theta[:, :v], theta[:, v : 2 * v]
    embedding, recurrence, readout = theta[:, 2 * v :].reshape(-1, 3, v, v).unbind(1)
    state = start[:, None, :].expand(-1, len(tokens), -1)
    logits = []
    for position in range(tokens.shape[1]):
        logits.append(state @ readout + bias[:, None, :])
        state = torch.tanh(state @ recurrence + embedding[:, tokens[:, position]])
    return torch.log_softmax(torch.stack(logits, 2), -1)


def _jacobian(tables: Callable[[Tensor], Tensor], theta: Tensor) -> Tensor:
    """d tables / d theta (B, N, T, V, P), by one forward-mode pass over copies of the instances, each with a direction of its own."""
    count, parameters = theta.shape
    directions = torch.eye(parameters, dtype=theta.dtype).repeat(count, 1)
    with warnings.catch_warnings():  # the first use of forward mode makes some releases warn of a part of their own
        warnings.filterwarnings("ignore", message=r"`torch\.jit\.")
        columns: Tensor = torch.func.jvp(tables, (theta.repeat_interleave(parameters, 0),), (directions,))[1]
    return columns.reshape(count, parameters, *columns.shape[1:]).movedim(1, -1).contiguous()
