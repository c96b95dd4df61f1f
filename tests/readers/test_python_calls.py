"""Calls, dicts and assignments as config objects."""

from __future__ import annotations

from python_reading import call, hangs_on, objects, read, spelled, values

from klaudit.model import Unknown


def test_imports_give_qualified_names() -> None:
    code = """
        import trl as t
        from trl import GRPOConfig as C
        from trl.experimental import ppo
        from .local import Mine
        from ..upper import *
        try:
            from new.place import Moved
        except ImportError:
            from old.place import Moved
        t.GRPOConfig(a=1)
        C(b=2)
        ppo.PPOConfig(c=3)
        Mine(d=4)
        Moved(e=5)
        Starred(f=6)
        alias = t.GRPOConfig
        alias(g=7)
        def f():
            from inside import Inner
            Inner(h=8)
    """
    document = read(code, "pkg/sub/program.py")
    found = {next(iter(values(made))): made.symbol for made in document.objects}
    assert found == {
        "a": "trl.GRPOConfig",
        "b": "trl.GRPOConfig",
        "c": "trl.experimental.ppo.PPOConfig",
        "d": "pkg.sub.local.Mine",
        "e": "new.place.Moved",
        "f": "Starred",
        "g": "trl.GRPOConfig",
        "h": "inside.Inner",
    }
    assert ("*", "pkg.upper") in document.imports
    assert [symbol for name, symbol in document.imports if name == "Moved"] == ["new.place.Moved", "old.place.Moved"]


def test_keywords_positionals_and_what_cannot_be_seen() -> None:
    code = 'from trl import GRPOConfig\nargs = GRPOConfig("out", 1, beta=0.04, **kwargs)\n'
    made = call(code, "trl.GRPOConfig")
    assert (made.name, made.scope, made.open) == ("args", "", ("kwargs",))
    assert [getattr(argument, "value", None) for argument in made.arguments] == ["out", 1]
    assert spelled(code, made.span) == 'GRPOConfig("out", 1, beta=0.04, **kwargs)'
    assert [(s.name, s.value, spelled(code, s.span)) for s in made.settings] == [("beta", 0.04, "beta=0.04")]


def test_parsers_of_config_classes_name_them() -> None:
    code = """
        from trl import TrlParser, GRPOConfig, ModelConfig
        parser = TrlParser((ScriptArguments, GRPOConfig, ModelConfig))
        script_args, training_args, model_args = parser.parse_args_and_config()
        training_args.beta = 0.1
    """
    made = call(code, "trl.TrlParser")
    assert made.arguments[0].symbols == ("ScriptArguments", "trl.GRPOConfig", "trl.ModelConfig")  # type: ignore[union-attr]
    (later,) = objects(code, "assignments")
    assert (later.symbol, later.name, values(later)) == ("trl.GRPOConfig", "training_args", {"beta": 0.1})


def test_attributes_set_later_belong_to_the_call() -> None:
    code = """
        cfg = TrainConfig(lr=1)
        cfg.trainer.algorithm.use_kl_loss = False
        setattr(cfg, "beta", 0.1)
        cfg.update({"a": {"b": 2}})
        if debug:
            cfg.beta = 0.2
        if False:
            cfg.beta = 0.3
        cfg = TrainConfig(lr=2)
        cfg.beta = 0.4
    """
    first, second = objects(code, "call")
    assert [(s.name, s.value) for s in first.settings] == [
        ("lr", 1),
        ("trainer.algorithm.use_kl_loss", False),
        ("beta", 0.1),
        ("a", {"b": 2}),
        ("a.b", 2),
        ("beta", Unknown(("debug",), "0.2")),
    ]
    assert values(second) == {"lr": 2, "beta": 0.4}
    assert spelled(code, first.settings[1].span) == "cfg.trainer.algorithm.use_kl_loss = False"
    assert spelled(code, first.settings[2].value_span) == "0.1"


def test_assignments_are_grouped_by_name_and_scope() -> None:
    code = """
        def run(cfg: "TrainConfig", other):
            cfg["algorithm"]["kl_penalty"] = "kl"
            cfg.a.b = cfg.c
            with open_dict(cfg):
                cfg.x = 1
            OmegaConf.update(cfg, "trainer.beta", 0.1)
            other.y = 2
            self.config.z = 3
            other[0].skipped = 4
        config = compose(config_name="base")
        config.algorithm.use_kl_in_reward = True
        loaded = Config.from_yaml("x")
        loaded.beta = 5
    """
    found = {made.name: made for made in objects(code, "assignments")}
    assert values(found["cfg"]) == {
        "algorithm.kl_penalty": "kl",
        "a.b": Unknown(("cfg.c",), "cfg.c"),
        "x": 1,
        "trainer.beta": 0.1,
    }
    assert (found["cfg"].symbol, found["cfg"].scope) == ("TrainConfig", "run")
    assert values(found["other"]) == {"y": 2}
    assert values(found["self.config"]) == {"z": 3}
    assert (found["config"].symbol, values(found["config"])) == ("compose", {"algorithm.use_kl_in_reward": True})
    assert (found["loaded"].symbol, found["loaded"].scope) == ("Config", "")


def test_dicts_give_dotted_names() -> None:
    code = """
        config = {"algorithm": {"kl_ctrl": {"kl_coef": 0.1}, "kl_penalty": "kl"}, "a.b": 1, 3: 4, "empty": {}}
        config["algorithm"]["use_kl"] = True
        config.update(seed=1)
        made = dict(x=1, y={"z": 2})
        nothing = {1: 2}
    """
    config, made = objects(code, "dict")
    assert [(s.name, s.value) for s in config.settings] == [
        ("algorithm.kl_ctrl.kl_coef", 0.1),
        ("algorithm.kl_penalty", "kl"),
        ("a.b", 1),
        ("empty", {}),
        ("algorithm.use_kl", True),
        ("seed", 1),
    ]
    assert spelled(code, config.settings[0].span) == '"kl_coef": 0.1'
    assert (config.name, made.name, values(made)) == ("config", "made", {"x": 1, "y.z": 2})


def test_objects_within_objects_are_flattened() -> None:
    code = """
        algorithm = AlgorithmConfig(use_kl_loss=True)
        cfg = TrainConfig(trainer=TrainerConfig(algorithm=algorithm, extra={"a": 1}))
    """
    outer = next(made for made in objects(code, "call") if made.symbol == "TrainConfig")
    assert {name: v for name, v in values(outer).items() if not isinstance(v, Unknown)} == {
        "trainer.algorithm.use_kl_loss": True,
        "trainer.extra": {"a": 1},
        "trainer.extra.a": 1,
    }
    assert {made.symbol for made in objects(code, "call")} == {"AlgorithmConfig", "TrainConfig", "TrainerConfig"}


def test_copies_with_changes_keep_their_class() -> None:
    code = """
        import dataclasses
        from trl import GRPOConfig
        base = GRPOConfig(beta=0.04, lr=1)
        new = dataclasses.replace(base, beta=0.1)
        made = GRPOConfig.from_dict({"beta": 0.2, **more})
        other = dataclasses.replace(unknown, beta=0.3)
    """
    document = read(code)
    found = {made.name: made for made in document.objects if made.kind == "call"}
    assert (found["new"].symbol, values(found["new"])) == ("trl.GRPOConfig", {"beta": 0.1, "lr": 1})
    assert (found["made"].symbol, found["made"].open) == ("trl.GRPOConfig", ("more",))
    assert hangs_on(values(found["made"])["beta"]) == ("more",)
    assert found["other"].open == ("unknown",)


def test_conditional_dicts_spread_into_calls() -> None:
    code = """
        kwargs = {"lr": 1}
        if use_beta:
            kwargs["beta"] = 0.1
        kwargs["seed"] = 3
        Config(**kwargs, **({"a": 1} if cond else {}))
    """
    made = call(code, "Config")
    assert values(made) == {"lr": 1, "beta": Unknown(("use_beta",), "0.1"), "seed": 3}
    assert made.open == ("cond",)


def test_what_is_no_config_is_left_out() -> None:
    code = """
        import torch, numpy as np
        print("x", end="")
        torch.zeros(3, dtype=torch.float)
        np.sum(x, axis=0)
        tensor.sum(dim=-1)
        f(1)(x=2)
        field(default=1)
    """
    assert objects(code, "call") == []


def test_objects_stand_in_source_order() -> None:
    code = 'b = {"x": 1}\nA(b=1)\nclass C:\n    y = 2\nl = ["a.b=c"]\n'
    assert [made.kind for made in read(code).objects] == ["dict", "call", "class", "overrides"]


def test_deep_elif_chains_and_many_scopes() -> None:
    code = (
        "if a == 0:\n    x = 0\n" + "".join(f"elif a == {i}:\n    x = {i}\n" for i in range(1, 900)) + "Config(x=x)\n"
    )
    assert hangs_on(values(call(code, "Config"))["x"]) == ("x",)
