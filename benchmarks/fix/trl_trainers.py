"""Two steps of TRL's own trainers after `klaudit fix --choice`, on a tiny random model, against the exact gradient of the KL.

    python -m benchmarks.fix.trl_trainers rloo subclass        (needs trl, and klaudit[tensor]; CPU, no network)

The reward is constant, so that the loss's gradient is the penalty's alone.  With a vocabulary of 8 and responses of up to two tokens
KL(pi||ref) of whole responses and its gradient are sums over 57 responses.  Prints, for each step, the cosine between the two
gradients and their ratio in length, and the size of the advantages before and after the penalty.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import tempfile
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from klaudit.configuration import Options
from klaudit.fixes.migration import Request
from klaudit.fixes.planning import plan

BETA, VOCABULARY, LONGEST, GROUP = 0.04, 8, 2, 512
END = 1  # the token that ends a response
TRAIN = f"""from trl import GRPOConfig, GRPOTrainer


def make(model, reward, data, tokenizer, folder):
    config = GRPOConfig(
        output_dir=folder,
        beta={BETA},
        num_generations={GROUP},
        per_device_train_batch_size={GROUP},
        max_completion_length={LONGEST},
        max_steps=2,
        learning_rate=0.0,
        max_grad_norm=1e9,
        report_to=[],
        use_cpu=True,
        bf16=False,
        save_strategy="no",
    )
    return GRPOTrainer(model=model, reward_funcs=reward, args=config, train_dataset=data, processing_class=tokenizer)
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("choices", nargs="+", choices=("rloo", "subclass", "none"))
    for choice in parser.parse_args(arguments).choices:
        with tempfile.TemporaryDirectory() as folder:
            print(f"trl {version('trl')}, {choice}")
            for line in measure(choice, Path(folder)):
                print(f"- {line}")


def measure(choice: str, folder: Path) -> list[str]:
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", CUDA_VISIBLE_DEVICES="")
    datasets: Any = import_module("datasets")
    transformers: Any = import_module("transformers")
    torch.manual_seed(0)
    tokenizer = _write_model(folder / "model")
    module = _fixed(choice, folder)
    data = datasets.Dataset.from_dict({"prompt": ["a b"] * 8})
    trainer = module.make(str(folder / "model"), _no_reward, data, tokenizer, str(folder / "out"))
    with torch.no_grad():
        for parameter in trainer.model.parameters():  # away from the reference
            if parameter.dim() > 1:
                parameter.add_(torch.randn_like(parameter) * 0.15)
    advantages = _spy(trainer)
    lines: list[str] = []

    def compare(self: object, *given: object, **named: object) -> None:
        found = torch.cat([_flat(each.grad, each) for each in trainer.model.parameters()])
        kl, exact = _exact(trainer)
        cosine = torch.cosine_similarity(found, exact, 0)
        before, after = advantages[-1]
        lines.append(
            f"KL(pi||ref) {kl:.2f} nats; cosine {cosine:.3f}, length {found.norm() / exact.norm():.3f} of the exact gradient; "
            f"root mean square of the advantages {before:.4f} before the penalty, {after:.4f} with it"
        )

    watching = type("Watching", (transformers.TrainerCallback,), {"on_pre_optimizer_step": compare})
    trainer.add_callback(watching())
    trainer.train()
    return [f"{type(trainer).__name__}, beta of the loss {trainer.beta}", *lines]


def _no_reward(completions: Sequence[object], **others: object) -> list[float]:
    return [0.0] * len(completions)


def _write_model(folder: Path) -> Any:
    tokenizers: Any = import_module("tokenizers")
    transformers: Any = import_module("transformers")
    words = {"<pad>": 0, "<eos>": END, **{chr(97 + at): at + 2 for at in range(VOCABULARY - 2)}}
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="a"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", padding_side="left",
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=32, pad_token_id=0, eos_token_id=END, bos_token_id=None, tie_word_embeddings=False,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.4)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return tokenizer


def _fixed(choice: str, folder: Path) -> ModuleType:
    """The training file as klaudit leaves it."""
    source = folder / "source"
    source.mkdir()
    (source / "requirements.txt").write_text(f"trl=={version('trl')}\n")
    text = (
        TRAIN
        if "use_bias_correction_kl" not in _fields()
        else TRAIN.replace("beta=", "use_bias_correction_kl=False,\n        beta=")
    )
    (source / "train.py").write_text(text)
    if choice != "none":
        made = plan([str(source)], Options(), Request(choice=choice, unsafe=True))
        if not made.contents:
            raise SystemExit(made.unchanged[0].why)
        (source / "train.py").write_bytes(made.contents["train.py"])
    spec = importlib.util.spec_from_file_location("train", source / "train.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _fields() -> frozenset[str]:
    trl: Any = import_module("trl")
    return frozenset(trl.GRPOConfig.__dataclass_fields__)


def _spy(trainer: Any) -> list[tuple[float, float]]:
    """Root mean square of the advantages that TRL's own class makes, and of those that the loss gets."""
    found: list[tuple[float, float]] = []
    own: Any = type(trainer)
    base: Any = next(each for each in own.__mro__ if each.__module__.startswith("trl."))
    made, used = base._generate_and_score_completions, own._generate_and_score_completions
    before: list[float] = []

    def of_base(self: Any, inputs: Any) -> Any:
        batch = made(self, inputs)
        before.append(_size(batch))
        return batch

    def of_all(self: Any, inputs: Any) -> Any:
        batch = used(self, inputs) if own is not base else of_base(self, inputs)
        found.append((before[-1], _size(batch)))
        return batch

    base._generate_and_score_completions = of_base
    own._generate_and_score_completions = of_all
    return found


def _size(batch: Any) -> float:
    return float(batch["advantages"].pow(2).mean().sqrt())


def _exact(trainer: Any) -> tuple[float, torch.Tensor]:
    """KL(pi||ref) of whole responses in nats, and the gradient of BETA times it."""
    listed = [(END,), *((one, other) for one in range(VOCABULARY) if one != END for other in range(VOCABULARY))]
    responses, mask = torch.zeros(len(listed), LONGEST, dtype=torch.long), torch.zeros(len(listed), LONGEST)
    for at, tokens in enumerate(listed):
        responses[at, : len(tokens)] = torch.tensor(tokens)
        mask[at, : len(tokens)] = 1
    was_training = trainer.model.training
    trainer.model.eval()
    policy = _log_probability(trainer.model, responses, mask)
    with torch.no_grad():
        reference = _log_probability(trainer.ref_model, responses, mask)
    kl = (policy.exp() * (policy - reference)).sum()
    parameters = list(trainer.model.parameters())
    gradients = torch.autograd.grad(BETA * kl, parameters, allow_unused=True)
    trainer.model.train(was_training)
    return float(kl), torch.cat([_flat(each, parameter) for each, parameter in zip(gradients, parameters, strict=True)])


def _log_probability(model: Any, responses: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    prompt = torch.tensor([[2, 3]]).expand(len(responses), 2)
    tokens = torch.cat([prompt, responses], dim=1)
    attention = torch.cat([torch.ones_like(prompt), mask.long()], dim=1)
    logits = model(input_ids=tokens, attention_mask=attention).logits[:, :-1]
    chosen = torch.log_softmax(logits, dim=-1).gather(-1, tokens[:, 1:, None])[..., 0]
    return (chosen[:, -responses.shape[1] :] * mask).sum(dim=1)


def _flat(gradient: torch.Tensor | None, parameter: torch.Tensor) -> torch.Tensor:
    return (torch.zeros_like(parameter) if gradient is None else gradient).flatten()


if __name__ == "__main__":
    main()
