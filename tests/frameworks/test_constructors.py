"""What constructors of derived config classes set, held against what Python itself makes of our own texts."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from klaudit.configuration import Options
from klaudit.engine import scan

HEAD = "from dataclasses import dataclass\nfrom trl import GRPOConfig\n"


@dataclass
class Base:
    """Stands in for the library's class where the text is run."""

    output_dir: str = ""
    beta: float | None = 0.0
    loss_type: str = "dapo"

    def __post_init__(self) -> None:
        pass


CASES = {
    "set after all": """
        @dataclass
        class My(GRPOConfig):
            def __post_init__(self):
                self.beta = 0.04
                super().__post_init__()
        args = My(output_dir="x", beta=0.5)
        """,
    "handed to the base": """
        class My(GRPOConfig):
            def __init__(self, **given):
                super().__init__(beta=0.04, **given)
        args = My(output_dir="x")
        """,
    "a parameter's default": """
        class My(GRPOConfig):
            def __init__(self, beta=0.3, **given):
                super().__init__(beta=beta, **given)
        args = My(output_dir="x")
        """,
    "a parameter given": """
        class My(GRPOConfig):
            def __init__(self, beta=0.3, **given):
                super().__init__(beta=beta, **given)
        args = My(output_dir="x", beta=0.7)
        """,
    "assigned later": """
        @dataclass
        class My(GRPOConfig):
            def __post_init__(self):
                self.beta = 0.04
        args = My(output_dir="x")
        args.beta = 0.9
        """,
    "a gap is filled": """
        @dataclass
        class My(GRPOConfig):
            beta: float = None
            def __post_init__(self):
                if self.beta is None:
                    self.beta = 0.04
        args = My(output_dir="x", beta=0.6)
        """,
    "two generations": """
        class Mine(GRPOConfig):
            def __init__(self, **given):
                super().__init__(beta=0.04, **given)
        class Ours(Mine):
            def __init__(self, **given):
                super().__init__(**given)
                self.beta = 0.08
        args = Ours(output_dir="x")
        """,
    "by steps": """
        class My(GRPOConfig):
            def __init__(self, **given):
                super().__init__(**given)
                self.beta = 0.01
                self.beta = 0.02
        args = My(output_dir="x")
        """,
    "a twig never taken": """
        class My(GRPOConfig):
            def __init__(self, **given):
                super().__init__(beta=0.2, **given)
                if False:
                    self.beta = 0.02
        args = My(output_dir="x")
        """,
}


def coefficients(tmp_path: Path, text: str) -> list[float | None]:
    """Those of the last set-up."""
    (tmp_path / "train.py").write_text(HEAD + textwrap.dedent(text))
    report = scan([str(tmp_path)], Options(jobs=1))
    assert not report.errors
    return [term.coefficient for term in report.setups[-1].terms]


@pytest.mark.parametrize("name", CASES)
def test_the_coefficient_is_that_of_the_made_object(tmp_path: Path, name: str) -> None:
    space: dict[str, object] = {"GRPOConfig": Base, "dataclass": dataclass}
    exec(textwrap.dedent(CASES[name]), space)
    assert coefficients(tmp_path, CASES[name]) == [space["args"].beta]  # type: ignore[attr-defined]


def test_what_hangs_on_a_condition_is_unknown(tmp_path: Path) -> None:
    text = """
        class My(GRPOConfig):
            def __init__(self, **given):
                super().__init__(beta=0.2, **given)
                if self.output_dir == "y":
                    self.beta = 0.02
        args = My(output_dir="x")
        """
    assert coefficients(tmp_path, text) == [None]


def test_other_methods_set_nothing(tmp_path: Path) -> None:
    text = """
        class My(GRPOConfig):
            def later(self):
                self.beta = 0.02
        args = My(output_dir="x", beta=0.5)
        """
    assert coefficients(tmp_path, text) == [0.5]
