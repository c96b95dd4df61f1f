"""Forms that a penalty takes in real code, each with what it is: the estimator, where it goes, with which sign, and what is said of it."""

from __future__ import annotations

import pytest

from tests.code.snippets import only, rules_of, told, used

LOSS = """
import torch
import torch.nn.functional as F

def policy_loss(new_logp, old_logp, ref_logp, adv, mask, beta=0.04):
    ratio = torch.exp(new_logp - old_logp)
    pg = -torch.min(ratio * adv, torch.clamp(ratio, 0.8, 1.2) * adv)
    {kl}
    return ((pg + beta * kl) * mask).sum() / mask.sum()
"""

# what stands in place of {kl} -> (estimator, gradient), rules at or above a warning
IN_LOSS: dict[str, tuple[str, tuple[str, str], list[str]]] = {
    "k1": ("kl = new_logp - ref_logp", ("k1", "pathwise"), ["KLA103"]),
    "k1 by sub": ("kl = torch.sub(new_logp, ref_logp)", ("k1", "pathwise"), ["KLA103"]),
    "k1 from minus": ("kl = -(ref_logp - new_logp)", ("k1", "pathwise"), ["KLA103"]),
    "k1 from a ratio": ("kl = torch.log(torch.exp(new_logp) / torch.exp(ref_logp))", ("k1", "pathwise"), ["KLA103"]),
    "k2": ("kl = 0.5 * (new_logp - ref_logp) ** 2", ("k2", "pathwise"), []),
    "k2 by square": ("kl = (new_logp - ref_logp).square() / 2", ("k2", "pathwise"), []),
    "k2 by pow": ("kl = 0.5 * torch.pow(ref_logp - new_logp, 2)", ("k2", "pathwise"), []),
    "k2 by mse": ("d = new_logp - ref_logp\n    kl = 0.5 * d * d", ("k2", "pathwise"), []),
    "k2 not halved": ("kl = (new_logp - ref_logp).pow(2)", ("k2", "pathwise"), []),
    "k3": ("kl = torch.exp(ref_logp - new_logp) - (ref_logp - new_logp) - 1", ("k3", "pathwise"), ["KLA101"]),
    "k3 by method": ("x = ref_logp - new_logp\n    kl = x.exp() - x - 1", ("k3", "pathwise"), ["KLA101"]),
    "k3 by expm1": ("d = new_logp - ref_logp\n    kl = torch.expm1(-d) + d", ("k3", "pathwise"), ["KLA101"]),
    "k3 by ratio": (
        "r = torch.exp(ref_logp - new_logp)\n    kl = (r - 1) - torch.log(r)",
        ("k3", "pathwise"),
        ["KLA101"],
    ),
    "k3 reordered": ("d = new_logp - ref_logp\n    kl = d + torch.exp(-d) - 1.0", ("k3", "pathwise"), ["KLA101"]),
    "k3 through float": (
        "x = (ref_logp.float() - new_logp.float()).to(new_logp.dtype)\n    kl = x.exp() - x - 1",
        ("k3", "pathwise"),
        ["KLA101"],
    ),
    "k3 scaled": ("x = ref_logp - new_logp\n    kl = 3 * (x.exp() - x - 1)", ("k3", "pathwise"), ["KLA101"]),
    "k3 clamped before": (
        "x = torch.clamp(ref_logp - new_logp, -20, 20)\n    kl = x.exp() - x - 1",
        ("k3", "pathwise"),
        ["KLA101"],
    ),
    "k3 clamped after": (
        "x = ref_logp - new_logp\n    kl = torch.clamp(x.exp() - x - 1, min=-10, max=10)",
        ("k3", "pathwise"),
        ["KLA101", "KLA305"],
    ),
    "k3 masked by where": (
        "x = ref_logp - new_logp\n    kl = torch.where(mask.bool(), x.exp() - x - 1, 0.0)",
        ("k3", "pathwise"),
        ["KLA101"],
    ),
    "k3 clamped on one side": (
        "x = ref_logp - new_logp\n    kl = torch.exp(x.clamp(max=3)) - x - 1",
        ("k3", "pathwise"),
        ["KLA101", "KLA305"],
    ),
    "abs": ("kl = (new_logp - ref_logp).abs()", ("abs", "pathwise"), ["KLA105"]),
    "abs by max": ("d = new_logp - ref_logp\n    kl = torch.max(d, -d)", ("abs", "pathwise"), ["KLA105"]),
    "abs by l1": ("kl = torch.abs(ref_logp - new_logp)", ("abs", "pathwise"), ["KLA105"]),
    "reversed k3": (
        "d = new_logp - ref_logp\n    kl = d.exp() - 1 - d",
        ("reversed-k3", "pathwise"),
        ["KLA302"],
    ),
    "straight-through k3": (
        "d = new_logp - ref_logp\n    k2 = 0.5 * d**2\n    kl = k2 - k2.detach() + ((-d).exp() - 1 + d).detach()",
        ("k3", "straight-through-k2"),
        [],
    ),
    "straight-through k1": (
        "d = new_logp - ref_logp\n    k2 = d.square() / 2\n    kl = d.detach() + k2 - k2.detach()",
        ("k1", "straight-through-k2"),
        [],
    ),
    "ratio k3 attached": (
        "x = ref_logp - new_logp\n    kl = ratio * (x.exp() - x - 1)",
        ("k3", "importance-weighted"),
        [],
    ),
    "ratio k1 attached": ("kl = ratio * (new_logp - ref_logp)", ("k1", "importance-weighted"), []),
    "ratio k2 attached": ("kl = ratio * (new_logp - ref_logp) ** 2 / 2", ("k2", "importance-weighted"), ["KLA105"]),
    "ratio k3 detached": (
        "x = ref_logp - new_logp\n    kl = ratio.detach() * (x.exp() - x - 1)",
        ("k3", "pathwise"),
        ["KLA105"],
    ),
    "ratio k2 detached": ("kl = ratio.detach() * 0.5 * (new_logp - ref_logp) ** 2", ("k2", "pathwise"), []),
    "weight exp(x - sg(x)) on k3": (
        "x = ref_logp - new_logp\n    kl = torch.exp(new_logp - new_logp.detach()) * (x.exp() - x - 1)",
        ("k3", "importance-weighted"),
        [],
    ),
    "sequence ratio on k3": (
        "x = ref_logp - new_logp\n    s = ((new_logp - old_logp) * mask).sum(-1) / mask.sum(-1)\n"
        "    kl = torch.exp(s).unsqueeze(-1) * (x.exp() - x - 1)",
        ("k3", "importance-weighted"),
        ["KLA105"],
    ),
    "detached": ("kl = (ref_logp - new_logp).exp().detach() - (ref_logp - new_logp).detach() - 1", ("k3", "none"), ["KLA303"]),
    "under no_grad": (
        "with torch.no_grad():\n        x = ref_logp - new_logp\n        kl = x.exp() - x - 1",
        ("k3", "none"),
        ["KLA303"],
    ),
    "through a number": ("kl = float((new_logp - ref_logp).mean())", ("k1", "none"), ["KLA303"]),
    "rebuilt as a tensor": (
        "x = ref_logp - new_logp\n    kl = torch.tensor([k.mean() for k in x.exp() - x - 1])",
        ("k3", "none"),
        ["KLA303"],
    ),
    "probability-weighted samples": (
        "kl = torch.exp(new_logp) * (new_logp - ref_logp)",
        ("unknown", "pathwise"),
        ["KLA306"],
    ),
    "score function": ("kl = (new_logp - ref_logp).detach() * new_logp", ("k1", "score"), []),
    "score function of k3": (
        "x = (ref_logp - new_logp).detach()\n    kl = (x.exp() - x - 1) * new_logp",
        ("k3", "score"),
        ["KLA102"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_LOSS)
def test_in_a_loss(name: str) -> None:
    text, (estimator, gradient), rules = IN_LOSS[name]
    code = LOSS.replace("{kl}", text)
    (formula,) = used(code)
    what = formula.what
    assert (what.estimator, formula.detached or what.gradient == "none") == (estimator, gradient == "none")
    assert what.gradient == gradient or gradient == "none"
    assert formula.sign(what) == 1
    assert formula.knobs[0].name == "beta"
    assert rules_of(code) == rules


def test_every_score_weight_is_the_theorys() -> None:
    """What autograd gives, as a sum over the theory's basis."""
    weights = {
        "k1": "1", "k2": "d", "k3": "1 - exp(-d)", "abs": "sign(d)", "reversed k3": "exp(d) - 1", "ratio k3 attached": "d",
        "straight-through k3": "d", "ratio k1 attached": "d + 1",
    }  # fmt: skip
    for name, weight in weights.items():
        (formula,) = used(LOSS.replace("{kl}", IN_LOSS[name][0]))
        assert str(formula.what.weight) == weight, name


REWARDS: dict[str, tuple[str, list[tuple[str, str, str, int]], list[str]]] = {
    "k1 subtracted": (
        """
        def compute_rewards(scores, logp, ref_logp, kl_coef):
            return scores - kl_coef * (logp - ref_logp)
        """,
        [("reward", "k1", "pathwise", -1)],
        [],
    ),
    "k1 added as ref - policy": (
        """
        def compute_rewards(scores, logp, ref_logp, kl_coef):
            return scores + kl_coef * (ref_logp - logp)
        """,
        [("reward", "k1", "pathwise", -1)],
        [],
    ),
    "k1 with the wrong sign": (
        """
        def compute_rewards(scores, logp, ref_logp, kl_coef):
            return scores + kl_coef * (logp - ref_logp)
        """,
        [("reward", "k1", "pathwise", 1)],
        ["KLA301"],
    ),
    "in place on a dict entry": (
        """
        def shape(batch, cfg):
            kl = batch["old_logps"] - batch["ref_logps"]
            batch["rewards"] -= cfg.kl.coef * kl
        """,
        [("reward", "k1", "none", -1)],
        [],
    ),
    "in place by a method": (
        """
        def shape(rewards, logp, ref_logp, coef):
            rewards.sub_(coef * (logp - ref_logp))
            return rewards
        """,
        [("reward", "k1", "pathwise", -1)],
        [],
    ),
    "the penalty first, the score added later": (
        """
        class Trainer:
            def rewards(self, log_probs, ref_log_probs, score):
                kl_divergence_estimate = -self.kl_ctl * (log_probs - ref_log_probs)
                rewards = kl_divergence_estimate
                for j in range(3):
                    rewards[j, 1:4][-1] += score[j]
                return rewards
        """,
        [("reward", "k1", "pathwise", -1)],
        [],
    ),
    "unary minus on the log-ratio": (
        """
        class Trainer:
            def collect(self, logprobs, ref_logprobs, attention_mask, scores):
                log_ratio = (logprobs - ref_logprobs) * attention_mask[:, :-1]
                kl_penalty = self.kl_ctl.value * -log_ratio.cpu()
                kl_penalty = [xs[:5] for xs in kl_penalty]
                for i in range(4):
                    rewards = kl_penalty[i]
                    rewards[-1] += scores[i]
        """,
        [("reward", "k1", "pathwise", -1)],
        [],
    ),
    "k3": (
        """
        import torch
        def compute_advantages(scores, old_logp, ref_logp, beta):
            x = ref_logp - old_logp
            rewards = scores - beta * (torch.exp(x) - x - 1)
            return rewards - rewards.mean()
        """,
        [("reward", "k3", "none", -1)],
        ["KLA102"],
    ),
    "k2": (
        """
        def compute_rewards(scores, logp, ref_logp, beta):
            return scores - beta * 0.5 * (logp - ref_logp) ** 2
        """,
        [("reward", "k2", "pathwise", -1)],
        ["KLA104"],
    ),
    "abs": (
        """
        def compute_rewards(scores, logp, ref_logp, beta):
            return scores - beta * abs(logp - ref_logp)
        """,
        [("reward", "abs", "pathwise", -1)],
        ["KLA104"],
    ),
    "in the advantage, not detached": (
        """
        def loss_fn(logp, old_logp, ref_logp, score, beta):
            advantage = score - beta * (logp - ref_logp)
            return -((logp - old_logp).exp() * advantage).mean()
        """,
        [("reward", "k1", "pathwise", -1)],
        ["KLA304"],
    ),
    "in the advantage, detached": (
        """
        def loss_fn(logp, old_logp, ref_logp, score, beta):
            advantage = score - beta * (logp - ref_logp).detach()
            return -((logp - old_logp).exp() * advantage).mean()
        """,
        [("reward", "k1", "pathwise", -1)],
        [],
    ),
    "reinforce on a shaped reward": (
        """
        def loss_fn(logp, ref_logp, score, beta):
            return -(logp * (score - beta * (logp - ref_logp).detach())).mean()
        """,
        [("reward", "k1", "pathwise", -1)],
        [],
    ),
    "whitened": (
        """
        def compute_advantages(scores, logp, ref_logp, beta):
            rewards = scores - beta * (logp - ref_logp).sum(-1)
            return (rewards - rewards.mean()) / (rewards.std() + 1e-6)
        """,
        [("reward", "k1", "pathwise", -1)],
        [],
    ),
}


@pytest.mark.parametrize("name", REWARDS)
def test_in_a_reward(name: str) -> None:
    code, expected, rules = REWARDS[name]
    assert [told(formula) for formula in used(code)] == expected
    assert rules_of(code) == rules


def test_group_std_around_the_penalty_is_noted() -> None:
    (formula,) = used(REWARDS["whitened"][0])
    assert formula.normalised_by_spread


# What looks like a penalty and is none: nothing at all is said, or nothing of the 1xx.
TRAPS: dict[str, str] = {
    "metric of the old policy": """
        import torch
        def update(newlogprob, b_logprobs, adv, writer):
            logratio = newlogprob - b_logprobs
            ratio = logratio.exp()
            with torch.no_grad():
                approx_kl = ((ratio - 1) - logratio).mean()
            loss = -(ratio * adv).mean()
            loss.backward()
            writer.add_scalar("losses/approx_kl", approx_kl.item(), 1)
        """,
    "metric of the reference": """
        import torch
        def compute_loss(logp, old_logp, ref_logp, adv, metrics):
            x = ref_logp - logp
            metrics["kl"] = (x.exp() - x - 1).mean().item()
            return -((logp - old_logp).exp() * adv).mean()
        """,
    "returned beside the loss": """
        def compute_loss(logp, old_logp, ref_logp, adv):
            kl = ((ref_logp - logp).exp() - (ref_logp - logp) - 1).mean()
            loss = -((logp - old_logp).exp() * adv).mean()
            return loss, kl.detach()
        """,
    "trust region to the old policy": """
        def loss_fn(trainer_logprobs, inference_logprobs, adv, kl_tau):
            log_ratio = trainer_logprobs - inference_logprobs
            kl_loss = log_ratio ** 2
            return (-log_ratio.exp() * adv + kl_tau * kl_loss).sum()
        """,
    "distillation": """
        def distillation_loss(student_logp, teacher_logp, rl_loss, weight):
            return rl_loss + weight * (student_logp - teacher_logp).mean()
        """,
    "dpo": """
        import torch.nn.functional as F
        def dpo_loss(policy_chosen_logps, policy_rejected_logps, reference_chosen_logps, reference_rejected_logps, beta):
            pi = policy_chosen_logps - policy_rejected_logps
            ref = reference_chosen_logps - reference_rejected_logps
            losses = -F.logsigmoid(beta * (pi - ref))
            chosen_rewards = beta * (policy_chosen_logps - reference_chosen_logps).detach()
            return losses.mean(), chosen_rewards
        """,
    "dpo on halves of one tensor": """
        import torch.nn.functional as F
        def dpo_loss(config, minibatch):
            chosen_rewards, rejected_rewards = config.beta * (minibatch["logps"] - minibatch["ref_logps"]).sum(-1).view(-1, 2).T
            return -F.logsigmoid(chosen_rewards - rejected_rewards)
        """,
    "kto": """
        import torch.nn.functional as F
        def kto_loss(chosen_logps, ref_chosen_logps, KL_logps, ref_KL_logps, beta):
            kl = (KL_logps - ref_KL_logps).mean().detach().clamp(min=0)
            return 1 - F.sigmoid(beta * ((chosen_logps - ref_chosen_logps) - kl))
        """,
    "vae": """
        import torch
        def vae_loss(recon, x, mu, logvar, beta):
            kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
            return ((recon - x) ** 2).mean() + beta * kl
        """,
    "thrown away": """
        def loss_fn(logp, old_logp, ref_logp, adv, beta):
            kl = (ref_logp - logp).exp() - (ref_logp - logp) - 1
            adv - beta * kl
            return -((logp - old_logp).exp() * adv).mean()
        """,
    "ratio to the reference in place of the old policy": """
        import torch
        def compute_loss(logp, ref_logp, adv):
            ratio = torch.exp(logp - ref_logp)
            return -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
        """,
    "a helper that nothing calls": """
        def _unused_k3(lp, ref):
            d = ref - lp
            return d.exp() - d - 1
        """,
    "a library of estimators": """
        def kl_penalty(logprob, ref_logprob, kind):
            if kind == "kl":
                return logprob - ref_logprob
            if kind == "low_var_kl":
                return (ref_logprob - logprob).exp() - (ref_logprob - logprob) - 1
            raise NotImplementedError(kind)
        """,
    "early stopping": """
        def train(self, logp, old_logp, ref_logp, adv):
            kl = (logp - ref_logp).mean()
            if kl > self.target_kl:
                return None
            loss = -((logp - old_logp).exp() * adv).mean()
            loss.backward()
        """,
    "an adaptive coefficient": """
        class Trainer:
            def compute_loss(self, logp, old_logp, ref_logp, adv):
                kl = (logp - ref_logp).mean().item()
                self.controller.update(kl)
                return -((logp - old_logp).exp() * adv).mean()
        """,
    "evaluation without gradient": """
        import torch
        @torch.no_grad()
        def eval_loss(logp, ref_logp, adv, beta):
            kl = (ref_logp - logp).exp() - (ref_logp - logp) - 1
            return (-logp * adv + beta * kl).mean()
        """,
    "a preference reward": """
        def implicit_reward(policy_logps, ref_logps, beta):
            implicit_reward = beta * (policy_logps - ref_logps)
            return ((implicit_reward - 1.0) ** 2).mean()
        """,
}


@pytest.mark.parametrize("name", TRAPS)
def test_what_is_no_penalty_is_not_reported(name: str) -> None:
    assert rules_of(TRAPS[name], notes=True) == []


def test_a_coefficient_of_zero_is_no_finding() -> None:
    code = LOSS.replace("{kl}", IN_LOSS["k3"][0]).replace("beta=0.04", "beta=0.0")
    assert rules_of(code, notes=True) == []


@pytest.mark.parametrize(
    ("penalty", "estimator"),
    [
        ("masked_mean(logp - ref_logp, mask).clamp(max=10)", "k1"),
        ("library.masked_mean((logp - ref_logp) ** 2, mask) / 2", "k2"),
        ("torch.clamp(library.agg_loss(torch.exp(ref_logp - logp) - (ref_logp - logp) - 1), -10, 10)", "k3"),
        ("library.unpad(torch.abs(logp - ref_logp)).clamp(max=10).mean()", "abs"),
    ],
)
def test_an_average_of_a_library_below_a_clamp(penalty: str, estimator: str) -> None:
    code = f"""
    import torch
    import library
    from library import masked_mean

    def policy_loss(pg, logp, ref_logp, mask, beta):
        return pg.mean() + beta * {penalty}
    """
    assert only(code).what.estimator == estimator


def test_a_ratio_of_a_library_average_is_of_the_sequence() -> None:
    code = """
    import torch
    from library import masked_mean

    def policy_loss(adv, logp, old_logp, ref_logp, mask, beta):
        ratio = torch.exp(masked_mean(logp - old_logp, mask))
        k3 = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
        return -(ratio * adv).mean() + beta * (ratio * k3).mean()
    """
    assert only(code).what.ratio == "sequence"
