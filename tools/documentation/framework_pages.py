"""A page for every framework: what starts it, settings and defaults by version, what is done with them, recipes, sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from documentation.conditions import value, when
from documentation.markdown import code, prose, table
from documentation.trainer_terms import faults, recipes, terms
from klaudit.frameworks.load import load_frameworks
from klaudit.frameworks.rules import Case, Default, Framework, Name, SettingSpec, Trainer, Vocabulary


def pages() -> dict[str, str]:
    """Markdown by path."""
    known = load_frameworks()
    return {"frameworks/index.md": _index(known), **{path_of(each): "\n".join(_page(each)) for each in known}}


def path_of(framework: Framework) -> str:
    return f"frameworks/{framework.id}.md"


def _index(known: Iterable[Framework]) -> str:
    rows = [
        (
            f"[{prose(each.title)}]({each.id}.md)",
            code(each.id),
            _releases(each),
            prose(", ".join(t.title or t.id for t in each.trainers)),
        )
        for each in known
    ]
    return (
        "# Frameworks\n\n"
        "What klaudit knows of each framework is data, one file in `rules/frameworks`, each fact with its range of versions and "
        "where the framework's own source says it. These pages are made from those files. Which version a repository uses is found "
        "out from the source in the tree, lock files and requirements; [a framework of your own](../extending.md) is one more such "
        "file.\n\n" + table(("framework", "id", "versions", "trainers"), rows)
    )


def _page(framework: Framework) -> Iterator[str]:
    yield f"# {prose(framework.title)}\n"
    facts = [
        ("id", code(framework.id)),
        ("repository", f"<{framework.repository}>" if framework.repository else ""),
        ("packages", ", ".join(map(code, framework.distributions))),
        ("versions known", prose(", ".join(framework.release_names))),
        ("a fork of", code(framework.derived_from) if framework.derived_from else ""),
        ("known by these files in a tree", ", ".join(map(code, framework.vendored.markers))),
    ]
    yield "".join(f"- {name}: {told}\n" for name, told in facts if told)
    yield "Versions are in the order of PEP 440; where no range is given a fact holds for all of them.\n"
    for trainer in framework.trainers:
        yield from _trainer(trainer)
    if framework.never_existed:
        yield "## What never existed {: #never-existed }\n"
        yield "Found in guides, but in no release:\n"
        rows = [
            (", ".join(map(code, n.symbols)), ", ".join(map(code, n.keywords)), prose(n.instead))
            for n in framework.never_existed
        ]
        yield table(("name", "called with", "what there is"), rows)


def _trainer(trainer: Trainer) -> Iterator[str]:
    anchor = trainer.id
    yield f"## {prose(trainer.title or trainer.id)} {{: #{anchor} }}\n"
    yield from _section("What starts it", f"{anchor}-starts", _starts(trainer))
    yield from _section("Configurations that are known by their keys", f"{anchor}-configs", _configs(trainer))
    yield from _section("Classes", f"{anchor}-classes", _classes(trainer))
    yield from _section("Settings", f"{anchor}-settings", _settings(trainer))
    for vocabulary in trainer.vocabularies.values():
        anchor_of = f"{anchor}-words-{vocabulary.id}"
        yield from _section(f"Words of {vocabulary.id}", anchor_of, _words(vocabulary, trainer))
    yield from _section("What is done with them", f"{anchor}-terms", terms(trainer))
    yield from _section("What it refuses, or does not do", f"{anchor}-faults", faults(trainer))
    yield from _section("Recipes", f"{anchor}-recipes", recipes(trainer))


def _section(title: str, anchor: str, content: str) -> Iterator[str]:
    if content.strip():
        yield f"### {title} {{: #{anchor} }}\n"
        yield content


def _starts(trainer: Trainer) -> str:
    rows = []
    for point in trainer.entry_points:
        started = [*point.modules, *point.scripts, *(" ".join(program) for program in point.programs)]
        own = [f"a script of its own that uses {code(name)}" for name in point.uses]
        rows.append(
            (
                "<br>".join([*map(code, started), *own]),
                point.system,
                code(f"{point.folder}/{point.config}" if point.folder else point.config) if point.config else "",
                when(point.when, point.versions, trainer),
                _source(point),
            )
        )
    return table(("started", "configured by", "its config", "when", "source"), rows)


def _configs(trainer: Trainer) -> str:
    rows = (
        (
            "<br>".join(map(code, c.all_of)),
            "<br>".join(map(code, c.any_of)),
            "<br>".join(map(code, c.none_of)),
            when(c.when, c.versions, trainer),
        )
        for c in trainer.config_files
    )
    return table(("all of these keys", "any of these", "none of these", "when"), rows)


def _classes(trainer: Trainer) -> str:
    rows = (("<br>".join(map(code, c.names)), when(c.when, c.versions, trainer)) for c in trainer.classes)
    return table(("class", "when"), rows)


def _settings(trainer: Trainer) -> str:
    rows = (
        (
            "<br>".join(_spelling(name, trainer) for name in spec.names) or code(spec.id),
            "<br>".join(_default(default, trainer) for default in spec.defaults),
            _values(spec, trainer),
            prose(spec.summary),
            "<br>".join(dict.fromkeys(filter(None, (prose(spec.source), *(_source(d) for d in spec.defaults))))),
        )
        for spec in trainer.settings.values()
    )
    return table(("setting", "default", "values", "what it does", "source"), rows)


def _words(vocabulary: Vocabulary, trainer: Trainer) -> str:
    rows = (
        (
            value(word.value),
            prose(word.estimator),
            prose(word.gradient or ""),
            when(word.when, word.versions, trainer),
            code(word.raises) if word.raises else "",
            prose(word.why),
            prose(word.source),
        )
        for word in vocabulary.words
    )
    told = table(("word", "estimator", "gradient", "when", "raises", "why", "source"), rows)
    if not vocabulary.otherwise_raises:
        return told
    why = f" ({prose(vocabulary.otherwise_why)})" if vocabulary.otherwise_why else ""
    return f"{told}\nAny other word raises {code(vocabulary.otherwise_raises)}{why}.\n"


def _spelling(name: Name, trainer: Trainer) -> str:
    gone = f", now {code(name.replaced_by)}" if name.replaced_by else ""
    told = ", ".join(filter(None, (when(name.when, name.versions, trainer), prose(name.why))))
    return code(name.name) + (f" ({told}{gone})" if told or gone else "")


def _default(default: Default, trainer: Trainer) -> str:
    config = f"in {', '.join(map(code, default.config))}" if default.config else ""
    fixed = "cannot be set" if default.fixed else ""
    told = ", ".join(filter(None, (config, when(default.when, default.versions, trainer), fixed, prose(default.why))))
    return value(default.value) + (f" ({told})" if told else "")


def _values(spec: SettingSpec, trainer: Trainer) -> str:
    if spec.vocabulary:
        return f"[words of {prose(spec.vocabulary)}](#{trainer.id}-words-{spec.vocabulary})"
    return ", ".join(map(value, spec.choices)) or ("" if spec.type == "any" else spec.type)


def _source(fact: Case) -> str:
    return prose(fact.source)


def _releases(framework: Framework) -> str:
    names = framework.release_names
    return prose(f"{names[0]} to {names[-1]}" if len(names) > 1 else "".join(names))
