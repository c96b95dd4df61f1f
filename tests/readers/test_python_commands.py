"""Commands that programs start, held against what a run hands to subprocess."""

from __future__ import annotations

import os
import subprocess
import unittest.mock
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_reading import objects, read, spelled, values

from klaudit.readers.document import Command


def words(command: Command) -> list[str | None]:
    return [word.text for word in command.words]


def test_lists_are_commands() -> None:
    code = """
        import subprocess, sys, os
        from subprocess import check_call as cc
        BETA = 0.04
        extra = ["trainer.seed=1"]
        cmd = [sys.executable, "-m", "verl.trainer.main_ppo", f"algorithm.kl_coef={BETA}", *extra]
        cmd += ["a.b=c"]
        if fast:
            cmd.append("fast=1")
        subprocess.run(cmd, cwd="work", env={**os.environ, "X": "1", "Y": y}, check=True)
        cc(["echo", 1, name])
    """
    first, second = read(code).commands
    assert words(first) == [
        "python",
        "-m",
        "verl.trainer.main_ppo",
        "algorithm.kl_coef=0.04",
        "trainer.seed=1",
        "a.b=c",
        None,
    ]
    assert (first.directory, first.environment) == ("work", (("X", "1"), ("Y", None)))
    assert first.words[-1].hangs_on == ("fast",)
    override = first.words[3]
    assert spelled(code, override.span) == "algorithm.kl_coef={BETA}"
    assert [(p.text, p.variable, spelled(code, p.span)) for p in override.pieces] == [
        ("algorithm.kl_coef=", None, "algorithm.kl_coef="),
        ("0.04", "BETA", "0.04"),
    ]
    assert spelled(code, first.words[4].span) == "trainer.seed=1"
    assert (words(second), second.directory, second.environment) == (["echo", "1", None], ".", ())


def test_texts_go_to_the_shell_reader() -> None:
    code = '''
        import subprocess, os
        cmd = "python -m x " f"a.b={BETA} " "name='{}'".format(args.name)
        cmd += " --flag 1"
        os.system(cmd)
        subprocess.run(f"echo \\"{x}\\"", shell=True)
        subprocess.run(["bash", "-lc", "cd a && python b.py"])
        subprocess.run("ls -l")
        run_cmd(" ".join(["torchrun", "train.py", f"--beta={beta}"]))
        client.submit_job(entrypoint="python -m y c=d")
        """python in a docstring -m x"""
        get_ipython().system("pip install trl")
        command = f"trl grpo --output_dir {out}"
        raise RuntimeError("python -m broke")
    '''
    document = read(code)
    assert [source.data.decode() for source in document.shell_strings] == [
        "python -m x a.b=$(BETA) name=''\"$(args.name)\"'' --flag 1",
        'echo "$(x)"',
        "cd a && python b.py",
        "ls -l",
        "python -m y c=d",
        "pip install trl",
        "trl grpo --output_dir $(out)",
    ]
    assert [[word.shown for word in c.words] for c in document.commands if words(c)[0] != "bash"] == [
        ["torchrun", "train.py", "--beta=${beta}"]
    ]
    first = document.shell_strings[0]
    for part in (b"a.b=", b"name=", b"--flag 1"):
        at = first.data.index(part)
        assert spelled(code, first.span(at, at + len(part))) == part.decode()
    at = first.data.index(b"$(BETA)")
    assert spelled(code, first.span(at, at + 7)) == "{BETA}"


def test_escapes_in_a_shell_text_map_to_their_spelling() -> None:
    code = 'import os\nos.system("echo \\"é\\"\\n" \'b c\')\n'
    (source,) = read(code).shell_strings
    assert source.data.decode() == 'echo "é"\nb c'
    at = source.data.index(b'"')
    assert spelled(code, source.span(at, at + 4)) == '\\"é\\"'
    assert spelled(code, source.span(at + 5, len(source.data))) == "b c"


def test_commands_say_what_they_assume() -> None:
    code = """
        import subprocess
        def main():
            if mode == "train":
                if True:
                    subprocess.run(["python", "a.py"])
            else:
                subprocess.run(["python", "b.py"])
        if __name__ == "__main__":
            subprocess.run(["python", "c.py"])
    """
    assert [(words(c)[1], c.assumes) for c in read(code).commands] == [
        ("a.py", ('mode == "train"',)),
        ("b.py", ('not (mode == "train")',)),
        ("c.py", ()),
    ]


def test_lists_that_only_look_like_commands() -> None:
    code = """
        requires = ["accelerate", "ray", "trl"]
        languages = ["python", "cpp", "bash"]
        command = ["python", "-m", "pkg.main", "a.b=c"]
        run_later(command)
    """
    assert [words(c) for c in read(code).commands] == [["python", "-m", "pkg.main", "a.b=c"]]
    assert objects(code, "overrides") == []


def test_commands_may_share_a_beginning() -> None:
    code = """
        import os
        base = "python -m x "
        os.system(base + "a=1")
        os.system(base + "a=2")
        full = f"cd y && {base}"
        os.system(full)
        os.system(full)
    """
    texts = [source.data.decode() for source in read(code).shell_strings]
    assert sorted(texts) == ["cd y && python -m x ", "python -m x a=1", "python -m x a=2"]


def test_exec_and_async() -> None:
    code = """
        import os, asyncio
        os.execvp("python", ["python", "-m", "a"])
        asyncio.create_subprocess_exec("torchrun", "b.py", beta)
        asyncio.create_subprocess_shell("python c.py")
    """
    document = read(code)
    assert [words(c) for c in document.commands] == [["python", "-m", "a"], ["torchrun", "b.py", None]]
    assert [s.data for s in document.shell_strings] == [b"python c.py"]


def test_flag_texts_are_overrides() -> None:
    code = """
        grpo_args = (
            "--advantage-estimator grpo "
            "--use-kl-loss "
            f"--kl-loss-coef {COEF} "
        )
    """
    (made,) = objects(code, "overrides")
    assert made.name == "grpo_args"
    assert {k: v for k, v in values(made).items() if k != "kl-loss-coef"} == {
        "advantage-estimator": "grpo",
        "use-kl-loss": True,
    }
    assert spelled(code, made.settings[0].span) == "--advantage-estimator grpo"
    assert spelled(code, made.settings[0].value_span) == "grpo"


pieces = st.sampled_from(
    ['"python "', '"-m x "', "f'a={n} '", '"b=" + t', '"%s " % n', '"c={} ".format(t)', "t", "str(n)", "' '"]
)
texts = st.lists(pieces, min_size=1, max_size=5).map(" + ".join)
elements = st.lists(pieces | st.sampled_from(["*more", '"-x"']), min_size=1, max_size=5).map(
    lambda parts: f"[{', '.join(parts)}]"
)
programs = st.one_of(
    st.builds("os.system({})".format, texts),
    st.builds("subprocess.run({}, shell=True)".format, texts),
    st.builds("cmd = {}\ncmd += {}\nos.system(cmd)".format, texts, texts),
    st.builds("subprocess.run({})".format, elements),
    st.builds("cmd = {}\ncmd.append({})\nsubprocess.check_call(cmd + {})".format, elements, texts, elements),
    st.builds("subprocess.run(({}).split())".format, texts),
    st.builds("os.system(' '.join({}))".format, elements),
)


@settings(max_examples=80, deadline=None)
@given(programs)
def test_known_commands_are_those_of_a_run(program: str) -> None:
    code = f"import os, subprocess\nn = 0.5\nt = 'y z'\nmore = ['m=1', t]\n{program}\n"
    seen: list[Any] = []
    with (
        unittest.mock.patch.object(subprocess, "run", lambda given, **_: seen.append(given)),
        unittest.mock.patch.object(subprocess, "check_call", seen.append),
        unittest.mock.patch.object(os, "system", seen.append),
    ):
        exec(code, {})
    document = read(code)
    if isinstance(seen[0], list) and seen[0]:
        assert [words(command) for command in document.commands] == [seen[0]]
    elif isinstance(seen[0], str) and seen[0].strip():
        assert [source.data.decode() for source in document.shell_strings] == [seen[0]]


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess\nsubprocess.run()",
        "import subprocess\nsubprocess.run(*args)",
        "import os\nos.system()",
        "import os\nos.execvp('x')",
    ],
)
def test_calls_without_a_command(code: str) -> None:
    document = read(code)
    assert document.commands == () and document.shell_strings == ()
