"""`klaudit verify`: the theory proved on tensors, a function identified, rollouts measured.  Needs the extra `klaudit[tensor]`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from klaudit.cli.parameters import Failure, OneOf
from klaudit.reports.visible import visible

if TYPE_CHECKING:
    import torch

    from klaudit.model import Placement
    from klaudit.tensor.backend import DeviceName

_MISSING = "klaudit verify needs PyTorch, which is not installed: pip install 'klaudit[tensor]'"
_MIB = 1 << 20
_PATIENCE = 0.7  # seconds before progress appears
_BIASED = 1  # exit status where a function or the theory is not what it should be


@dataclass(frozen=True, slots=True)
class _Request:
    """What was given on the command line."""

    target: str | None
    format_name: str
    plot: Path | None
    seed: int
    device: DeviceName
    scale: bool
    tokens: int | None
    logprobs: Path | None
    keys: tuple[str, ...]
    run: bool
    placement: Placement
    arguments: tuple[str, ...]
    time_limit: float
    memory_limit: int | None


@click.command(
    epilog="Exit status: 0 all as it should be; 1 the theory does not hold, or the function is biased; 2 wrong usage or input that cannot "
    "be read."
)
@click.argument("target", required=False, metavar="[FILE.py:FUNCTION]")
@click.option(
    "--format", "format_name", type=OneOf(("text", "json")), default="text", show_default=True, help="What to write."
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw bias and variance, or the rollouts' log-ratios: .svg, or .png with matplotlib.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of every random number.")
@click.option(
    "--device", type=OneOf(("auto", "cpu", "cuda", "mps")), default="auto", show_default=True, help="Where to compute."
)
@click.option("--scale", is_flag=True, help="Check a language model's vocabulary, and floating-point arithmetic.")
@click.option("--tokens", type=click.IntRange(1), metavar="N", help="With --scale: how many tokens.")
@click.option(
    "--logprobs",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Measure rollouts: .safetensors, .npz, .pt or .jsonl.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="NAME=KEY",
    help="With --logprobs: the file's key for logp, ref_logp, old_logp or mask.",
)
@click.option(
    "--run", is_flag=True, help="Import FILE.py and call FUNCTION, instead of interpreting its source. Runs its code."
)
@click.option(
    "--placement",
    type=OneOf(("loss", "reward")),
    default="loss",
    show_default=True,
    help="How FUNCTION's penalty is used.",
)
@click.option(
    "--argument",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of another parameter of FUNCTION. Repeatable.",
)
@click.option(
    "--time-limit", type=click.FloatRange(1), default=30.0, show_default=True, metavar="S", help="With --run: seconds."
)
@click.option(
    "--memory-limit",
    type=click.IntRange(64),
    metavar="MIB",
    help="With --run (default 2048) and --scale (default 1024, on CUDA half of what is free).",
)
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Prove on tensors what each KL estimator and placement descends.

    With FILE.py:FUNCTION, say which estimator that function is, what its score weight is and what it descends.
    """
    request = _Request(**given)
    _refuse_contradictions(request)
    if find_spec("torch") is None:
        raise Failure(_MISSING)
    from klaudit.tensor.errors import TensorError

    try:
        ctx.exit(_status(request))
    except TensorError as error:
        raise Failure(str(error)) from None
    except MemoryError:
        raise Failure("out of memory: ask for fewer tokens (--tokens) or a smaller file") from None
    except RuntimeError as error:  # how PyTorch says that memory is short, on every device
        if "out of memory" in str(error) or "allocate memory" in str(error):
            raise Failure(
                f"out of memory: ask for fewer tokens (--tokens) or a smaller file ({str(error).splitlines()[0]})"
            ) from None
        raise


def _refuse_contradictions(request: _Request) -> None:
    modes = [
        name
        for name, given in (
            ("FILE.py:FUNCTION", request.target),
            ("--scale", request.scale),
            ("--logprobs", request.logprobs),
        )
        if given
    ]
    if len(modes) > 1:
        raise click.UsageError(f"{modes[0]} and {modes[1]} exclude each other")
    mode = modes[0] if modes else ""
    needs = (
        ("--run", request.run, "FILE.py:FUNCTION"),
        ("--argument", request.arguments, "FILE.py:FUNCTION"),
        ("--tokens", request.tokens, "--scale"),
        ("--key", request.keys, "--logprobs"),
    )
    for option, given, needed in needs:
        if given and mode != needed:
            raise click.UsageError(f"{option} goes with {needed}")
    if request.plot and mode in ("FILE.py:FUNCTION", "--scale"):
        raise click.UsageError(f"--plot does not go with {mode}")


def _status(request: _Request) -> int:
    from klaudit.tensor import charts
    from klaudit.tensor.backend import limit_threads

    limit_threads(1)
    if request.plot is not None:
        charts.check_target(request.plot)
    if request.target is not None:
        return _function(request)
    if request.logprobs is not None:
        return _rollouts(request)
    return _scale(request) if request.scale else _theory(request)


def _theory(request: _Request) -> int:
    from klaudit.tensor import json_output, text
    from klaudit.tensor.verification import verify

    device = _device(request)
    with _progress() as tell:
        found = verify(device, seed=request.seed, progress=tell)
    click.echo(json_output.of_verification(found) if request.format_name == "json" else text.of_verification(found))
    if request.plot is not None:
        from klaudit.tensor.charts import write
        from klaudit.tensor.curves import bias_and_variance

        write(request.plot, bias_and_variance(device, request.seed))
    return _BIASED if found.broken else 0


def _scale(request: _Request) -> int:
    from klaudit.tensor import json_output, text
    from klaudit.tensor.backend import limit_threads
    from klaudit.tensor.numerics import check_numerics
    from klaudit.tensor.scale import Size, check_scale

    limit_threads()
    device = _device(request)
    with _progress() as tell:
        memory = None if request.memory_limit is None else request.memory_limit * _MIB
        size = Size.for_device(device, request.tokens, memory)
        found = check_scale(device, size, seed=request.seed, progress=tell)
        tell("numerics")
        numerics = list(check_numerics(device, request.seed))
    click.echo(
        json_output.of_scale(found, numerics) if request.format_name == "json" else text.of_scale(found, numerics)
    )
    return _BIASED if found.broken else 0


def _function(request: _Request) -> int:
    from klaudit.tensor import json_output, text
    from klaudit.tensor.user_function import Limits, Target, run

    target = Target.parse(cast(str, request.target), request.arguments)
    if request.run:
        click.echo(
            f"klaudit: running the code of {visible(str(target.path))} with your rights, for at most {request.time_limit:g} s",
            err=True,
        )
        found = run(target, request.placement, Limits(request.time_limit, (request.memory_limit or 2048) * _MIB))
    else:
        from klaudit.tensor.interpretation import interpret

        found = interpret(target, request.placement)
    how = "run: value and autograd slope" if request.run else "interpreted from source: nothing was run"
    click.echo(
        json_output.of_fingerprint(found, how) if request.format_name == "json" else text.of_fingerprint(found, how)
    )
    return 0 if found.verdict in ("unbiased", "unbiased-per-token") else _BIASED


def _rollouts(request: _Request) -> int:
    from klaudit.tensor import json_output, text
    from klaudit.tensor.rollouts import Rollouts, measure

    path = cast(Path, request.logprobs)
    rollouts = Rollouts.read(path, dict(map(_key, request.keys)))
    found = measure(rollouts)
    click.echo(
        json_output.of_measurement(found, path.name)
        if request.format_name == "json"
        else text.of_measurement(found, path.name)
    )
    if request.plot is not None:
        from klaudit.tensor.charts import write
        from klaudit.tensor.rollout_chart import weights_on

        write(request.plot, weights_on(rollouts.d))
    return 0


def _key(text: str) -> tuple[str, str]:
    from klaudit.tensor.rollout_files import NAMES

    name, separator, key = text.partition("=")
    if not separator or name not in NAMES or not key:
        raise click.UsageError(f"--key {text!r} should look like ref_logp=KEY; NAME is one of {', '.join(NAMES)}")
    return name, key


def _device(request: _Request) -> torch.device:
    from klaudit.tensor.backend import choose_device

    return choose_device(request.device)


class _Teller:
    """Says on standard error what is being done, on a terminal and once it takes long."""

    def __init__(self) -> None:
        self._due = time.monotonic() + _PATIENCE
        self._shown = 0

    def __call__(self, stage: str) -> None:
        if sys.stderr.isatty() and time.monotonic() >= self._due:
            self.clear()
            click.echo(f"{stage} ...", err=True, nl=False)
            self._shown = len(stage) + 4

    def clear(self) -> None:
        if self._shown:
            click.echo("\r" + " " * self._shown + "\r", err=True, nl=False)
            self._shown = 0


@contextmanager
def _progress() -> Iterator[_Teller]:
    teller = _Teller()
    try:
        yield teller
    finally:
        teller.clear()
