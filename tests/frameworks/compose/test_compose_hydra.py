"""Where composed values come from, what is refused and why, and what stays unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from composing import has_unknown, write

from klaudit.frameworks.compose.configuration import Configuration, shipped
from klaudit.frameworks.compose.hydra import compose_hydra
from klaudit.model import Setting, Unknown
from klaudit.readers.document import Piece, Word
from klaudit.readers.source import Source
from klaudit.tree import Tree

MAIN = """\
defaults:
  - actor@actor: dp
  - _self_
algorithm:
  kl_coef: 1e-3   # é
link: ${actor.beta}
text: "beta ${actor.beta}"
branch: ${actor}
"""
ACTOR = "beta: 0.5\ntype: k3\nagain: ${.beta}\n"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return write(tmp_path, {"conf/main.yaml": MAIN, "conf/actor/dp.yaml": ACTOR})


def words(command: str) -> list[Word]:
    """The arguments of a command line, as a shell script spells them."""
    source = Source("run.sh", f"\npython x.py {command}\n".encode())
    found, at = [], len("\npython x.py ")
    for text in command.split():
        span = source.span(at, at + len(text))
        found.append(Word((Piece(text, span),), span, span))
        at += len(text) + 1
    return found


def setting(configuration: Configuration, name: str) -> Setting:
    found = configuration.get(name)
    assert found is not None
    return found


def place(found: Setting) -> tuple[str, int, int]:
    return found.value_span.path, found.value_span.line, found.value_span.column


def test_a_value_from_a_file(tree: Tree) -> None:
    found = setting(compose_hydra(tree, ["conf"], "main", []), "actor.type")
    assert (found.name, found.value, found.origin, found.raw) == ("actor.type", "k3", "file", "k3")
    assert place(found) == ("conf/actor/dp.yaml", 2, 7)
    assert (found.span.start, found.span.end) == (ACTOR.index("type"), ACTOR.index("\nagain"))


def test_a_number_keeps_its_spelling(tree: Tree) -> None:
    found = setting(compose_hydra(tree, ["conf"], "main", []), "algorithm.kl_coef")
    assert (found.value, found.raw, found.value_span.line) == (0.001, "1e-3", 5)


def test_an_override(tree: Tree) -> None:
    configuration = compose_hydra(tree, ["conf"], "main", words("actor.type=k1 algorithm.kl_coef=0.1 actor.type=k2"))
    found = setting(configuration, "actor.type")
    assert (found.value, found.origin, found.source) == ("k2", "override", None)
    assert place(found) == ("run.sh", 2, 60)
    assert [each.value for each in configuration.given("actor.type")] == ["k1", "k2"]
    assert configuration.refused is None


def test_an_interpolation_points_at_the_key_it_reaches(tree: Tree) -> None:
    found = setting(compose_hydra(tree, ["conf"], "main", []), "link")
    assert (found.value, found.origin, place(found)) == (0.5, "file", ("conf/main.yaml", 6, 7))
    assert found.source is not None
    assert (found.source.path, found.source.line, found.source.column) == ("conf/actor/dp.yaml", 1, 7)


def test_an_interpolation_takes_the_origin_of_what_it_reaches(tree: Tree) -> None:
    configuration = compose_hydra(tree, ["conf"], "main", words("actor.beta=3"))
    for name in ("link", "actor.again", "branch.beta"):
        found = setting(configuration, name)
        assert (found.value, found.origin) == (3, "override")
    assert setting(configuration, "text").value == "beta 3"
    assert setting(configuration, "branch").value == {"beta": 3, "type": "k3", "again": 3}


def test_given_names_what_the_own_file_and_overrides_set(tree: Tree) -> None:
    configuration = compose_hydra(tree, ["conf"], "main", words("algorithm={kl_coef:2} +new.key=1 ~text"))
    assert [each.value for each in configuration.given("algorithm.kl_coef")] == [0.001, 2]
    assert configuration.given("actor.beta") == ()
    assert [each.origin for each in configuration.given("new.key")] == ["override"]
    assert set(configuration.explicit_names()) >= {"algorithm.kl_coef", "link", "new.key"}
    assert configuration.has("new.key")
    assert not configuration.has("text")
    assert configuration.get("text") is None


def test_a_value_that_hangs_on_a_variable(tree: Tree) -> None:
    literal, unknown = words("actor.beta= rest")
    word = Word((*literal.pieces, Piece(None, unknown.span, hangs_on=("BETA",))), literal.span, literal.site)
    configuration = compose_hydra(tree, ["conf"], "main", [word])
    assert setting(configuration, "actor.beta").value == Unknown(("BETA",), "${BETA}")
    assert setting(configuration, "link").value == Unknown(("BETA",), "${BETA}")
    assert configuration.refused is None


def test_words_of_which_nothing_is_known_are_said(tree: Tree) -> None:
    (word,) = words("x")
    arguments = Word((Piece(None, word.span, hangs_on=("@",)),), word.span, word.site)
    configuration = compose_hydra(tree, ["conf"], "main", [arguments])
    assert configuration.hangs_on == ("@",)
    assert [problem.line for problem in configuration.problems] == [2]
    assert configuration.refused is None


def test_a_refusal_says_which_override_and_how_to_mend_it(tree: Tree) -> None:
    configuration = compose_hydra(tree, ["conf"], "main", words("algorithm.typo=1 actor.type=k2"))
    assert configuration.refused is not None
    assert "+algorithm.typo=1" in configuration.refused
    assert [(problem.path, problem.line) for problem in configuration.problems] == [("run.sh", 2)]
    assert setting(configuration, "actor.type").value == "k2"  # the rest can still be judged


def test_sweeps_want_multirun(tree: Tree) -> None:
    sweep = words("actor.beta=1,2 actor.type=choice(k1,k2)")
    assert compose_hydra(tree, ["conf"], "main", sweep).refused is not None
    configuration = compose_hydra(tree, ["conf"], "main", sweep, is_multirun=True)
    assert configuration.refused is None
    assert setting(configuration, "actor.beta").value == Unknown(("sweep",), "1,2")


# --- what the tree does not have ------------------------------------------------------------------------------------------------------


def test_a_missing_group_file_leaves_its_part_open(tmp_path: Path) -> None:
    tree = write(tmp_path, {"conf/main.yaml": "a: {x: 1}\ndefaults:\n  - _self_\n  - a: gone\n  - b@c: gone\n"})
    configuration = compose_hydra(tree, ["conf"], "main", ["a.y=2", "c.z=3", "a.x=4"])
    assert configuration.refused is None
    assert [(each.package, each.config) for each in configuration.unseen] == [("a", "a/gone"), ("c", "b/gone")]
    assert setting(configuration, "a.y").value == 2
    assert setting(configuration, "a.x").value == 4
    assert configuration.get("a.other") is None
    assert compose_hydra(tree, ["conf"], "main", ["d.y=2"]).refused is not None  # `d` lies in no open part


def test_what_a_missing_config_may_have_changed_is_unknown(tmp_path: Path) -> None:
    text = "defaults:\n  - _self_\n  - gone\na: 1\nb: {c: 2}\n"
    configuration = compose_hydra(write(tmp_path, {"conf/main.yaml": text}), ["conf"], "main", [])
    assert setting(configuration, "b.c").value == Unknown(("gone",))
    after = text.replace("  - _self_\n", "").replace("  - gone\n", "  - gone\n  - _self_\n")
    configuration = compose_hydra(write(tmp_path, {"conf/after.yaml": after}), ["conf"], "after", [])
    assert setting(configuration, "b.c").value == 2


_BACKEND = "# @package _global_\ndefaults:\n  - /trainer\n  - _self_\nown: {mode: async}\n"


@pytest.mark.parametrize("override", ["engine=megatron", "engine=none_of_ours", "~engine"])
@pytest.mark.parametrize("entry", ["pkg://framework.config", "pkg://somewhere.conf", "file:///data/conf"])
def test_a_missing_config_may_have_the_group_that_is_chosen_and_every_key(
    tmp_path: Path, entry: str, override: str
) -> None:
    main = f"hydra: {{searchpath: ['{entry}']}}\ndefaults:\n  - app: base\n  - app/backend: b\n  - _self_\n"
    files = {
        "conf/main.yaml": main,
        "conf/app/base.yaml": "beta: 0.5\n",
        "conf/app/backend/b.yaml": _BACKEND,
        "conf/engine/megatron.yaml": "# @package _global_\nengine: megatron\n",
    }
    overrides = words(f"{override} actor.use_kl_loss=true own.mode=sync")
    configuration = compose_hydra(write(tmp_path, files), ["conf"], "main", overrides)
    assert (configuration.refused, configuration.refusals) == (None, ())
    assert setting(configuration, "actor.use_kl_loss").value is True
    assert setting(configuration, "own.mode").value == "sync"


def test_a_group_that_no_list_has_is_refused_where_all_configs_are_in_the_tree(tmp_path: Path) -> None:
    files = {"conf/main.yaml": "defaults:\n  - _self_\nactor: {beta: 1}\n", "conf/engine/megatron.yaml": "e: 1\n"}
    overrides = words("engine=megatron actor.gamma=2")
    configuration = compose_hydra(write(tmp_path, files), ["conf"], "main", overrides)
    # one cause, one refusal: what was never merged has no keys to miss
    assert configuration.refusals == (("", "the defaults list has no engine to override"),)


@pytest.mark.parametrize(
    ("entries", "is_known"),
    [
        (["pkg://framework.config"], True),
        (["pkg://framework"], True),
        (["pkg://framework.config", "pkg://other.config"], False),
        (["pkg://other.config"], False),
        (["file:///data/framework"], False),
        ([], False),
    ],
)
def test_a_config_of_a_known_package_changes_only_the_keys_that_such_configs_have(
    tmp_path: Path, entries: list[str], is_known: bool
) -> None:
    main = f"hydra: {{searchpath: {entries}}}\ndefaults:\n  - app: base\n  - trainer\n  - _self_\n"
    tree = write(
        tmp_path, {"conf/main.yaml": main, "conf/app/base.yaml": "# @package _global_\napp: {b: 1}\nactor: {b: 2}\n"}
    )
    packaged = {"framework": frozenset({"actor", "critic"})}
    configuration = compose_hydra(tree, ["conf"], "main", [], packaged=packaged)
    assert setting(configuration, "app.b").value == (1 if is_known else Unknown(("trainer",)))
    assert setting(configuration, "actor.b").value == Unknown(("trainer",))


def test_shipped_defaults_stand_in_for_a_config_outside_the_tree(tmp_path: Path) -> None:
    text = "hydra:\n  searchpath:\n    - pkg://framework.config\ndefaults:\n  - trainer\n  - _self_\nactor: {beta: 2}\n"
    tree = write(tmp_path, {"conf/main.yaml": text})
    known = shipped({"actor.beta": (0.1, "1.0"), "actor.type": ("k3", "1.0: actor.py"), "link": ("${actor.beta}", "")})
    overrides = words("actor.more=1")
    configuration = compose_hydra(
        tree, ["conf"], "main", overrides, stand_in=lambda name: known if name == "trainer" else None
    )
    assert configuration.refused is None
    assert configuration.unseen == ()
    assert setting(configuration, "actor.beta").value == 2
    found = setting(configuration, "actor.type")
    assert (found.value, found.origin, found.span.path) == ("k3", "default", "")
    assert configuration.note("actor.type") == "1.0: actor.py"
    assert setting(configuration, "link").value == 2


def test_shipped_defaults_with_all_names_refuse_unknown_ones() -> None:
    from klaudit.frameworks.compose.launch import launch
    from klaudit.frameworks.compose.overrides import parse_override

    closed = shipped({"a.b": (1, "")}, names=["a.b", "a.c"])
    assert launch(closed, [parse_override("a.c=2")]).refused is None
    assert launch(closed, [parse_override("a.d=2")]).refused is not None
    assert launch(closed, [parse_override("+a.b=2")]).refused is not None
    assert launch(closed, [parse_override("+a.d=2")]).refused is None
    assert setting(launch(closed, []), "a.c").value == Unknown(("a.c",))
    assert launch(shipped({"a.b": (1, "")}), [parse_override("a.d=2"), parse_override("+a.b=3")]).refused is None


def test_an_unknown_option_opens_its_part(tree: Tree) -> None:
    (literal,) = words("actor=")
    word = Word((*literal.pieces, Piece(None, literal.span, hangs_on=("ENGINE",))), literal.span, literal.site)
    configuration = compose_hydra(tree, ["conf"], "main", [word])
    assert configuration.refused is None
    assert configuration.unseen[0].package == "actor"
    assert configuration.get("actor.type") is None
    assert has_unknown(setting(configuration, "link").value)


def test_a_missing_primary_config_is_unseen(tree: Tree) -> None:
    configuration = compose_hydra(tree, ["conf"], "absent", words("any.key=1"))
    assert configuration.unseen[0].config == "absent"
    assert configuration.refused is None
    assert setting(configuration, "any.key").value == 1


def test_symlinks_out_of_the_tree_are_unseen(tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text("secret: 1\n")
    tree = write(tmp_path / "tree", {"conf/main.yaml": "defaults:\n  - link\n"})
    (tmp_path / "tree/conf/link.yaml").symlink_to(outside)
    configuration = compose_hydra(tree, ["conf"], "main", [])
    assert configuration.get("secret") is None
    assert configuration.unseen[0].config == "link"


@pytest.mark.parametrize(
    ("entry", "folder"),
    [
        ("file://framework/config", "project/framework/config"),
        ("pkg://framework.config", "project/framework/config"),
        ("framework/config", "framework/config"),
        ("file://${oc.env:ROOT}/config", "other/config"),
    ],
)
def test_search_path_entries_are_tried_where_they_may_be_meant(tmp_path: Path, entry: str, folder: str) -> None:
    main = f"hydra: {{searchpath: ['{entry}']}}\ndefaults:\n  - base\n"
    tree = write(tmp_path, {"project/app/config/main.yaml": main, f"{folder}/base.yaml": "found: 1\n"})
    configuration = compose_hydra(tree, ["project/app/config"], "main", [], environment={"ROOT": "other"})
    assert setting(configuration, "found").value == 1


def test_the_environment_decides_per_launch(tmp_path: Path) -> None:
    text = "defaults:\n  - a: ${oc.env:ENGINE,x}\nv: ${oc.env:BETA,0.5}\n"
    tree = write(tmp_path, {"c/main.yaml": text, "c/a/x.yaml": "is: x\n", "c/a/y.yaml": "is: y\n"})
    for environment, expected in (({}, "x"), ({"ENGINE": "y", "OTHER": "1"}, "y"), ({"OTHER": "2"}, "x")):
        configuration = compose_hydra(tree, ["c"], "main", [], environment=environment)
        assert setting(configuration, "a.is").value == expected
    assert setting(compose_hydra(tree, ["c"], "main", [], environment={"BETA": "2"}), "v").value == "2"
    assert setting(compose_hydra(tree, ["c"], "main", []), "v").value == "0.5"


# --- hostile trees --------------------------------------------------------------------------------------------------------------------


def test_configs_that_include_themselves_are_refused(tmp_path: Path) -> None:
    tree = write(tmp_path, {"c/a.yaml": "defaults:\n  - b\n", "c/b.yaml": "defaults:\n  - a\n  - a\n"})
    assert "includes itself" in str(compose_hydra(tree, ["c"], "a", []).refused)


def test_doubling_includes_are_refused(tmp_path: Path) -> None:
    files = {f"c/f{i}.yaml": f"defaults:\n  - f{i + 1}\n  - f{i + 1}\n" for i in range(40)}
    assert compose_hydra(write(tmp_path, files), ["c"], "f0", []).refused is not None


def test_alias_bombs_stay_small(tmp_path: Path) -> None:
    bomb = "a0: &a0 {x: 1, y: 2}\n" + "".join(
        f"a{i}: &a{i} {{{', '.join(f'k{j}: *a{i - 1}' for j in range(9))}}}\n" for i in range(1, 40)
    )
    tree = write(tmp_path, {"c/main.yaml": "defaults:\n  - bomb\n  - bomb\n", "c/bomb.yaml": bomb})
    configuration = compose_hydra(tree, ["c"], "main", [])
    assert configuration.refused is not None or has_unknown(setting(configuration, "a39").value)
    assert configuration.get("a0.x") is not None
    assert len(list(configuration.names())) <= 5000


@pytest.mark.parametrize(
    "text",
    ["a: [1\n", "- 1\n", "a: \x01\n", "defaults: {a: 1}\n", "defaults: [1]\n", "defaults: [{a: 1, b: 2}]\n", "3\n"],
)
def test_unreadable_configs_are_refused_with_their_place(tmp_path: Path, text: str) -> None:
    tree = write(tmp_path, {"c/main.yaml": "defaults:\n  - bad\n", "c/bad.yaml": text})
    assert compose_hydra(tree, ["c"], "main", []).refused is not None
    assert compose_hydra(tree, ["c"], "bad", []).refused is not None


def test_the_deepest_readable_config_is_composed(tmp_path: Path) -> None:
    deep = "x: " + "{a: " * 190 + "1" + "}" * 190 + "\n"
    tree = write(tmp_path, {"c/main.yaml": f"defaults:\n  - base\n{deep}", "c/base.yaml": deep})
    name = ".".join(["x"] + ["a"] * 190)
    configuration = compose_hydra(tree, ["c"], "main", [f"{name}=2"])
    assert configuration.refused is None
    assert setting(configuration, name).value == 2
    assert has_unknown(setting(configuration, "x").value)  # deeper than a value is shown
