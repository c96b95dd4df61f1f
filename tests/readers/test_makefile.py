"""Makefiles: what their recipes hand to the shell, held against make itself, and where each byte of it is written."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import klaudit
from klaudit.configuration import Options
from klaudit.discover import is_candidate
from klaudit.fixes.migration import Request
from klaudit.fixes.planning import plan
from klaudit.gate.comments import pieces_of
from klaudit.readers.make import Recipe, read_makefile
from klaudit.readers.source import Source, UnreadableError

MAKE = shutil.which("make")


def recipes(text: str | bytes) -> tuple[Recipe, ...]:
    return read_makefile(Source("Makefile", text if isinstance(text, bytes) else text.encode())).recipes


def texts(text: str) -> list[str]:
    return [recipe.source.data.decode() for recipe in recipes(text)]


EXPANDED = {
    "a variable": ("A = x\nt:\n\trun $(A) ${A}\n", ["run x x"]),
    "the last value counts": ("A = x\nt:\n\trun $(A)\nA = y\n", ["run y"]),
    "expanded where it is set": ("A = x\nB := $(A)\nA = y\nt:\n\trun $(B)\n", ["run x"]),
    "only where it is not set": ("A = x\nA ?= y\nB ?= z\nt:\n\trun $(A) $(B)\n", ["run x z"]),
    "more of it": ("A = x\nA += $(B)\nB = y\nt:\n\trun $(A)\n", ["run x y"]),
    "more of an expanded one": ("B = y\nA := x\nA += $(B)\nB = z\nt:\n\trun $(A)\n", ["run x y"]),
    "more of nothing": ("A += x\nt:\n\trun $(A)\n", ["run x"]),
    "lines joined": ("A = x \\\n   y \\\n\tz\nt:\n\trun $(A)\n", ["run x y z"]),
    "a comment behind it": ("A = x   # why\nt:\n\trun $(A)y\n", ["run x   y"]),
    "spaces behind it": ("A = x  \nt:\n\trun $(A)y\n", ["run x  y"]),
    "a dollar for the shell": ("t:\n\trun $$x $${y}\n", ["run $x ${y}"]),
    "prefixes": ("Q = @\nt:\n\t@-run a\n\t$(Q)run b\n\t+ run c\n", ["run a", "run b", "run c"]),
    "a long line": ("t:\n\trun a \\\n\t\tb \\\n    c\n", ["run a \\\n\tb \\\n    c"]),
    "the target": ("out/x: y\n\trun $@ $(@)\n", ["run out/x out/x"]),
    "behind the rule": ("t: ; run x\n", ["run x"]),
    "a variable of the target": (
        "A = x\nt: A = y\nu:\n\trun $(A)\nt:\n\trun $(A)\n",
        ["run x", "run y"],
    ),
    "empty lines and comments between": ("t:\n\n# c\n\trun x\n\n\trun y\n", ["run x", "run y"]),
    "no recipe": ("A = x\n\tB = y\n", []),
    "make itself": ("t:\n\t$(MAKE) u\n", ["make u"]),
    "carriage returns": ("A = x\r\nt:\r\n\trun $(A)\n", ["run x"]),
    "of the environment": ("t:\n\trun $(A) '$(B)'\n", ["run ${A} ''\"${B}\"''"]),
    "exported before it is set": ("export A\nA ?= x\nt:\n\trun $(A)\n", ["run ${A}"]),
    "exported": ("export A = it's\nt:\n\trun $$A\n\trun\n", ["export A='it'\\''s'; run $A", "run"]),
}
UNKNOWN = {
    "a function": ("A = $(shell date)\nt:\n\trun $(A)\n", ["run $(shell)"]),
    "a substitution": ("A = x.c\nt:\n\trun $(A:.c=.o)\n", ["run $(A)"]),
    "an automatic one": ("t: x\n\trun '$<'\n", ["run ''\"$(make)\"''"]),
    "under a condition": ("A = x\nifeq ($(B),1)\nA = y\nendif\nt:\n\trun $(A)\n", ["run $(A)"]),
    "of a shell": ("A != date\nt:\n\trun $(A)\n", ["run $(A)"]),
    "defined": ("define A\nx\n\ty\nendef\nt:\n\trun $(A)\n", ["run $(A)"]),
    "of an included file": ("A = x\ninclude other.mk\nt:\n\trun $(A) $(B)\n", ["run $(A) $(B)"]),
    "set in spite of that": ("include other.mk\nA = x\nt:\n\trun $(A)\n", ["run x"]),
    "of a target under a condition": ("ifdef X\nt: A = y\nendif\nt:\n\trun $(A)\n", ["run $(A)"]),
    "built in": ("t:\n\trun $(CURDIR)\n", ["run $(CURDIR)"]),
    "an open reference": ("t:\n\trun $(A\n", ["run $(make)"]),
}


AS_MAKE = {
    "carriage returns in a recipe": "t:\r\n\trun a \\\r\n\t--b 1\r\n",
    "an indented define": "ifndef X\n  define R\nu:\n\trun no\n  endef\nendif\nt:\n\trun a\n",
    "an overriding define": "override define R\nu:\n\trun no\nendef\nt:\n\trun a\n",
    "a define in a define": "define R\ndefine S\nx\nendef\nu:\n\trun no\nendef\nt:\n\trun a\n",
    "a hash behind a semicolon": "t: ; run a '#1' --b 2\n",
    "two recipes": "t:\n\trun a\nt:\n\trun b\n",
    "two recipes for one of two": "t:\n\trun a\nt u:\n\trun b\n",
    "both of two": "t::\n\trun a\nt::\n\trun b\n",
    "an override": "override B = 5\nB = 6\nt:\n\trun a $(B)\n",
    "an override of a target": "B = 1\nt: override B = 2\nt:\n\trun a $(B)\n",
}


@pytest.mark.skipif(MAKE is None, reason="make is not installed")
@pytest.mark.parametrize("name", AS_MAKE)
def test_no_more_and_no_less_than_make_runs(name: str, tmp_path: Path) -> None:
    assert MAKE is not None
    (tmp_path / "Makefile").write_bytes(AS_MAKE[name].encode())
    shown = subprocess.run([MAKE, "-n", "t"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=20)
    assert "".join(text + "\n" for text in texts(AS_MAKE[name])) == shown.stdout


@pytest.mark.parametrize(
    "text",
    [
        "B = 5\nall: B = 1\nall: mid\nmid: run\nrun:\n\trun $(B)\n",  # other with `make all` than with `make run`
        "B = 5\nall: B = 1\nall: $(shell x)\nrun:\n\trun $(B)\n",
        "B = 5\n$(foreach x,A B,$(eval $(x) = 2))\nt:\n\trun $(B)\n",
        "B = 5\nt:\n\trun $(B)\nX = $(eval B = 7)\nu: ; $(X)\n",
        "B = 5\n$(addsuffix ,B) = 7\nt:\n\trun $(B)\n",
        "B = 5\n$(or B, C) := 7\nt:\n\trun $(B)\n",
        "B = 5\nifdef X\nundefine B\nendif\nt:\n\trun $(B)\n",
    ],
)
def test_what_may_be_set_elsewhere_is_unknown(text: str) -> None:
    assert "run $(B)" in texts(text)


def test_what_is_undefined_is_asked_of_the_environment() -> None:
    assert texts("B = 5\nundefine B\nt:\n\trun $(B)\n") == ["run ${B}"]


def test_a_shell_of_one_target_is_no_shell() -> None:
    with pytest.raises(UnreadableError, match="SHELL is set"):
        recipes("t: SHELL := python3\nt:\n\trun x\n")


@pytest.mark.parametrize("name", EXPANDED)
def test_what_the_shell_gets(name: str) -> None:
    text, expected = EXPANDED[name]
    assert texts(text) == expected


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_make_alone_knows_is_unknown(name: str) -> None:
    text, expected = UNKNOWN[name]
    assert texts(text) == expected


def test_conditions_are_told() -> None:
    text = "ifeq ($(A),1)\nt:\n\trun a\nelse ifdef B\nu:\n\trun b\nelse\nv:\n\trun c\nendif\nw:\n\trun d\n"
    assert [each.assumes for each in recipes(text)] == [
        ("ifeq ($(A),1)",),
        ("not ifeq ($(A),1)", "ifdef B"),
        ("not ifeq ($(A),1)", "not ifdef B"),
        (),
    ]


def test_bytes_point_to_where_they_are_written() -> None:
    text = "# ö\nA = x \\\n  é\nt:\n\t@run $(A) $$z\n"
    (recipe,) = recipes(text)
    source = recipe.source
    assert source.data.decode() == "run x é $z"
    for word, line, column in (("run", 5, 3), ("x", 2, 5), ("é", 3, 3), ("$z", 5, 12)):
        at = source.data.index(word.encode())
        span = source.span(at, at + len(word.encode()))
        assert (span.line, span.column) == (line, column), word
        assert text.encode()[span.start : span.end].decode().endswith(word)


@pytest.mark.parametrize(
    ("data", "line", "why"),
    [
        (b"t:\n\trun \0\n", 2, "binary"),
        (b"A = x\n.RECIPEPREFIX = >\n", 2, ".RECIPEPREFIX"),
        (b"SHELL := /usr/bin/python3\n", 1, "SHELL is set"),
        (b".ONESHELL:\nt:\n\tx=1\n", 1, ".ONESHELL"),
        (b"A := 0123456789\n" + b"A := $(A)$(A)\n" * 40, None, "expand to more"),
        (b"#" * 1_000_001, None, "larger than"),
    ],
)
def test_what_cannot_be_read_says_so(data: bytes, line: int | None, why: str) -> None:
    with pytest.raises(UnreadableError, match=re.escape(why)) as caught:
        recipes(data)
    assert line is None or caught.value.line == line


def test_a_shell_by_its_path_is_one() -> None:
    assert texts("SHELL := /usr/bin/env bash\nt:\n\trun x\n") == ["run x"]


@pytest.mark.parametrize(
    "text",
    [
        "A = $(A)\nt:\n\trun $(A)\nu:\n\trun x\n",
        "A = $(B)\nB = $(A)\nt:\n\trun $(A)\nu:\n\trun x\n",
        "A0 = 0123456789\n"
        + "".join(f"A{at} = $(A{at - 1})$(A{at - 1})\n" for at in range(1, 29))
        + "t:\n\trun $(A28)\nu:\n\trun x\n",
    ],
)
def test_what_expands_without_end_is_a_problem_of_its_recipe(text: str) -> None:
    started = time.process_time()
    made = read_makefile(Source("Makefile", text.encode()))
    assert time.process_time() - started < 8
    assert [each.line for each in made.problems][:1] == [text[: text.index("\trun")].count("\n") + 1]


@pytest.mark.parametrize(
    "text",
    [
        "A := x\n" + "A += y\n" * 100_000,
        "A = x\n" + "A += y\n" * 100_000,
        "".join(f"A{at} =\n" for at in range(9_000)) + "include x\n" * 50_000,
        "".join(f"A{at} =\n" for at in range(50_000)),
        "ifdef A\n" + "else ifdef B\n" * 50_000,
        "\\" * 500_000 + "x #\n",
        "".join(f"t: A{at} = 1\n" for at in range(50_000)) + "t:\n" + "\trun x\n" * 5_000,
        "t: Z = 1\n"
        + "".join(f"A{at} = $(A{at + 1})$(A{at + 1})\n" for at in range(25))
        + "t:\n"
        + "\trun $(A0)\n" * 5_000,
        "".join(f"export A{at} = 1\n" for at in range(9_000)) + "t:\n" + "\trun $$A x.sh\n" * 5_000,
    ],
)
def test_what_would_take_longer_with_each_line_is_bounded(text: str) -> None:
    started = time.process_time()
    with suppress(UnreadableError):
        recipes(text)
    assert time.process_time() - started < 8


@pytest.mark.parametrize(
    "text", ["\\\n" * 200_000, "a:" * 200_000, "$(" * 200_000, "t:\n" + "\t\\\n" * 200_000, "ifdef A\n" * 50_000]
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    started = time.process_time()
    with suppress(UnreadableError):
        recipes(text)
    assert time.process_time() - started < 5


# --- against make ----------------------------------------------------------------------------------------------------------------------

NAMES = ("A", "B", "long_name", "ZED")  # the last one is never set
WORDS = (
    "x",
    "y=1",
    "'q r'",
    '"s t"',
    "$(A)",
    "${B}",
    "$(long_name)",
    "'$(A)'",
    "$(ZED)",
    "$$z",
    "$$B",
    "it\\#s",
    "a,b",
    "$(A)$(B)",
    "-v",
)


@st.composite
def makefiles(draw: st.DrawFn) -> str:
    lines: list[str] = []
    for at in range(draw(st.integers(1, 9))):
        words = draw(st.lists(st.sampled_from(WORDS), max_size=4))
        match draw(st.sampled_from(["set", "set", "set", "joined", "rule", "of", "if", "comment", "export"])):
            case "set":
                how = draw(st.sampled_from(["=", ":=", "?=", "+=", "::="]))
                tail = draw(st.sampled_from(["", "", "  # why", " "]))
                lines.append(f"{draw(st.sampled_from(NAMES[:3]))} {how} {' '.join(words)}{tail}")
            case "joined":
                lines.append(f"{draw(st.sampled_from(NAMES[:3]))} = " + " \\\n   ".join(words))
            case "rule":
                joint = draw(st.sampled_from([" ", " \\\n\t", " \\\n\t  ", "\\\n"]))
                prefix = draw(st.sampled_from(["", "@", "-", "@ -", "$(A)"]))
                lines += [f"t{at}:", *(f"\t{prefix}run {joint.join(words)}" for _ in range(draw(st.integers(1, 2))))]
            case "of":
                lines.append(f"t{draw(st.integers(0, 8))}: {draw(st.sampled_from(NAMES[:3]))} = {' '.join(words)}")
            case "if":
                lines += [f"ifeq ({draw(st.sampled_from('12'))},1)", f"A = {' '.join(words)}", "endif"]
            case "comment":
                lines.append("# $(A)")
            case "export":
                lines.append("export B")
    return "\n".join(lines) + "\nlast:\n\trun $(A) $(B) $(long_name)\n"


@pytest.mark.skipif(MAKE is None, reason="no make here")
@settings(max_examples=120, deadline=None)
@given(makefiles())
def test_make_runs_what_we_read(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    assert MAKE is not None
    folder = tmp_path_factory.getbasetemp() / "made"
    folder.mkdir(exist_ok=True)
    (folder / "Makefile").write_text(text)
    targets = list(dict.fromkeys(re.findall(r"(?m)^(t\d|last):$", text)))
    shown = subprocess.run(
        [MAKE, "-nB", "--no-print-directory", *targets],
        cwd=folder, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    if shown.returncode:
        return  # a variable that expands to itself, and other errors
    pattern = "".join(f"{_pattern(each)}\n" for each in texts(text) if each.strip())
    theirs = re.sub(" +", " ", shown.stdout)  # what is empty leaves spaces behind here or there
    assert re.fullmatch(pattern, theirs), (pattern, theirs)


def _pattern(text: str) -> str:
    """What make shows of a recipe, with any text for what is unknown."""
    names = "|".join(NAMES)
    text = re.sub(rf"'\"\$\{{(?:{names})\}}\"'|\$\{{(?:{names})\}}", "", text)  # set nowhere
    text = re.sub(r"'\"\$\(\w+\)\"'|\$\(\w+\)", "\0", text)
    text = re.sub(r"^export B='(?:[^']|'\\'')*'; ", "", text, flags=re.DOTALL)
    text = re.sub(" +", " ", text).lstrip(
        "@-+ \t"
    )  # make takes them away once it knows that what stands before them is empty
    text = re.sub(r"(?: ?\0)+ ?", "\0", text)  # it may be nothing, with the spaces around it in one
    return r"(?:.|\n)*".join(map(re.escape, text.split("\0")))


# --- in a scan -------------------------------------------------------------------------------------------------------------------------

TRAINING = """\
TYPE ?= low_var_kl
ARGS = algorithm.adv_estimator=rloo \\
\tactor_rollout_ref.actor.use_kl_loss=True
train: data
\t@python3 -m verl.trainer.main_ppo $(ARGS) \\
\t\tactor_rollout_ref.actor.kl_loss_type=$(TYPE)
"""
OPTIONS = Options(jobs=1, framework_versions={"verl": "0.9.1"})


@pytest.mark.parametrize("name", ["Makefile", "makefile", "GNUmakefile", "jobs/train.mk"])
def test_a_launch_in_a_makefile(tmp_path: Path, name: str) -> None:
    assert is_candidate(name)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(TRAINING)
    report = klaudit.scan(tmp_path, framework_versions={"verl": "0.9.1"})
    (setup,) = report.setups
    assert (setup.path, setup.kind, setup.span.line, setup.verdict) == (name, "launch", 5, "biased")
    (finding,) = (each for each in report.findings if each.rule == "KLA101")
    assert {(each.setting.rpartition(".")[2], each.line) for each in finding.related} >= {("use_kl_loss", 3)}


def test_fix_and_suppress_leave_it_to_hands(tmp_path: Path) -> None:
    from klaudit.fixes.suppress import suppress
    from klaudit.tree import Tree

    (tmp_path / "Makefile").write_text(TRAINING)
    made = plan([str(tmp_path)], OPTIONS, Request())
    assert not made.contents
    assert [each.why for each in made.unchanged] == ["make expands what stands in Makefile: to be changed by hand"]
    report = klaudit.scan(tmp_path, framework_versions={"verl": "0.9.1"})
    annotation = suppress(report.findings, Tree(tmp_path), "as in the paper")
    assert not annotation.contents and "would be run" in annotation.refused[0].why


@pytest.mark.parametrize(
    "text",
    [
        TRAINING.replace("ARGS =", "# klaudit: ignore[KLA101] as in the paper\nARGS ="),
        "# klaudit: ignore-file[KLA101] as in the paper\n" + TRAINING,
    ],
)
def test_a_comment_suppresses(tmp_path: Path, text: str) -> None:
    (tmp_path / "Makefile").write_text(text)
    report = klaudit.scan(tmp_path, framework_versions={"verl": "0.9.1"})
    assert "KLA101" not in {each.rule for each in report.findings}
    assert [each.by for each in report.withheld] == ["suppression"]


def test_a_hash_in_a_recipe_is_no_comment() -> None:
    source = Source("Makefile", b"A = x # one\n# two\nt: # three\n\trun '#x' \\\n# four\n\t# five\n")
    found = [piece.data[start:end] for piece in pieces_of(source) for start, end in piece.comments]
    assert found == [b"# two", b"# five"]
