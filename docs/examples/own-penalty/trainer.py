import torch


def kl_penalty(logp, ref_logp):
    ratio = ref_logp - logp
    return torch.exp(ratio) - ratio - 1
