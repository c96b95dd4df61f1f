"""Reading log-probabilities of real rollouts: .safetensors, .npz, .pt (weights only), JSONL.  Nothing in a file is ever executed."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from klaudit.tensor.errors import TensorError

_SPELLINGS = ("logp", "logps", "logprob", "logprobs", "log_prob", "log_probs", "per_token_logps")
NAMES: dict[str, tuple[str, ...]] = {
    "logp": (*_SPELLINGS, "policy_logps"),
    "ref_logp": (*(f"ref_{name}" for name in _SPELLINGS), "reference_logps"),
    "old_logp": (*(f"old_{name}" for name in _SPELLINGS), *(f"rollout_{name}" for name in _SPELLINGS)),
    "mask": ("mask", "response_mask", "loss_mask", "completion_mask", "action_mask"),
}
REQUIRED = ("logp", "ref_logp")

Arrays = dict[str, Tensor | None]  # None: in the file, but of no interest, so not read
_HEADER_LIMIT = 100 << 20  # bytes; the format's own
_SAFETENSORS_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64, "I32": torch.int32,
    "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip


def read_arrays(path: Path, keys: Mapping[str, str]) -> dict[str, Tensor]:
    """The arrays by canonical name (`logp`, `ref_logp`, and where present `old_logp`, `mask`), as they stand in the file.

    `keys` gives the file's own name for some of them; the others are looked for by the usual names.  Raises TensorError.
    """
    readers = {
        ".safetensors": _read_safetensors,
        ".npz": _read_npz,
        ".pt": _read_pt,
        ".pth": _read_pt,
        ".jsonl": _read_jsonl,
        ".json": _read_jsonl,
    }
    reader = readers.get(path.suffix)
    if reader is None:
        raise TensorError(f"{path.name}: expected .safetensors, .npz, .pt or .jsonl")
    try:
        arrays = reader(path, frozenset(keys.values()).union(*NAMES.values()))
    except OSError as error:
        raise TensorError(f"cannot read {path}: {error.strerror or error}") from None
    found = {}
    for name, usual in NAMES.items():
        wanted = (keys[name],) if name in keys else usual
        array = next((arrays[key] for key in wanted if arrays.get(key) is not None), None)
        if array is not None:
            found[name] = array
        elif name in REQUIRED or name in keys:
            there = ", ".join(sorted(arrays)[:20]) or "nothing"
            raise TensorError(
                f"{path.name} has no {name} (looked for {', '.join(wanted)}; there is {there}); name it with --key {name}=NAME"
            )
    return found


def _read_safetensors(path: Path, relevant: frozenset[str]) -> Arrays:
    """The format is a length, a JSON header with offsets, and raw little-endian data; every offset is checked."""
    data = path.read_bytes()
    try:
        (length,) = struct.unpack_from("<Q", data)
        if length > min(_HEADER_LIMIT, len(data) - 8):
            raise ValueError("its header is longer than the file")
        header = json.loads(data[8 : 8 + length])
        body = memoryview(data)[8 + length :]
        return {name: _safetensor(entry, body) if name in relevant else None for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError) as error:
        raise TensorError(f"{path.name} is no safetensors file: {error}") from None


def _safetensor(entry: Mapping[str, Any], body: memoryview) -> Tensor:
    dtype, shape = _SAFETENSORS_DTYPES[entry["dtype"]], [int(size) for size in entry["shape"]]
    start, end = (int(offset) for offset in entry["data_offsets"])
    count = 1
    for size in shape:
        count *= size
    if min(shape, default=1) < 0 or not 0 <= start <= end <= len(body) or end - start != count * dtype.itemsize:
        raise ValueError("a tensor's offsets do not fit its shape")
    return (
        torch.frombuffer(bytearray(body[start:end]), dtype=dtype).reshape(shape)
        if count
        else torch.empty(shape, dtype=dtype)
    )


def _read_npz(path: Path, relevant: frozenset[str]) -> Arrays:
    try:
        import numpy
    except ImportError:
        raise TensorError("reading .npz needs numpy: pip install 'klaudit[tensor]'") from None
    try:
        with numpy.load(path, allow_pickle=False) as archive:
            return {name: torch.from_numpy(archive[name]) if name in relevant else None for name in archive.files}
    except (ValueError, EOFError, zipfile.BadZipFile, TypeError) as error:
        raise TensorError(f"{path.name} is no .npz of plain arrays: {error}") from None


def _read_pt(path: Path, relevant: frozenset[str]) -> Arrays:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # the unpickler raises whatever it stumbles on
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TensorError(f"{path.name} is no file of plain tensors: {first}") from None
    if not isinstance(content, dict):
        raise TensorError(f"{path.name} holds a {type(content).__name__}, not a dictionary of tensors")
    return {
        str(name): value if name in relevant and isinstance(value, Tensor) else None for name, value in content.items()
    }


def _read_jsonl(path: Path, relevant: frozenset[str]) -> Arrays:
    """One sequence a line, `{"logp": [...], "ref_logp": [...]}`; lines of different lengths are padded, and masked."""
    columns: dict[str, list[list[float]]] = {}
    others: set[str] = set()
    count = 0
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                record = _json_record(path, number, line)
                others |= record.keys() - relevant
                for name in sorted(record.keys() & relevant):
                    columns.setdefault(name, []).append(_numbers(path, number, name, record[name]))
                count += 1
    if not count:
        raise TensorError(f"{path.name} is empty")
    if partial := sorted(name for name, rows in columns.items() if len(rows) != count):
        raise TensorError(
            f"{path.name}: {partial[0]} is missing in {count - len(columns[partial[0]])} of {count} lines"
        )
    lengths = {name: [len(row) for row in rows] for name, rows in columns.items()}
    if len({tuple(sizes) for sizes in lengths.values()}) > 1:
        raise TensorError(f"{path.name}: lists of different lengths in one line")
    arrays: Arrays = {**dict.fromkeys(others), **{name: _padded(rows) for name, rows in columns.items()}}
    if columns and not any(name in arrays for name in NAMES["mask"]):
        arrays["mask"] = _padded([[1.0] * size for size in next(iter(lengths.values()))])
    return arrays


def _json_record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TensorError(f"{path.name}:{number}: no JSON: {error}") from None
    if not isinstance(record, dict):
        raise TensorError(f"{path.name}:{number}: expected an object with lists, not {type(record).__name__}")
    return record


def _numbers(path: Path, number: int, name: str, values: object) -> list[float]:
    if not isinstance(values, list) or not all(isinstance(value, (int, float)) for value in values):
        raise TensorError(f"{path.name}:{number}: {name} is no list of numbers")
    return [float(value) for value in values]


def _padded(rows: list[list[float]]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[0.0] * (longest - len(row))] for row in rows], dtype=torch.float64)
