"""Compiled rules are the rules: the same records, and only while the YAML files are those they were made from."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from klaudit import compiled as module
from klaudit.compiled import encode, read_compiled
from klaudit.findings import catalogue
from klaudit.findings.catalogue import Entry
from klaudit.frameworks import load
from klaudit.frameworks.load import RulesError, load_framework, load_frameworks, shipped_rules
from klaudit.frameworks.rules import Framework

NAME = "frameworks.msgpack"
SHIPPED = sorted((shipped_rules() / "frameworks").glob("*.yaml"))


def compiled_bytes() -> bytes:
    records = {path.name: (path.read_bytes(), replace(load_framework(path), path=path.name)) for path in SHIPPED}
    return encode(records, Framework)


@pytest.fixture(scope="module")
def encoded() -> bytes:
    return compiled_bytes()


@pytest.fixture
def rules(tmp_path: Path, encoded: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The rules of an installed wheel."""
    folder = tmp_path / "rules"
    shutil.copytree(shipped_rules() / "frameworks", folder / "frameworks")
    (folder / NAME).write_bytes(encoded)
    monkeypatch.setattr(load, "shipped_rules", lambda: folder)
    load_frameworks.cache_clear()
    yield folder
    load_frameworks.cache_clear()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read as YAML."""
    names: list[str] = []
    plain = load._read

    def noted(path: Path, data: bytes) -> Framework:
        names.append(path.name)
        return plain(path, data)

    monkeypatch.setattr(load, "_read", noted)
    return names


def as_they_are(frameworks: tuple[Framework, ...]) -> bytes:
    """More than equality: the order of mappings counts, and 1, 1.0 and true differ."""
    return msgspec.msgpack.encode(frameworks, enc_hook=str)


def test_the_records_are_those_of_the_yaml_files(rules: Path, read: list[str]) -> None:
    compiled = load_frameworks()
    assert read == []
    plain = tuple(load_framework(path) for path in sorted((rules / "frameworks").glob("*.yaml")))
    assert compiled == plain
    assert as_they_are(compiled) == as_they_are(plain)
    assert [type(each) for each in compiled[0].releases] == [type(each) for each in plain[0].releases]


def test_two_builds_give_the_same_bytes_and_name_no_folder(encoded: bytes) -> None:
    assert compiled_bytes() == encoded
    assert str(shipped_rules()).encode() not in encoded


def test_an_edited_file_is_read_as_it_is(rules: Path, read: list[str]) -> None:
    path = rules / "frameworks" / "verl.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("title: VeRL", "title: VeRl"), encoding="utf-8")  # of the same size
    assert path.read_text(encoding="utf-8") != text
    assert {each.id: each.title for each in load_frameworks()}["verl"] == "VeRl"
    assert read == ["verl.yaml"]


def test_a_file_that_an_edit_broke_is_the_error_it_always_was(rules: Path) -> None:
    path = rules / "frameworks" / "verl.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("framework: verl", "framwork: verl"), encoding="utf-8")
    with pytest.raises(RulesError) as error:
        load_frameworks()
    with pytest.raises(RulesError) as plain:
        load_framework(path)
    assert str(error.value) == str(plain.value)
    assert "did you mean 'framework'?" in str(error.value)


def test_files_that_were_added_and_removed(rules: Path, read: list[str]) -> None:
    folder = rules / "frameworks"
    (folder / "trl.yaml").unlink()
    text = (folder / "rl2.yaml").read_text(encoding="utf-8")
    (folder / "own.yaml").write_text(text.replace("framework: rl2", "framework: own", 1), encoding="utf-8")
    ids = {each.id for each in load_frameworks()}
    assert "own" in ids and "trl" not in ids
    assert read == ["own.yaml"]


def test_a_file_of_the_same_name_in_another_folder_wins(rules: Path, read: list[str], tmp_path: Path) -> None:
    (tmp_path / "own" / "frameworks").mkdir(parents=True)
    text = (rules / "frameworks" / "rl2.yaml").read_text(encoding="utf-8")
    own = tmp_path / "own" / "frameworks" / "verl.yaml"
    own.write_text(text.replace("framework: rl2", "framework: own", 1), encoding="utf-8")
    found = {Path(each.path): each.id for each in load_frameworks((str(tmp_path / "own"),))}
    assert found[own] == "own" and "verl" not in found.values()
    assert len(found) == len(SHIPPED)
    assert read == ["verl.yaml"]


@pytest.mark.parametrize("damage", ["missing", "cut", "other", "empty", "deep"])
def test_what_is_not_readable_is_not_used(rules: Path, read: list[str], encoded: bytes, damage: str) -> None:
    file = rules / NAME
    match damage:
        case "missing":
            file.unlink()
        case "cut":
            file.write_bytes(encoded[:-1])
        case "other":
            file.write_bytes(msgspec.msgpack.encode({"klaudit": 1}))
        case "empty":
            file.write_bytes(b"")
        case "deep":
            file.write_bytes(b"\x91" * 1_000_000)
    assert len(load_frameworks()) == len(SHIPPED) == len(read)


def test_what_another_klaudit_compiled_is_not_used(rules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_compiled(rules / "frameworks", Framework).files
    monkeypatch.setattr(module, "__version__", "999")
    assert not read_compiled(rules / "frameworks", Framework).files


def test_records_that_would_change_are_refused() -> None:
    path = SHIPPED[0]
    framework = load_framework(path)
    trainer = framework.trainers[0]
    name, setting = next(iter(trainer.settings.items()))
    odd = replace(setting, choices=(datetime.date(2025, 1, 1),))  # what YAML makes of an unquoted 2025-01-01
    changed = replace(framework, trainers=(replace(trainer, settings={name: odd}),))
    with pytest.raises(ValueError, match="do not survive"):
        encode({path.name: (b"", changed)}, Framework)


def test_findings_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted((shipped_rules() / "findings").glob("*.yaml"))
    plain = {path.name: (path.read_bytes(), catalogue.read(path, path.read_bytes())) for path in files}
    shutil.copytree(shipped_rules() / "findings", tmp_path / "findings")
    (tmp_path / "findings.msgpack").write_bytes(encode(plain, Entry))
    first = tmp_path / "findings" / files[0].name
    first.write_bytes(first.read_bytes().replace(b"summary: ", b"summary: Edited. ", 1))
    monkeypatch.setattr(catalogue, "shipped_rules", lambda: tmp_path)
    read: list[Path] = []
    as_yaml = catalogue.read
    monkeypatch.setattr(catalogue, "read", lambda path, data: read.append(path) or as_yaml(path, data))
    caches = (catalogue.names, catalogue.entry, catalogue.with_id, catalogue.load, catalogue._compiled)
    for cache in caches:
        cache.cache_clear()
    try:
        edited, *others = catalogue.load()
    finally:
        for cache in caches:
            cache.cache_clear()
    assert read == [first] and edited.summary.startswith("Edited. ")
    assert others == [entry for _, entry in plain.values()][1:]
