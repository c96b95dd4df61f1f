"""Speed of a scan against its floor and a peer, in one run.

    python -m benchmarks.speed TREE [--peer SEMGREP] [--runs 5]

The floor reads all bytes of the candidates and parses only those that pass the prefilter (ast, PyYAML in C), without any rule, in one
process and in as many as there are cores. The peer is semgrep with one rule for k3 in Python, on the same tree.  Prints a Markdown table:
wall and CPU seconds (median, least), peak memory of the process tree, files a second, ratios.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

FLOOR = """
import ast, gc, os, sys, warnings
import yaml
from klaudit.configuration import Options
from klaudit.discover import list_files, locate
from klaudit.scanner import Scanner
from klaudit.tree import Tree
warnings.simplefilter("ignore")
options = Options()
targets = locate([sys.argv[1]], options)
files = list_files(targets, options).files
scanner = Scanner(Tree(targets.root), files, options)
loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
gc.disable()
count = int(sys.argv[2])
mine = next((at for at in range(1, count) if os.fork() == 0), 0)
for path in sorted(files, key=scanner.tree.size)[mine::count]:
    source = scanner.tree.source(path)
    if source is None or not scanner.may_matter(path, source.data):
        continue
    try:
        if path.endswith(".py"):
            ast.parse(source.data)
        elif path.endswith((".yaml", ".yml")):
            yaml.compose(source.data, Loader=loader)
    except (SyntaxError, ValueError, yaml.YAMLError):
        pass
if mine == 0:
    for _ in range(1, count):
        os.wait()
"""

RULE = """
rules:
  - id: k3
    languages: [python]
    severity: WARNING
    message: k3
    pattern-either:
      - pattern: torch.exp($X) - $X - 1
      - pattern: torch.exp($X) - 1 - $X
      - pattern: ($X).exp() - $X - 1
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tree")
    parser.add_argument("--peer", help="a semgrep executable")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args(arguments)
    tree = str(Path(given.tree).resolve())
    klaudit = [
        sys.executable,
        "-m",
        "klaudit",
        "scan",
        tree,
        "--format",
        "json",
        "--output",
        os.devnull,
        "--fail-on",
        "never",
    ]
    commands = {
        "klaudit scan": klaudit,
        "klaudit scan --jobs 1": [*klaudit, "--jobs", "1"],
        "floor": [sys.executable, "-c", FLOOR, tree, str(os.cpu_count() or 1)],
        "floor, one process": [sys.executable, "-c", FLOOR, tree, "1"],
    }
    with tempfile.TemporaryDirectory() as scratch:
        if given.peer:
            rule = Path(scratch) / "k3.yaml"
            rule.write_text(RULE, encoding="utf-8")
            commands["semgrep, one rule"] = [
                given.peer,
                "scan",
                "--metrics",
                "off",
                "--quiet",
                "--config",
                str(rule),
                tree,
            ]
        rows = {name: measure(command, given.runs) for name, command in commands.items()}
    count = sum(len(files) for _, _, files in os.walk(tree))
    scan = rows["klaudit scan"]
    print(
        f"{Path(tree).name}: {count} files, {given.runs} runs, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n"
    )
    print("| command | wall s (median, least) | CPU s (median) | peak MB | files/s | klaudit's wall as a multiple |")
    print("|---|---|---|---|---|---|")
    for name, (wall, least, cpu, memory) in rows.items():
        print(
            f"| {name} | {wall:.2f}, {least:.2f} | {cpu:.2f} | {memory:.0f} | {count / wall:.0f} | {scan[0] / wall:.2f} |"
        )


def measure(command: Sequence[str], runs: int) -> tuple[float, float, float, float]:
    """Median and least wall seconds, median CPU seconds, and peak MB of a command; one run before to warm the file cache."""
    walls, cpus = [], []
    environment = os.environ | {"SEMGREP_SEND_METRICS": "off", "SEMGREP_ENABLE_VERSION_CHECK": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled once, not in every run
    for run in range(runs + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, check=False)
        wall = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if run:
            walls.append(wall)
            cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(walls), min(walls), statistics.median(cpus), peak_memory(command, environment)


def peak_memory(command: Sequence[str], environment: dict[str, str]) -> float:
    """The largest resident size of any one process of a command, in MB, by a process of its own that has no other children."""
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL);"
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, env=environment, check=True
    )
    return int(done.stdout) / 1024


if __name__ == "__main__":
    main()
