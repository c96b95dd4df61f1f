"""What the words of an identifier say: whose log-probability it is, whether it is a loss, a reward, a metric, a mask, a coefficient.

Names are the weakest evidence there is: they are asked only about what comes from outside the code that was read (parameters, batch
keys, results of calls that cannot be followed).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Set
from functools import lru_cache

from klaudit.code.roles import FOREIGN, OLD, POLICY, REFERENCE


def vocabulary(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_LOG_PROBABILITY = vocabulary(
    """
    logp logps logprob logprobs lp lps lprob lprobs logpi logpis loglik loglikelihood logproba logprobas logpac
    """
)
_AFTER_LOG = vocabulary("p ps pi pis prob probs proba probas probability probabilities likelihood likelihoods")
_REFERENCE = vocabulary("ref refs reference base sft init initial anchor frozen pretrained")
_BARE_REFERENCE = vocabulary("ref refs reference")
_BARE_COMPANY = vocabulary("pi policy token tokens per new cur")
_OLD = vocabulary(
    """
    old prev previous rollout rollouts behav behavior behaviour behavioral sampling sampled sampler llm gen
    generation generated vllm sglang infer inference prox proximal recomputed stale mu mb stored cached snapshot
    """
)
_TEACHER = vocabulary("teacher teachers distill distilled distillation expert")
_PREFERENCE = vocabulary("chosen rejected reject preferred dispreferred winner loser win lose accepted kl")
_MODEL = vocabulary("model models policy actor net network module engine worker wg lm group peft adapter")

_PARAMETERS = vocabulary("params parameters variables")
_OF_REFERENCE = vocabulary("ref refs reference sft initial anchor")
_OF_OLD = vocabulary("old prev previous behavior behaviour")
_OF_POLICY = _PARAMETERS | vocabulary("policy actor model train trainable trained new current state")

_LOSS = vocabulary("loss losses criterion")  # an objective may be what is maximised
_REWARD = vocabulary("reward rewards advantage advantages adv advs return returns")
_SCORE = vocabulary("score scores scored scorer outcome outcomes shape shaped shaper shaping penalized penalised")
_METRIC = vocabulary(
    """
    metric metrics stat stats log logs logger logging info infos monitor debug summary tracker writer wandb status report
    history
    """
)
_MASK = vocabulary(
    """
    mask masks eos pad padding valid lengths length lens len cnt count counts ids indices index idx labels label attention
    """
)
_TOKENS = vocabulary("id ids token tokens tok toks label labels action actions target targets y")
_POSITIONS = vocabulary(
    "pos position positions idx index indices len length lengths last start end row rows batch arange"
)
_TRUTHS = vocabulary("mask masks valid keep is")
_PENALTY_COEFFICIENT = vocabulary("beta betas coef coefs coeff coeffs coefficient ctl ctrl")
_COEFFICIENT = _PENALTY_COEFFICIENT | vocabulary(
    """
    alpha lambda lam scale factor weight gamma eps epsilon
    temperature steps num size accumulation normalizer denominator
    """
)
_OBJECT_ROOTS = vocabulary(
    "self cfg config args conf hparams hyperparams hyperparameters params settings opt options flags hps cls"
)
_MEAN = vocabulary("mean avg average nanmean")
_AVERAGE = vocabulary(
    "mean sum avg average agg aggregate aggregated aggregator reduce reduction reducer nanmean nansum"
)
_AGGREGATION = _AVERAGE | vocabulary("gather pad unpad split chunk cat stack concat select slice")
_BAR_AGGREGATION = vocabulary("whiten normalize normalise std var kl penalty loss")


@lru_cache(maxsize=8192)
def words(identifier: str) -> tuple[str, ...]:
    """`refLogProbs`, `ref_log_probs` and `ref/log-probs` all give (ref, log, probs)."""
    return tuple(word.lower() for word in _WORD.findall(identifier))


def _has(identifier: str, vocabulary: frozenset[str]) -> bool:
    return not vocabulary.isdisjoint(words(identifier))


@lru_cache(maxsize=8192)
def is_log_probability(identifier: str) -> bool:
    found = words(identifier)
    if not _LOG_PROBABILITY.isdisjoint(found):
        return True
    pairs = list(itertools.pairwise(found))
    return ("log", "softmax") in pairs or any(first == "log" and second in _AFTER_LOG for first, second in pairs)


@lru_cache(maxsize=8192)
def is_of_top_entries(identifier: str) -> bool:
    """`topk_indices`, `top_k_logps`: of the likeliest entries of the vocabulary only."""
    found = words(identifier)
    return "topk" in found or ("top", "k") in itertools.pairwise(found)


def are_of_tokens(found: Set[str]) -> bool:
    """An index of sampled tokens: `ids`, `labels`, `next_token`."""
    return not _TOKENS.isdisjoint(found)


def are_of_positions(found: Set[str]) -> bool:
    """An index of places in a sequence or a batch: `last_position`, `seq_len - 1`, `batch_idx`."""
    return not _POSITIONS.isdisjoint(found)


def are_of_a_mask(found: Set[str]) -> bool:
    return not found.isdisjoint(_TRUTHS)


def is_logits(identifier: str) -> bool:
    return _has(identifier, frozenset({"logits", "logit"}))


@lru_cache(maxsize=8192)
def holder(identifier: str) -> int:
    """Whose log-probability (or logits, or model) the name speaks of; the policy where it does not say."""
    found = words(identifier)
    if not _PREFERENCE.isdisjoint(found) or not _TEACHER.isdisjoint(found):
        return FOREIGN
    if not _REFERENCE.isdisjoint(found):
        return REFERENCE
    return POLICY if _OLD.isdisjoint(found) else OLD


@lru_cache(maxsize=8192)
def is_bare_reference(identifier: str) -> bool:
    """`ref`, `pi_ref`: a reference log-probability by the company it keeps, if at all."""
    found = words(identifier)
    return not _BARE_REFERENCE.isdisjoint(found) and all(
        word in _BARE_REFERENCE or word in _BARE_COMPANY for word in found
    )


@lru_cache(maxsize=8192)
def is_result_of_reference(identifier: str) -> bool:
    """`ref_out`, `reference_outputs`: what the reference gave, all of it."""
    return _has(identifier, _BARE_REFERENCE) and holder(identifier) == REFERENCE


@lru_cache(maxsize=8192)
def names_model_of(identifier: str) -> int | None:
    """Whose model a callee or argument is (`self.ref_model`, `reference_policy`), None where it is no model."""
    last = identifier.rsplit(".", 1)[-1]
    found = words(last)
    if (_MODEL.isdisjoint(found) and not is_bare_reference(last)) or is_log_probability(last):
        return None
    return holder(last)


def is_model(identifier: str) -> bool:
    """It is called a model, and not something of one (`ref_model`, `policy`, but not `model_inputs`)."""
    found = [word for word in words(identifier) if not word.isdigit()]
    return bool(found) and found[-1] in _MODEL and not is_log_probability(identifier)


def is_of_the_start(identifier: str) -> bool:
    """`model_0`, `pi0`."""
    return words(identifier)[-1:] == ("0",)


def are_parameters(identifier: str) -> bool:
    return _has(identifier, _PARAMETERS)


@lru_cache(maxsize=8192)
def parameters_of(dotted: str) -> int | None:
    """Whose parameters a call is given, where one network serves several models (`ref_params`, `ref_state.params`).

    None where it is no set of parameters, or does not say.  Fewer words count than for a model: `base_params` or `frozen_params` are part
    of a policy with adapters, `sampling_params` are no weights, `initial_state` may be that of a recurrent network.
    """
    last, everywhere = words(dotted.rpartition(".")[2]), words(dotted)
    is_state = "state" in last
    if _PARAMETERS.isdisjoint(last) and not is_state:
        return None
    if not _TEACHER.isdisjoint(everywhere):
        return FOREIGN
    if not (_BARE_REFERENCE if is_state else _OF_REFERENCE).isdisjoint(everywhere):
        return REFERENCE
    if not _OF_OLD.isdisjoint(everywhere):
        return None if is_state else OLD
    return POLICY if any(_OF_POLICY.issuperset(words(part)) for part in dotted.split(".")) else None


@lru_cache(maxsize=8192)
def gives_reference(dotted: str) -> bool:
    """A function that by its name computes the reference's log-probabilities, and no others."""
    last = dotted.rsplit(".", 1)[-1]
    return is_log_probability(last) and "and" not in words(last) and holder(last) == REFERENCE


def is_loss(identifier: str) -> bool:
    return _has(identifier, _LOSS)


@lru_cache(maxsize=8192)
def is_reward(identifier: str) -> bool:
    found = words(identifier)
    return not _REWARD.isdisjoint(found) and "implicit" not in found and _PREFERENCE.isdisjoint(set(found) - {"kl"})


def is_scored(identifier: str) -> bool:
    """A reward by a name that is one only in company: scores that a penalty is taken from."""
    return is_reward(identifier) or (
        _has(identifier, _SCORE) and _PREFERENCE.isdisjoint(set(words(identifier)) - {"kl"})
    )


def speaks_of_reward(identifier: str) -> bool:
    """Whatever kind of reward it is."""
    return _has(identifier, _REWARD)


def is_metric(identifier: str) -> bool:
    return _has(identifier, _METRIC)


def is_mask(identifier: str) -> bool:
    return _has(identifier, _MASK)


@lru_cache(maxsize=8192)
def is_coefficient(path: str) -> bool:
    """A knob: named like a coefficient, or an attribute of a configuration object."""
    root, _, rest = path.partition(".")
    last = path.removesuffix(".value").rsplit(".", 1)[-1]
    if _has(last, _PENALTY_COEFFICIENT):
        return True
    if is_reward(path) or (is_loss(rest or root) and not _has(rest or root, _COEFFICIENT)):
        return False
    return _has(last, _COEFFICIENT) or (bool(rest) and not _OBJECT_ROOTS.isdisjoint(words(root)))


def is_of_settings(path: str) -> bool:
    """An attribute of a configuration object, wherever that is kept."""
    owner = path.rpartition(".")[0]
    return any(not _OBJECT_ROOTS.isdisjoint(words(part)) for part in owner.split("."))


@lru_cache(maxsize=8192)
def is_aggregation(identifier: str) -> bool:
    """A function that averages, sums, gathers or cuts: linear in what it is given."""
    found = set(words(identifier))
    return not _AGGREGATION.isdisjoint(found) and _BAR_AGGREGATION.isdisjoint(found - {"loss"})


@lru_cache(maxsize=8192)
def is_average(identifier: str) -> bool:
    """Of those, a function that averages or sums."""
    return is_aggregation(identifier) and _has(identifier, _AVERAGE)


@lru_cache(maxsize=8192)
def is_mean(identifier: str) -> bool:
    """Of those, one that divides by the number of what it sums."""
    return is_average(identifier) and _has(identifier, _MEAN)


@lru_cache(maxsize=8192)
def is_linear_call(dotted: str) -> bool:
    """A call that was not followed but is linear: an average by its name, or the loss scaling of mixed precision, which is undone."""
    owner, _, last = dotted.rpartition(".")
    return is_aggregation(last) or (last == "scale" and "scaler" in words(owner))


def speaks_of_kl(identifier: str) -> bool:
    return _has(identifier, frozenset({"kl", "kld", "kls", "kldiv", "divergence"}))


@lru_cache(maxsize=8192)
def may_concern_a_penalty(identifier: str) -> bool:
    """Worth looking for in another file: its name speaks of a loss, a reward, a KL, a coefficient or a log-probability."""
    found = set(words(identifier)) | {"".join(words(identifier))}
    vocabulary = (
        _LOSS
        | _REWARD
        | _COEFFICIENT
        | {"kl", "kld", "penalty", "divergence", "estimator", "init", "forward", "call", "step"}
    )
    return not vocabulary.isdisjoint(found) or is_log_probability(identifier)
