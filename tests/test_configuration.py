"""The configuration file: where it is looked for, what it may say, and what is said of one that is wrong."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path

import pytest

from klaudit.configuration import FILE_NAMES, Configuration, ConfigurationError, Options, PerFileIgnores, find, load
from klaudit.effective import effective
from klaudit.globs import Globs
from klaudit.policy import Allowed, PerPath


def written(folder: Path, text: str, name: str = "klaudit.toml") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


FULL = """
select = ["KLA1"]
ignore = ["k3-in-loss"]
exclude = ["third_party/"]
frameworks = ["verl"]
fail-on = "error"
include-markdown = true
jobs = 2
rules = ["ours"]

[framework-versions]
verl = "0.7.0"

[per-file-ignores]
"tests/**" = ["KLA1"]
"""


@pytest.mark.parametrize("name", ["klaudit.toml", "pyproject.toml"])
def test_every_key_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "ours").mkdir()
    text = FULL
    if name == "pyproject.toml":
        text = '[project]\nname = "x"\n[tool.ruff]\nselect = 1\n[tool.klaudit]\n' + re.sub(
            r"^\[(\S+)\]$", r"[tool.klaudit.\1]", FULL, flags=re.M
        )
    base = os.path.realpath(tmp_path)
    assert load(written(tmp_path, text, name)).options == Options(
        select=("KLA1",),
        ignore=("k3-in-loss",),
        exclude=(Globs(base, ("third_party/",)),),
        frameworks=("verl",),
        framework_versions={"verl": "0.7.0"},
        fail_on="error",
        include_markdown=True,
        jobs=2,
        per_file_ignores=(PerFileIgnores(Globs(base, ("tests/**",)), ("KLA1",)),),
        rules=(str(Path(base, "ours")),),
    )


def test_origins_say_which_line_set_what(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    file = written(tmp_path, FULL)
    origins = load(file).origins
    lines = {field: int(origin.removeprefix(f"{file}:")) for field, origin in origins.items()}
    assert lines == {
        "select": 2, "ignore": 3, "exclude": 4, "frameworks": 5, "fail_on": 6, "include_markdown": 7, "jobs": 8, "rules": 9,
        "framework_versions": 11, "per_file_ignores": 14,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("\nselct = []", 2, "unknown key `selct`: did you mean `select`?"),
        ("fail_on = 'error'", 1, "unknown key `fail_on`: did you mean `fail-on`?"),
        ("[tool.klaudit]\nselect = []", 1, "unknown key `tool`"),
        ("select = 'KLA1'", 1, "`select` must be a list of strings, not a string (KLA1)"),
        ("jobs = 1\nignore = ['a', 1]", 2, "`ignore` must be a list of strings"),
        ("include-markdown = 'yes'", 1, "must be true or false, not a string (yes)"),
        ("include-markdown = 1", 1, "must be true or false, not an integer (1)"),
        ("jobs = 0", 1, "must be a whole number from 1 to 1024, not 0"),
        ("jobs = true", 1, "must be a whole number from 1 to 1024"),
        ("fail-on = 'warn'", 1, "must be one of error, warning, note, never, not `warn`: did you mean `warning`?"),
        ("fail-on = 3", 1, "must be one of error"),
        ("[framework-versions]\nverl = '0.7'\ntrl = 1.10", 3, "the version of `trl` must be a string"),
        ("framework-versions.verl = 'newest'", 1, "`newest` is no version such as 0.7.0"),
        ("framework-versions = {verl = 1}", 1, "the version of `verl` must be a string"),
        ("framework-versions = ['verl']", 1, "must be a table of framework = version"),
        ("per-file-ignores = []", 1, "must be a table of pattern = [rules]"),
        ("[per-file-ignores]\n'a' = ['x']\n'b' = 'KLA1'", 3, "`b` must give a list of rules"),
        (f"exclude = ['{'*a' * 9}']", 1, "is no usable pattern: more than 3 wildcards"),
        ("exclude = ['!']", 1, "is no usable pattern"),
        ("[per-file-ignores]\n'[z-a]' = []", 2, "is no usable pattern"),
        ("rules = ['absent']", 1, "no such folder: `absent`"),
        ("rules = ['../elsewhere']", 1, "leads out of the folder of this file"),
        ("rules = ['/etc']", 1, "leads out of the folder of this file"),
        ("select = [\n'KLA1'\n'KLA2']", 3, "not TOML: "),
        ("a = 1\n\x00", 2, "not TOML: "),
        ("jobs = " + "9" * 5000, None, "not usable"),
        ("x = " + "[" * 100_000, None, "not usable: nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, line: int | None, message: str) -> None:
    (tmp_path.parent / "elsewhere").mkdir(exist_ok=True)
    file = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        load(file)
    assert message in caught.value.message
    assert (caught.value.path, caught.value.line) == (str(file), line)
    assert str(caught.value).startswith(f"{file}:{line}: " if line else f"{file}: ")


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"\xff\xfe", "not UTF-8"), (b"\n\n#\xff", "not UTF-8"), (b"# " + b"x" * 1_000_001, "larger than 1 MB")],
)
def test_files_that_are_no_text(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "klaudit.toml").write_bytes(data)
    with pytest.raises(ConfigurationError, match=message):
        load(tmp_path / "klaudit.toml")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such file"):
        load(tmp_path / "klaudit.toml")


def test_line_ends_and_byte_order_do_not_matter(tmp_path: Path) -> None:
    file = written(tmp_path, "jobs = 1\r\nignore = [\r\n'KLA1']\r\nselct = 1\r\n")
    with pytest.raises(ConfigurationError) as caught:
        load(file)
    assert caught.value.line == 4


def test_a_section_of_another_kind_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"`tool.klaudit` must be a table"):
        load(written(tmp_path, "tool.klaudit = 3", "pyproject.toml"))
    with pytest.raises(ConfigurationError, match=r"`tool.klaudit` must be a table"):
        load(written(tmp_path, "tool = 3", "pyproject.toml"))


def test_a_named_file_may_point_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    file = written(tmp_path / "sub", "rules = ['../elsewhere']")
    assert load(file, trusted=True).options.rules == (os.path.realpath(tmp_path / "elsewhere"),)


class TestFind:
    def test_the_nearest_counts_up_to_the_root_of_the_repository(self, tmp_path: Path) -> None:
        written(tmp_path, "", "klaudit.toml")
        repository = tmp_path / "repository"
        (repository / ".git").mkdir(parents=True)
        start = repository / "a" / "b"
        start.mkdir(parents=True)
        assert find(str(start)) is None
        top = written(repository, "[tool.klaudit]", "pyproject.toml")
        assert find(str(start)) == top
        near = written(repository / "a", "")
        assert find(str(start)) == near

    def test_a_pyproject_without_the_section_does_not_count_even_if_broken(self, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()
        written(tmp_path / "sub", "][", "pyproject.toml")
        top = written(tmp_path, "[tool.klaudit]", "pyproject.toml")
        assert find(str(tmp_path / "sub")) == top

    def test_klaudit_toml_counts_before_pyproject_toml(self, tmp_path: Path) -> None:
        written(tmp_path, "[tool.klaudit]", "pyproject.toml")
        own = written(tmp_path, "")
        assert find(str(tmp_path)) == own

    def test_outside_a_repository_the_search_ends_at_the_working_directory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tmp_path = Path(os.path.realpath(tmp_path))
        written(tmp_path, "")
        start = tmp_path / "a" / "b"
        start.mkdir(parents=True)
        assert find(str(start)) is None
        monkeypatch.chdir(tmp_path / "a")
        assert find(str(start)) is None
        monkeypatch.chdir(tmp_path)
        assert find(str(start)) == tmp_path / "klaudit.toml"


def test_the_command_line_overrules_the_file(tmp_path: Path) -> None:
    loaded = load(written(tmp_path, "jobs = 2\nfail-on = 'error'\n"))
    both = loaded.overruled(jobs=5, fail_on=None, verbose=True)
    assert (both.options.jobs, both.options.fail_on, both.options.verbose) == (5, "error", True)
    assert both.origins["jobs"] == "command line"
    assert both.origins["fail_on"].endswith("klaudit.toml:2")


def test_options_travel_between_processes() -> None:
    options = Options(exclude=(Globs("/", ("a",)),), framework_versions={"verl": "0.7"})
    assert pickle.loads(pickle.dumps(options)) == options
    assert Configuration().options == Options()


# --- policy ------------------------------------------------------------------------------------------------------------------------------

POLICY = """
min-confidence = "medium"
require-reasons = true
require = "k1-in-reward"

[severity]
KLA106 = "warning"

[[per-path]]
paths = ["research/**", "old.sh"]
fail-on = "error"
select = ["KLA1"]
ignore = ["KLA106"]
min-confidence = "high"
severity = {k3-in-loss = "note"}
require = ["no-kl", "unbiased"]

[[per-path]]
paths = "x"
[per-path.severity]
KLA101 = "error"

[[allow]]
rule = "KLA101"
reason = "  table\\n 3 "

[[allow]]
setup = ["k3-in-loss"]
paths = "y/"
reason = "why not"
"""


@pytest.mark.parametrize("name", ["klaudit.toml", "pyproject.toml"])
def test_policy_is_read(tmp_path: Path, name: str) -> None:
    prefix = "tool.klaudit." if name == "pyproject.toml" else ""
    text = re.sub(r"(?m)^(\[+)", rf"\1{prefix}", POLICY)
    file = written(tmp_path, (f"[{prefix[:-1]}]" if prefix else "") + text, name)
    base = os.path.realpath(tmp_path)
    options = load(file).options
    assert (options.min_confidence, options.require_reasons, options.require) == ("medium", True, ("k1-in-reward",))
    assert options.severity == {"KLA106": "warning"}
    assert options.per_path == (
        PerPath(
            Globs(base, ("research/**", "old.sh")),
            "error",
            ("KLA1",),
            ("KLA106",),
            "high",
            {"k3-in-loss": "note"},
            ("no-kl", "unbiased"),
        ),
        PerPath(Globs(base, ("x",)), severity={"KLA101": "error"}),
    )
    lines = [at for at, line in enumerate(file.read_text().splitlines(), 1) if "allow]]" in line]
    assert options.allow == (
        Allowed("table 3", ("KLA101",), (), None, str(file), lines[0]),
        Allowed("why not", (), ("k3-in-loss",), Globs(base, ("y/",)), str(file), lines[1]),
    )


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("require = 'k1-in-rewards'", 1, "did you mean `k1-in-reward`"),
        ("require = 1", 1, "`require` must be a list of strings"),
        ("require = ['no-kl', 'k9']", 1, "`require` must be one of k1-in-reward, "),
        ("min-confidence = 'hihg'", 1, "must be one of high, medium, low, not `hihg`: did you mean `high`?"),
        ("require-reasons = 1", 1, "must be true or false"),
        ("severity = 'error'", 1, "must be a table of rule = severity"),
        ("[severity]\n\nKLA101 = 'eror'", 3, "`KLA101` must be one of error, warning, note"),
        ("per-path = 1", 1, "each under a header [[per-path]]"),
        ("[per-path]\npaths = 'x'", 1, "each under a header [[per-path]]"),
        ("[[per-path]]\nfail-on = 'error'", 1, "a `per-path` needs `paths`"),
        ("[[per-path]]\npaths = []", 2, "at least one pattern"),
        ("[[per-path]]\npaths = 'x'\n[[per-path]]\npath = 'y'", 4, "unknown key `path`: did you mean `paths`"),
        ("[[per-path]]\npaths = 'x'\n\n[[per-path]]\npaths = 'y'\nfail-on = 'no'", 6, "`fail-on` must be one of"),
        ("[[per-path]]\npaths = 'x'\n[per-path.severity]\nKLA1 = 'bad'", 4, "`KLA1` must be one of"),
        ("per-path = [{paths = 'x', fail_on = 'note'}]", 1, "unknown key `fail_on`: did you mean `fail-on`"),
        ("[[allow]]\nrule = 'KLA101'", 1, "an `allow` needs a `reason`"),
        ("[[allow]]\nrule = 'KLA101'\nreason = ' '", 3, "an `allow` needs a `reason`"),
        ("[[allow]]\nreason = 'x'", 1, "needs `rule`, `setup` or both"),
        ("[[allow]]\nreason = 'x'\nsetup = 'k3-in-los'", 3, "did you mean `k3-in-loss`"),
        ("[[allow]]\nreason = 'x'\nrules = 'KLA101'", 3, "unknown key `rules`: did you mean `rule`"),
        ("[[allow]]\nreason = 'x'\nrule = 'KLA101'\npaths = ['/a**b**c**d**']", 4, "is no usable pattern"),
    ],
)
def test_policy_that_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        load(written(tmp_path, text))
    assert (told.value.line, message in told.value.message) == (line, True), told.value


@pytest.mark.parametrize(
    "text",
    [
        "[severity]\nKLA999 = 'error'",
        "[[per-path]]\npaths = 'x'\nselect = ['KLA999']",
        "[[per-path]]\npaths = 'x'\nseverity = {KLA999 = 'note'}",
        "[[allow]]\nreason = 'x'\nrule = 'KLA999'",
    ],
)
def test_rules_of_a_policy_must_exist(tmp_path: Path, text: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigurationError, match="unknown rule `KLA999`") as told:
        effective(str(tmp_path))
    assert told.value.path == str(file)


@pytest.mark.parametrize("name", FILE_NAMES)
def test_a_link_that_leads_out_of_the_repository_is_no_configuration(tmp_path: Path, name: str) -> None:
    outside, repository = tmp_path / "outside.toml", tmp_path / "repository"
    section = "[tool.klaudit]\n" if name == "pyproject.toml" else ""
    outside.write_text(f'{section}secret_of_another_user = "x"\n')
    for folder in (repository / ".git", repository / "conf"):
        folder.mkdir(parents=True)
    (repository / name).symlink_to(outside)
    with pytest.raises(ConfigurationError, match="leads out of") as told:
        find(str(repository / "conf"))
    assert "secret" not in str(told.value)
    (repository / name).unlink()
    (repository / "conf" / "ours.toml").write_text(section)
    (repository / name).symlink_to("conf/ours.toml")
    assert find(str(repository / "conf")) == repository / name
