"""Rollout files of every format give the same arrays; hostile ones give a clear error and run nothing."""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaudit.tensor.errors import TensorError
from klaudit.tensor.rollout_files import read_arrays

LOGP = torch.tensor([[-1.0, -2.0, -0.5], [-0.25, -4.0, -1.5]])
REF = LOGP - torch.tensor([[0.5, 0.25, 0.0], [0.125, 0.0, -0.25]])
MASK = torch.tensor([[1, 1, 0], [1, 1, 1]])


def safetensors(path: Path, arrays: dict[str, torch.Tensor]) -> None:
    names = {torch.float32: "F32", torch.int64: "I64", torch.bfloat16: "BF16"}
    header, body = {}, b""
    for name, array in arrays.items():
        raw = bytes(array.contiguous().view(torch.uint8).numpy().tobytes())
        header[name] = {
            "dtype": names[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def npz(path: Path, arrays: dict[str, torch.Tensor]) -> None:
    numpy.savez(path, **{name: array.numpy() for name, array in arrays.items()})


def pt(path: Path, arrays: dict[str, torch.Tensor]) -> None:
    torch.save({**arrays, "comment": "text"}, path)


def jsonl(path: Path, arrays: dict[str, torch.Tensor]) -> None:
    rows = [{name: array[index].tolist() for name, array in arrays.items()} for index in range(2)]
    path.write_text("\n".join(json.dumps({**row, "prompt": "x"}) for row in rows) + "\n")


WRITERS: dict[str, Callable[[Path, dict[str, torch.Tensor]], None]] = {
    ".safetensors": safetensors,
    ".npz": npz,
    ".pt": pt,
    ".jsonl": jsonl,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_gives_the_same(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rollouts{suffix}"
    WRITERS[suffix](path, {"log_probs": LOGP, "ref_log_prob": REF, "response_mask": MASK})
    found = read_arrays(path, {})
    assert torch.equal(found["logp"].float(), LOGP)
    assert torch.equal(found["ref_logp"].float(), REF)
    assert torch.equal(found["mask"].long(), MASK)
    assert "old_logp" not in found


@pytest.mark.parametrize("suffix", WRITERS)
def test_missing_keys_are_named_with_what_is_there(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rollouts{suffix}"
    WRITERS[suffix](path, {"logp": LOGP, "reference": REF})
    with pytest.raises(TensorError, match=r"has no ref_logp .*reference.*--key ref_logp=NAME"):
        read_arrays(path, {})
    assert torch.equal(read_arrays(path, {"ref_logp": "reference"})["ref_logp"].float(), REF)


def test_bfloat16_is_read(tmp_path: Path) -> None:
    path = tmp_path / "r.safetensors"
    safetensors(path, {"logp": LOGP.bfloat16(), "ref_logp": REF})
    assert read_arrays(path, {})["logp"].dtype == torch.bfloat16


def test_ragged_lines_are_padded_and_masked(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(
        '{"logp": [-1, -2], "ref_logp": [-1, -1], "input_ids": [1, 2, 3]}\n\n{"logp": [-3], "ref_logp": [-2]}\n'
    )
    found = read_arrays(path, {})
    assert found["mask"].tolist() == [[1, 1], [1, 0]]
    assert found["logp"].tolist() == [[-1, -2], [-3, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ('{"logp": [1]', r"r.jsonl:1: no JSON"),
        ("[1, 2]", "expected an object"),
        ('{"logp": [1], "ref_logp": ["x"]}', "ref_logp is no list of numbers"),
        ('{"logp": [1], "ref_logp": 3}', "no list of numbers"),
        ('{"logp": [1, 2], "ref_logp": [1]}', "different lengths"),
        ('{"logp": [1], "ref_logp": [1]}\n{"logp": [1]}', "ref_logp is missing in 1 of 2 lines"),
        ("[" * 100_000, "no JSON"),
        ('{"logp": [1], "ref_logp": [null]}', "no list of numbers"),
    ],
)
def test_broken_lines(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(TensorError, match=message):
        read_arrays(path, {})


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, ("raise SystemExit('code from a file was run')",))


@pytest.mark.parametrize("suffix", [".pt", ".npz", ".safetensors"])
def test_pickles_with_code_are_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"r{suffix}"
    if suffix == ".npz":
        numpy.savez(path, logp=numpy.array([Trap()], dtype=object), ref_logp=numpy.ones(1))
    else:
        path.write_bytes(pickle.dumps({"logp": Trap()}, protocol=2))
    with pytest.raises(TensorError, match=r"is no"):
        read_arrays(path, {})


def test_other_suffixes_and_absent_files(tmp_path: Path) -> None:
    with pytest.raises(TensorError, match=r"expected \.safetensors"):
        read_arrays(tmp_path / "r.csv", {})
    with pytest.raises(TensorError, match="cannot read"):
        read_arrays(tmp_path / "absent.pt", {})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200), suffix=st.sampled_from([".safetensors", ".npz", ".pt", ".jsonl"]))
def test_any_bytes_give_a_clear_error(data: bytes, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"r{suffix}"
    path.write_bytes(data)
    with pytest.raises(TensorError):
        read_arrays(path, {})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    entry=st.dictionaries(
        st.sampled_from(["dtype", "shape", "data_offsets"]),
        st.one_of(
            st.sampled_from(["F32", "X"]), st.integers(), st.lists(st.integers(-3, 1 << 40), max_size=3), st.none()
        ),
    )
)
def test_any_safetensors_header_gives_a_clear_error(entry: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "r.safetensors"
    text = json.dumps({"logp": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    with pytest.raises(TensorError):
        read_arrays(path, {})
