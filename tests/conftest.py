"""What all tests share: Hypothesis without time limits, and the way to data that is not part of the project."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: a loaded machine is no failure. In CI the same examples each time, so that a change is judged by itself.
settings.register_profile("roboyard", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("roboyard")


# A shell that starts the tests in the background has them, and every program they start, pass over Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def external_data() -> Path:
    """The folder named by ROBOYARD_DATA: logs and descriptions by others that tests may read; else they skip."""
    folder = os.environ.get("ROBOYARD_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs data that is not part of the project: set ROBOYARD_DATA to its folder")
    return Path(folder)


@pytest.fixture(autouse=True, scope="session")
def _no_calibrations(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Robots as they come: what their user has calibrated must not change what tests see."""
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))
