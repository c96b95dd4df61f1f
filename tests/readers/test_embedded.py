"""Shell in YAML: which scalars, mapped how, with which variables."""

from __future__ import annotations

import textwrap
import time

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.readers.document import Embedded, Node, ScalarNode
from klaudit.readers.embedded import embedded_shell
from klaudit.readers.excerpt import Excerpt
from klaudit.readers.scalar_text import add_scalar
from klaudit.readers.source import Source, UnreadableError
from klaudit.readers.yaml import read_yaml


def pieces(text: str) -> list[Embedded]:
    source = Source("job.yaml", textwrap.dedent(text).encode())
    return [piece for document in read_yaml(source) for piece in embedded_shell(document)]


def shells(text: str) -> list[str]:
    return [piece.source.data.decode() for piece in pieces(text)]


def test_a_job_file() -> None:
    text = """
        name: job
        envs:
          MODEL: Qwen/Qwen2.5
          KL: 0.001
        setup: |
          pip install verl==0.4
        run: |
          set -x
          python -m verl.trainer.main_ppo \\
            algorithm.kl_ctrl.kl_coef=$KL
        file_mounts:
          run: notes
        """
    setup, run = pieces(text)
    assert setup.source.data == b"pip install verl==0.4\n"
    assert run.source.data == b"set -x\npython -m verl.trainer.main_ppo \\\n  algorithm.kl_ctrl.kl_coef=$KL\n"
    assert [(name, value) for name, value, _ in run.environment] == [("MODEL", "Qwen/Qwen2.5"), ("KL", "0.001")]
    assert (setup.where, run.where) == ("setup", "run")
    data = textwrap.dedent(text).encode()
    at = run.source.data.index(b"algorithm")
    span = run.source.span(at, at + len(b"algorithm.kl_ctrl.kl_coef=$KL"))
    assert data[span.start : span.end] == b"algorithm.kl_ctrl.kl_coef=$KL"
    value_span = run.environment[1][2]
    assert data[value_span.start : value_span.end] == b"0.001"


def test_workflows() -> None:
    text = """
        env: {A: 1, B: 2}
        jobs:
          test:
            env:
              B: 3
            steps:
              - uses: actions/checkout@v4
              - run: echo "${{ matrix.x }}" '${{ github.sha }}' ${{ env.B }}
                env:
                  C: ${{ secrets.C }}
              - name: run
                run: python train.py beta=${{ inputs.beta }}
              - run: word
        """
    first, second = pieces(text)
    assert first.source.data.decode() == "echo \"$(matrix.x)\" ''\"$(github.sha)\"'' ${B}\n"
    assert [(name, value) for name, value, _ in first.environment] == [("A", "1"), ("B", "3"), ("C", None)]
    assert second.source.data.decode() == "python train.py beta=$(inputs.beta)\n"
    assert second.where == "jobs.test.steps.2.run"
    data = textwrap.dedent(text).encode()
    span = second.source.span(21, len(second.source.data) - 1)
    assert data[span.start : span.end] == b"${{ inputs.beta }}"


def test_lists_of_lines_and_of_words() -> None:
    assert shells("""
        train:
          variables:
            KL: "0.1"
          before_script:
            - pip install x
          script:
            - export A=1
            - [python a.py, python b.py]
        """) == ["pip install x\n", "export A=1\npython a.py\npython b.py\n"]
    assert shells("""
        containers:
          - command: ["/bin/bash", "-c"]
            args:
              - |
                echo hi
                python -m x a=b
            env:
              - {name: A, value: "1"}
              - name: B
          - command: [python, -m, x]
            args: ["a=b c", "d='e'"]
          - command: [python, -m, x, "a=b c"]
          - args: ["--beta", "0.1"]
          - args: ["sleep 1\\npython y.py"]
          - command: nginx
          - entrypoint: torchrun train.py
          - entrypoint: trl grpo --config x.yaml
          - command: [trl, grpo, --beta, "0.1"]
          - command: {run: {deep: "python z.py"}}
        """) == [
        "echo hi\npython -m x a=b\n",
        "python -m x 'a=b c' ",
        "sleep 1\npython y.py\n",
        "torchrun train.py\n",
        "trl grpo --config x.yaml\n",
        "trl grpo --beta 0.1 ",
    ]


@pytest.mark.parametrize(
    "scalar",
    [
        "|\n  python a.py \\\n    b=c\n\n  echo d\n",
        "|-\n  python a.py\n",
        "|+\n  python a.py\n\n\n",
        "|2\n    python a.py\n   x\n",
        ">\n  python a.py\n  --beta 1\n\n  echo\n    more\n  done\n",
        ">-\n  python a.py\n  --beta 1",
        "python a.py --x 'y'\n  --beta 1\n\n  --gamma 2",
        "'python a.py ''b''\n  --beta 1'",
        '"python a.py \\"b\\" \\u00e9 \\x41 \\\n  --beta 1\\n\n  c"',
        "&anchor |\n  python a.py\n",
        "!!str\n  python a.py",
        "| # a comment\n  python a.py\n",
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_every_style_is_mapped(scalar: str, ends: str) -> None:
    text = f"a: 1\nrun: {scalar}\n".replace("\n", ends)
    (piece,) = pieces(text)
    assert piece.source.data.decode().rstrip("\n") == yaml.safe_load(text)["run"].rstrip("\n")
    assert_words_map(piece.source, text.encode())


def assert_words_map(source: Source, data: bytes) -> None:
    """Every word that is spelled plainly maps to bytes that spell it."""
    at = 0
    for word in source.data.split():
        at = source.data.index(word, at)
        span = source.span(at, at + len(word))
        spelled = data[span.start : span.end]
        assert spelled == word or b"\\" in spelled or b"''" in spelled, (word, spelled)
        at += len(word)


lines = st.lists(st.text(st.sampled_from("ab='\"\\#:-é \t"), max_size=8), min_size=1, max_size=4).map("\n".join)
styles = st.sampled_from(["|", ">", "'", '"', None])


@settings(max_examples=80, deadline=None)
@given(lines, styles, st.integers(10, 40))
def test_scalars_map_as_yaml_writes_them(text: str, style: str | None, width: int) -> None:
    written = yaml.safe_dump({"run": text}, default_style=style, width=width, allow_unicode=True)  # type: ignore[arg-type]
    source = Source("x.yaml", written.encode())
    try:
        node = only_scalar(read_yaml(source)[0].root)
    except UnreadableError:
        return
    excerpt = Excerpt(source)
    assert add_scalar(excerpt, node)
    assert excerpt.data.decode() == text
    piece = excerpt.embed()
    for at, byte in enumerate(piece.data):
        span = piece.span(at, at + 1)
        if byte not in b" \t\n" and byte < 0x80:
            spelled = source.data[span.start : span.end]
            assert spelled in (bytes([byte]), b"''") or spelled.startswith(b"\\")


def only_scalar(node: Node | None) -> ScalarNode:
    while not isinstance(node, ScalarNode):
        assert node is not None
        node = node.entries[0].value if hasattr(node, "entries") else node.items[0]  # type: ignore[union-attr]
    return node


def test_deep_trees_end() -> None:
    text = "".join("  " * depth + "a:\n" for depth in range(80)) + "  " * 80 + "run: python x.py\n"
    assert shells(text) == []


@pytest.mark.parametrize(
    "line", ["${{ " * 200_000, "${{" + " " * 400_000, "'${{ a }}\" " * 20_000], ids=["open", "blank", "quoted"]
)
def test_expressions_take_linear_time(line: str) -> None:
    text = f"steps:\n  - run: |\n      echo {line}\n      run it\n"
    started = time.process_time()
    (shell,) = embedded_shell(read_yaml(Source("ci.yml", text.encode()))[0])
    assert time.process_time() - started < 5.0
    assert shell.source.data.endswith(b"\n") and b"run it" in shell.source.data


def test_an_expression_ends_on_its_line() -> None:
    text = "steps:\n  - run: |\n      a ${{ env.X }} ${{ y\n      }} ${{z}}\n"
    (shell,) = embedded_shell(read_yaml(Source("ci.yml", text.encode()))[0])
    first, second = shell.source.text.splitlines()
    assert first.startswith("a ${X} ${{ y") and second.startswith("}} $(") and "${{" not in second
