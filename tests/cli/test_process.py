"""The command as a process: start-up, pipes, signals, terminals and encodings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

STUB = """
import sys, types
from klaudit.model import *
from klaudit.cli import main
import klaudit
place = Span("caf\\u00e9-\\u5956\\u52b1.sh", 0, 1, 1, 1, 1, 2)
finding = Finding("KLA101", "k3-in-loss", "warning", "high", place, "\\u5956", "why", Fix("none", ""))
def scan(paths, options, progress=None):
    {body}
    return Report((), (finding,) * {count}, (), 1, 1, 0.0)
engine = types.ModuleType("klaudit.engine")
engine.scan = scan
sys.modules["klaudit.engine"] = klaudit.engine = engine
sys.argv = ["klaudit", *{arguments!r}]
sys.exit(main())
"""


def start(*arguments: str, body: str = "pass", count: int = 1, **environment: str) -> subprocess.Popen[bytes]:
    script = STUB.format(body=body, count=count, arguments=arguments)
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**_environment(), **environment},
    )


def _environment() -> dict[str, str]:
    dropped = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONIOENCODING", "PYTHONUTF8")
    return {name: value for name, value in os.environ.items() if name not in dropped}


def test_the_version_needs_nothing_heavy() -> None:
    script = """
        import sys
        sys.argv = ["klaudit", "--version"]
        from klaudit.cli import main
        assert main() == 0
        print([name for name in ("klaudit.model", "yaml", "rich", "libcst", "pathspec", "packaging", "tomllib") if name in sys.modules])
        print(sorted(name for name in sys.modules if name.startswith("klaudit")))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True, timeout=20
    )
    version, heavy, own = done.stdout.splitlines()
    assert version.startswith("klaudit ")
    assert heavy == "[]"
    assert own == "['klaudit', 'klaudit.cli', 'klaudit.cli.group', 'klaudit.errors']"


def test_a_quiet_scan_in_a_pipe_does_without_rich() -> None:
    process = start("scan", body="import atexit; atexit.register(lambda: print('rich' in sys.modules))")
    assert process.communicate(timeout=20)[0].splitlines()[-1] == b"False"


def test_the_module_and_the_script_are_the_same_command() -> None:
    script = Path(sys.executable).parent / ("klaudit.exe" if os.name == "nt" else "klaudit")
    if not script.exists():
        pytest.skip("klaudit is not installed beside this Python")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout.startswith("klaudit ")


@pytest.mark.parametrize("arguments", [("scan",), ("scan", "--format", "json"), ("scan", "--quiet")])
def test_a_reader_that_leaves_is_not_missed(arguments: tuple[str, ...]) -> None:
    process = start(*arguments, "--fail-on", "never", count=20_000)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    complaints = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=20) == 0
    assert complaints == b""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_an_interrupt_ends_with_130_and_no_traceback() -> None:
    process = start("scan", body="import time; print('ready', flush=True); time.sleep(30)")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in complaints


@pytest.mark.parametrize(
    ("encoding", "path", "message"),
    [
        ("utf-8", "café-奖励.sh", "奖"),
        ("cp1252", "café-\\u5956\\u52b1.sh", "\\u5956"),
        ("ascii", "caf\\xe9-\\u5956\\u52b1.sh", "\\u5956"),
    ],
)
def test_what_an_encoding_lacks_is_escaped(encoding: str, path: str, message: str) -> None:
    for arguments in (("scan",), ("scan", "--quiet"), ("scan", "--format", "json")):
        out, err = start(*arguments, PYTHONIOENCODING=encoding).communicate(timeout=20)
        assert err == b""
        if "json" not in arguments:
            assert out.decode(encoding).startswith(f"{path}:1:1 KLA101 k3-in-loss [warning] {message}")


pty = pytest.importorskip("pty", reason="needs pseudo-terminals")


def on_a_terminal(*arguments: str, body: str = "pass", **environment: str) -> str:
    """What a terminal of 60 columns gets to see."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    script = STUB.format(body=body, count=1, arguments=arguments)
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**_environment(), "TERM": "xterm", **environment},
    )
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    assert process.wait(timeout=20) == 1
    return seen.decode()


def test_a_terminal_gets_colours_and_its_own_width() -> None:
    seen = on_a_terminal("scan", "--verbose")
    assert "\x1b[" in seen
    assert "\x1b[" not in on_a_terminal("scan", NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal("scan", TERM="dumb")
    assert "\x1b[" not in on_a_terminal("scan", "--color", "never")


def test_a_long_scan_shows_its_progress_and_a_short_one_does_not() -> None:
    slow = "import time; time.sleep(0.75); progress(1, 3); time.sleep(0.2); progress(2, 3); progress(3, 3)"
    assert "1/3" in on_a_terminal("scan", body=slow)
    quick = "progress(1, 3); progress(2, 3); progress(3, 3)"
    assert "/3" not in on_a_terminal("scan", body=quick)
    assert "/3" not in on_a_terminal("scan", "--quiet", body="assert progress is None")


def test_a_pipe_never_gets_a_progress_bar() -> None:
    out, err = start("scan", body="assert progress is None").communicate(timeout=20)
    assert b"KLA101" in out
    assert err == b""
