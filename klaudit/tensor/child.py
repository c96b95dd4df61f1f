"""The process that runs a user's function: `python -m klaudit.tensor.child`, a JSON request on stdin, a JSON answer on stdout."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import torch

from klaudit.tensor.errors import TensorError
from klaudit.tensor.fingerprints import fingerprint

_MODULE = "_klaudit_target"  # not the file's own name, which may be that of a module in use
_OLD = ("old", "rollout", "behavior", "behaviour")
_REFERENCE = ("ref", "base", "initial")


def main() -> None:
    """Answer one request.  What the user's code prints goes to stderr, so that the answer stays alone on stdout."""
    request = json.load(sys.stdin)
    with os.fdopen(os.dup(1), "w") as answer:
        os.dup2(2, 1)
        json.dump(_respond(request), answer)


def _respond(request: dict[str, Any]) -> dict[str, Any]:
    torch.set_num_threads(1)
    _limit_memory(request["memory"])
    try:
        fn = bound(_load(Path(request["path"]), request["function"]), request["arguments"])
        return {"fingerprint": fingerprint(fn, request["placement"]).to_json()}
    except TensorError as error:
        return {"error": _too_much(request) if "allocate memory" in str(error) else str(error)}
    except MemoryError:
        return {"error": _too_much(request)}


def _too_much(request: dict[str, Any]) -> str:
    return f"{request['function']} asked for more than {request['memory'] >> 20} MiB of memory (--memory-limit)"


def _limit_memory(extra: int) -> None:
    """Limit the address space to what is in use now and `extra` bytes; where the system has no such limit, none is set."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + extra
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    except (ImportError, OSError, ValueError) as error:
        print(f"klaudit: no memory limit on this system ({error})", file=sys.stderr)


def _load(path: Path, function: str) -> Callable[..., Any]:
    """Import the file as Python would import a script's neighbour, and find the function."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise TensorError(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    try:
        spec.loader.exec_module(module)
    except MemoryError:
        raise
    except BaseException as error:  # SystemExit of a script too: the user must see why the import failed
        raise TensorError(f"importing {path.name} raised {type(error).__name__}: {error}") from error
    try:
        found = reduce(getattr, function.split("."), module)
    except AttributeError:
        raise TensorError(f"{path.name} has no {function}") from None
    if not callable(found):
        raise TensorError(f"{function} is no function")
    return found


def bound(fn: Callable[..., Any], arguments: dict[str, object]) -> Callable[..., Any]:
    """`fn` as a function of (logp, ref_logp) or (logp, ref_logp, old_logp), its other parameters set from `arguments`.

    The log-probabilities are told by their parameters' names (`ref...`, `old...`), else by their order.  Raises TensorError where
    a parameter is left without a value.
    """
    parameters = [
        p for p in inspect.signature(fn).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if unknown := sorted(set(arguments) - {p.name for p in parameters}):
        raise TensorError(f"no parameter {unknown[0]}; there are {', '.join(p.name for p in parameters)}")
    free = [p.name for p in parameters if p.name not in arguments and (p.default is p.empty or _role(p.name) != "pi")]
    roles: dict[str, str] = {}
    for name in free:
        roles.setdefault(_role(name), name)
    if "ref" not in roles and len(free) >= 2:
        roles = dict(zip(("pi", "ref", "old"), free, strict=False))
    used = set(roles.values())
    if missing := [
        p.name for p in parameters if p.default is p.empty and p.name not in used and p.name not in arguments
    ]:
        raise TensorError(f"parameter {missing[0]} needs a value: --argument {missing[0]}=...")
    if "pi" not in roles or "ref" not in roles:
        raise TensorError(
            f"cannot tell the policy's from the reference's log-probabilities among {', '.join(free) or 'no parameters'}"
        )

    def with_old(logp: object, ref_logp: object, old_logp: object) -> Any:
        return fn(**{roles["pi"]: logp, roles["ref"]: ref_logp, roles["old"]: old_logp}, **arguments)

    def without_old(logp: object, ref_logp: object) -> Any:
        return fn(**{roles["pi"]: logp, roles["ref"]: ref_logp}, **arguments)

    return with_old if "old" in roles else without_old


def _role(name: str) -> str:
    words = name.lower()
    if any(word in words for word in _OLD):
        return "old"
    return "ref" if any(word in words for word in _REFERENCE) else "pi"


if __name__ == "__main__":
    main()
