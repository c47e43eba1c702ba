"""What all tests share: Hypothesis' profiles, which files are read, and where external data lies."""

import gc
import os
import signal
from pathlib import Path

import pytest
from tests.harness.profiles import pytest_collection_modifyitems, register_profiles

__all__ = ["pytest_collection_modifyitems"]

register_profiles()
# Collections over the many objects of the compiler and of collected tests took an eighth of the tests' CPU time.
gc.set_threshold(50_000, 20, 50)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a slow test where only those are asked for: each worker imports all that it reads."""
    if config.option.markexpr != "slow" or not collection_path.name.startswith("test_"):
        return None
    return True if "mark.slow" not in collection_path.read_text("utf-8") else None


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
