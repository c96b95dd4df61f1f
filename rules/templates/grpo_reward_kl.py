import copy

import torch
from trl import GRPOTrainer


class GRPOTrainerWithRewardKL(GRPOTrainer):
    """GRPO whose KL penalty is k1 in the reward instead of k3 in the loss.

    The advantage of a response is lowered by `kl_coef` times the sum of log pi - log pi_ref over its tokens, as
    far as that sum is above the mean over the other responses to the prompt: the gradient of
    kl_coef * KL(pi||pi_ref) of whole responses, scaled per response as the loss type scales the reward's.  The
    penalty joins after the rewards were divided by the group's standard deviation, and is fixed when the
    responses are scored: exact for the first update on a batch, less so for further ones.  Costs one more forward
    pass where the trainer does not score responses under the policy anyway.  `beta` of the configuration is not read.
    """

    def __init__(self, model, reward_funcs, args, *rest, kl_coef, **more):
        args = copy.copy(args)
        args.beta = kl_coef  # the reference model is loaded only for a beta other than 0
        super().__init__(model, reward_funcs, args, *rest, **more)
        if getattr(self, "use_liger_loss", False) or getattr(self, "liger_grpo_loss", None) is not None:
            raise ValueError("the fused Liger loss has its own KL term: switch it off")
        self.kl_coef, self.beta = kl_coef, 0.0  # a beta of 0 leaves the KL out of the loss

    def _generate_and_score_completions(self, inputs):
        name = "_get_per_token_logps_and_entropies"
        if not hasattr(self, name):
            name = "_get_per_token_logps"
        score = getattr(self, name)
        asked = []

        def remembered(model, *given, **named):
            asked[:] = [(given, named)]
            return score(model, *given, **named)

        setattr(self, name, remembered)
        self.beta = self.kl_coef  # for the log-probabilities of the reference
        try:
            batch = super()._generate_and_score_completions(inputs)
        finally:
            self.beta = 0.0
            delattr(self, name)

        policy = batch.get("old_per_token_logps")
        if policy is None:  # the policy is still the one that generated
            given, named = asked[0]
            with torch.no_grad():
                policy = score(self.model, *given, **named)
            policy = policy[0] if isinstance(policy, tuple) else policy
        mask = batch["completion_mask"]
        if batch.get("tool_mask") is not None:
            mask = mask * batch["tool_mask"]
        kl = ((policy - batch.pop("ref_per_token_logps")) * mask).sum(dim=1)

        training = self.model.training
        size = self.num_generations if training else getattr(self, "num_generations_eval", self.num_generations)
        groups = self.accelerator.gather(kl).view(-1, size)
        above_others = (groups - groups.mean(dim=1, keepdim=True)) * size / max(size - 1, 1)
        first = self.accelerator.process_index * len(kl)
        batch["advantages"] = batch["advantages"] - self.kl_coef * above_others.view(-1)[first : first + len(kl)]
        self._metrics["train" if training else "eval"]["kl"].append(groups.mean().item())
        return batch
