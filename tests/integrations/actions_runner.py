"""As much of GitHub's runner as our action and workflow use: expressions, environment files, bash with its flags, workflow commands."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_TOKEN = re.compile(r"\s*(?:(&&|\|\||==|!=|!|\(|\))|'([^']*)'|([\w.-]+)(\(\))?)")
_COMMANDS_V1 = ("add-mask", "add-path", "debug", "error", "warning", "notice", "group", "endgroup", "save-state", "set-env", "set-output", "echo")  # fmt: skip


@dataclass
class Step:
    """What became of one step."""

    name: str
    outcome: str
    log: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    uses: str = ""
    given: dict[str, str] = field(default_factory=dict)

    @property
    def commands(self) -> list[tuple[str, dict[str, str], str]]:
        return commands(self.log)


@dataclass
class Run:
    """One run of a job's or an action's steps in a checkout."""

    workspace: Path
    temp: Path
    github: Mapping[str, Any]
    inputs: Mapping[str, str]
    action_path: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    replaced: dict[str, Step] = field(default_factory=dict)  # steps by name, and what is to be taken for their outcome
    steps: list[Step] = field(default_factory=list)
    failed: bool = False

    def action(self, file: Path) -> dict[str, str]:
        """Runs a composite action.  Returns its outputs."""
        definition = yaml.safe_load(file.read_text(encoding="utf-8"))
        assert set(self.inputs) <= set(definition["inputs"])
        self.inputs = {name: self.inputs.get(name, each["default"]) for name, each in definition["inputs"].items()}
        self.run(definition["runs"]["steps"])
        return {name: self.text(each["value"]) for name, each in definition["outputs"].items()}

    def run(self, steps: list[dict[str, Any]]) -> None:
        self._ids: dict[str, Step] = {}
        for step in steps:
            condition = str(step.get("if", "success()"))
            condition = match[1] if (match := _EXPRESSION.fullmatch(condition.strip())) else condition
            implied = "" if re.search(r"(success|failure|always|cancelled)\(\)", condition) else "success() && "
            name = step.get("name", step.get("uses", ""))
            if not _truth(self._value(f"{implied}({condition})")):
                done = Step(name, "skipped")
            elif name in self.replaced:
                done = self.replaced[name]
            elif "uses" in step:
                given = {key: self.text(str(value)) for key, value in step.get("with", {}).items()}
                done = Step(name, "success", uses=step["uses"], given=given)
            else:
                done = self._shell(name, step)
                self.failed |= done.outcome == "failure" and not step.get("continue-on-error")
            self.steps.append(done)
            self._ids[step.get("id", name)] = done

    def step(self, name: str) -> Step:
        return next(each for each in self.steps if each.name == name)

    # --- a script ------------------------------------------------------------------------------------------------------------------

    def _shell(self, name: str, step: dict[str, Any]) -> Step:
        assert "${{" not in step["run"], "an expression in a script can become a command"
        number = len(self.steps)
        files = {
            key: self.temp / f"{key.lower()}_{number}"
            for key in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")
        }
        for file in files.values():
            file.write_text("", encoding="utf-8")
        script = self.temp / f"script_{number}.sh"
        script.write_text(step["run"], encoding="utf-8")
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "PYTHON", "KLAUDIT"))},
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_REPOSITORY": str(self.github.get("repository", "octo/project")),
            **({"GITHUB_ACTION_PATH": str(self.action_path)} if self.action_path else {}),
            **self.environment,
            **{key: str(value) for key, value in files.items()},
            **{key: self.text(str(value)) for key, value in step.get("env", {}).items()},
        }
        done = subprocess.run(
            [*SHELL, str(script)],
            cwd=self.workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=300,
        )
        assert not files["GITHUB_ENV"].read_text(encoding="utf-8") and not files["GITHUB_PATH"].read_text(
            encoding="utf-8"
        )
        return Step(
            name,
            "failure" if done.returncode else "success",
            done.stdout.decode("utf-8", "replace"),
            _key_values(files["GITHUB_OUTPUT"].read_text(encoding="utf-8")),
            files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8"),
        )

    # --- expressions -----------------------------------------------------------------------------------------------------------------

    def text(self, value: str) -> str:
        return _EXPRESSION.sub(lambda match: _string(self._value(match[1])), value)

    def _value(self, expression: str) -> Any:
        self._tokens = list(_TOKEN.finditer(expression))
        assert "".join(match[0] for match in self._tokens) == expression.rstrip(), expression
        value = self._or()
        assert not self._tokens, expression
        return value

    def _or(self) -> Any:
        value = self._and()
        while self._take("||"):
            right = self._and()
            value = value if _truth(value) else right
        return value

    def _and(self) -> Any:
        value = self._equal()
        while self._take("&&"):
            right = self._equal()
            value = right if _truth(value) else value
        return value

    def _equal(self) -> Any:
        value = self._atom()
        for operator in ("==", "!="):
            if self._take(operator):
                return (_string(value).lower() == _string(self._atom()).lower()) == (operator == "==")
        return value

    def _atom(self) -> Any:
        token = self._tokens.pop(0)
        if token[1] == "!":
            return not _truth(self._atom())
        if token[1] == "(":
            value = self._or()
            assert self._take(")")
            return value
        if token[2] is not None:
            return token[2]
        if token[4]:
            return {"success": not self.failed, "failure": self.failed, "always": True, "cancelled": False}[token[3]]
        return self._lookup(token[3])

    def _take(self, operator: str) -> bool:
        if self._tokens and self._tokens[0][1] == operator:
            self._tokens.pop(0)
            return True
        return False

    def _lookup(self, name: str) -> Any:
        steps = {key: {"outputs": step.outputs, "outcome": step.outcome} for key, step in self._ids.items()}
        found: Any = {"inputs": self.inputs, "github": self.github, "steps": steps, "runner": {"temp": str(self.temp)}}
        assert name.partition(".")[0] in found, f"unknown context {name}"
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        return found


def commands(log: str) -> list[tuple[str, dict[str, str], str]]:
    """The lines that the runner obeys: `::name key=value::text` at the start of a line, the old `##[name key=value]text` anywhere."""
    found: list[tuple[str, dict[str, str], str]] = []
    token: str | None = None
    for line in log.splitlines():
        match = re.match(r"\s*::([\w-]+)(?: ([^:]*(?::(?!:)[^:]*)*))?::(.*)", line)
        if match is None:
            match = re.search(rf"##\[({'|'.join(_COMMANDS_V1)})(?: ([^\]]*))?\](.*)", line)
        if token is not None:
            if line.strip() == f"::{token}::":
                token = None
            continue
        if match is None:
            continue
        if match[1] == "stop-commands":
            token = match[3]
            continue
        pairs = [pair.partition("=") for pair in (match[2] or "").split(",") if pair]
        found.append((match[1], {key.strip(): _plain(value) for key, _, value in pairs}, _plain(match[3])))
    assert token is None, "commands were never taken up again"
    return found


def _plain(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


def _key_values(text: str) -> dict[str, str]:
    """`name=value`, and `name<<END` with a value over lines."""
    values: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        if match := re.fullmatch(r"([\w-]+)<<(.+)", line):
            value = []
            for inner in lines:
                if inner == match[2]:
                    break
                value.append(inner)
            values[match[1]] = "\n".join(value)
        elif line:
            name, _, value_of = line.partition("=")
            values[name] = value_of
    return values


def _truth(value: Any) -> bool:
    return value not in (None, False, "", 0)


def _string(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
