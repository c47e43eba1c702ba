"""What the doctor says about a machine is what is there."""

from pathlib import Path

import pytest
from tests.cli.conftest import Command

from roboyard.cli import health


def findings(command: Command) -> dict[str, dict[str, object]]:
    return {item["what"]: item for item in command("doctor", "--json").json["findings"]}


def test_everything_a_user_needs_is_looked_at(command: Command) -> None:
    found = findings(command)
    assert {"python", "packages", "lock", "extras", "cores", "kernels", "pictures", "video", "disk"} <= set(found)
    assert found["python"]["good"] is True
    out = command("doctor").out
    assert all(what in out for what in found)


def test_a_lock_that_differs_is_named(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Agrees exactly when every package that is installed and in the lock has the version there."""
    from roboyard.scenarios.provenance import closure

    installed = closure("roboyard")
    package = tmp_path / "src" / "roboyard"
    package.mkdir(parents=True)
    monkeypatch.setattr(health.roboyard, "__file__", str(package / "__init__.py"))
    lock = tmp_path / "requirements.lock"
    assert health._lock().good is None
    lock.write_text("".join(f"{name.replace('-', '_')}=={version}\n" for name, version in installed.items()))
    assert health._lock().good is True
    lock.write_text("".join(f"{name}=={version}\n" for name, version in {**installed, "numpy": "0.1"}.items()))
    finding = health._lock()
    assert finding.good is None
    assert f"numpy {installed['numpy']} (tested: 0.1)" in finding.text


def test_kernels_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    assert "none compiled yet" in health._kernels().text
    for name in ("roboyard.a.one-0", "roboyard.a.one-1", "roboyard.a.two-0", "other.a.one-0"):
        (tmp_path / "kernels" / name).mkdir(parents=True)
        (tmp_path / "kernels" / name / "code.nbi").touch()
    finding = health._kernels()
    assert (finding.good, finding.text.split()[0]) == (True, "2")


def test_one_look_that_fails_does_not_end_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> health.Finding:
        raise OSError("broken")

    monkeypatch.setattr(health, "_video", broken)
    found = health.examine()
    assert [item.text for item in found if item.good is False and item.what == "broken"] == ["broken"]
    assert len(found) > 8
