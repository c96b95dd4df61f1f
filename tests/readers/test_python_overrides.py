"""Override lists in Python."""

from __future__ import annotations

from python_reading import objects, read, spelled, values

from klaudit.model import Unknown
from klaudit.readers.document import Word


def test_the_kinds_of_elements() -> None:
    code = """
        BETA = 0.04
        overrides = [
            "algorithm.kl_penalty=kl",
            "+trainer.extra=1", "++a=b", "~removed", "~gone=1",
            f"algorithm.kl_ctrl.kl_coef={BETA}",
            "x.y=" + str(BETA),
            f"{name}=3",
            f"model.path={path}/x",
            "empty=",
            "--kl-coef", "0.1", "--flag", "--eq=2",
            "torch==2.0", "plain", 3,
        ]
    """
    (made,) = objects(code, "overrides")
    assert [(s.name, s.value) for s in made.settings] == [
        ("algorithm.kl_penalty", "kl"),
        ("trainer.extra", "1"),
        ("a", "b"),
        ("removed", None),
        ("gone", "1"),
        ("algorithm.kl_ctrl.kl_coef", "0.04"),
        ("x.y", "0.04"),
        ("model.path", Unknown(("path",), "{path}/x")),
        ("empty", ""),
        ("kl-coef", "0.1"),
        ("flag", True),
        ("eq", "2"),
    ]
    spans = {s.name: (spelled(code, s.span), spelled(code, s.value_span)) for s in made.settings}
    assert spans["algorithm.kl_penalty"] == ("algorithm.kl_penalty=kl", "kl")
    assert spans["trainer.extra"] == ("+trainer.extra=1", "1")
    assert spans["algorithm.kl_ctrl.kl_coef"] == ("algorithm.kl_ctrl.kl_coef={BETA}", "{BETA}")
    assert spans["model.path"] == ("model.path={path}/x", "{path}/x")
    assert spans["empty"] == ("empty=", "")
    assert spans["kl-coef"] == ('--kl-coef", "0.1', "0.1")
    assert spans["eq"] == ("--eq=2", "2")
    coef = next(s for s in made.settings if s.name.endswith("kl_coef"))
    assert coef.source is not None and spelled(code, coef.source) == "0.04"
    assert [word.text for word in made.arguments if isinstance(word, Word)][:2] == [
        "algorithm.kl_penalty=kl",
        "+trainer.extra=1",
    ]


def test_who_gets_them() -> None:
    code = """
        import sys
        from hydra import compose
        from omegaconf import OmegaConf
        cfg = compose("config", overrides=["a.b=1"])
        dots = OmegaConf.from_dotlist(["c.d=2"])
        sys.argv = ["prog", "e.f=3"]
        named = ("g.h=4",)
    """
    found = {made.settings[0].name: (made.symbol, made.name) for made in objects(code, "overrides")}
    assert found == {
        "a.b": ("hydra.compose", None),
        "c.d": ("omegaconf.OmegaConf.from_dotlist", None),
        "e.f": ("sys.argv", "sys.argv"),
        "g.h": ("named", "named"),
    }


def test_lists_that_grow() -> None:
    code = """
        args = []
        args.append("a.b=1")
        args += ["c.d=2", f"e={x}"]
        args.extend(more())
        if use_kl:
            args.append("algorithm.use_kl=True")
        for k in keys:
            args.append(f"{k}=1")
        other = ["f=1"]
        other = other + ["g=2"]
    """
    grown, first, second = objects(code, "overrides")[0], *objects(code, "overrides")[-2:]
    assert values(grown) == {
        "a.b": "1",
        "c.d": "2",
        "e": Unknown(("x",), "{x}"),
        "algorithm.use_kl": Unknown(("use_kl",), "True"),
    }
    assert "more()" in grown.open and grown.name == "args"
    assert spelled(code, grown.settings[0].span) == "a.b=1"
    assert [values(made) for made in (first, second)] == [{"f": "1"}, {"g": "2"}]


def test_escapes_and_adjacent_literals_keep_their_places() -> None:
    code = 'l = ["a.b=\\"x\\"" "\\u00e9", r"c=\\d", "d" "=" "1"]\n'
    (made,) = objects(code, "overrides")
    assert values(made) == {"a.b": '"x"é', "c": "\\d", "d": "1"}
    assert [spelled(code, s.value_span) for s in made.settings] == ['\\"x\\"" "\\u00e9', "\\d", "1"]
    assert spelled(code, made.settings[2].span) == 'd" "=" "1'


def test_lists_of_anything_else() -> None:
    for code in (
        "x = ['a', 'b']",
        "x = [1, 2]",
        "x = ['torch==2', 'a >= 3']",
        "x = [f'{a}', *b]",
        "x = []",
        "x = ['- item', '-']",
    ):
        assert objects(code + "\n", "overrides") == [], code
    assert read("x = [y for y in ['a=1']]").objects[0].settings[0].name == "a"
