"""What the integrations share: one installation, as the action makes it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.integrations.actions_runner import Run
from tests.integrations.fake_github import GitHub
from tests.integrations.scratch import LAUNCH, MODULES, Project, trap


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Run, dict[str, str]]:
    """One run of the whole action, installation included, among files that want to be taken for modules; its Python serves the others."""
    folder = tmp_path_factory.mktemp("github")
    old = {f"{name}.py": trap(folder) for name in MODULES}
    run, outputs = Project(folder, {"old.sh": LAUNCH, **old}, {"new.sh": "# new\n" + LAUNCH}).run(None)
    return run.step("Install klaudit").outputs["python"], run, outputs


@pytest.fixture
def github() -> Iterator[GitHub]:
    server = GitHub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
