"""`cuanto md` and `cuanto ipi`: a line for every step, runs that survive kill -9, and clear errors."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cuanto.cli.main import run
from cuanto.cli.md import HEADING, step_line
from cuanto.motion.dynamics import Step
from cuanto.motion.trajectory import Trajectory

WATER = "3\n\nO 0 0 0.1\nH 0 0.75 -0.5\nH 0 -0.75 -0.5\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "water.xyz").write_text(WATER)
    return tmp_path


def cuanto(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        run(list(arguments))
    return int(stopped.value.code or 0)


def test_steps_are_printed_and_a_run_continues(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("md", "water.xyz", "-m", "pm6", "--backend", "cpu", "--every", "2")
    assert cuanto(*command, "--steps", "4") == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[2:5]] == ["0", "2", "4"]
    assert printed[-1] == "trajectory: water_md.xyz"
    assert cuanto(*command, "--steps", "6") == 0
    assert "continuing water_md.xyz after step 4" in capsys.readouterr().out
    assert len(list(Trajectory("water_md.xyz").frames())) == 4
    assert cuanto(*command, "--steps", "6") == 0
    assert "6 steps already" in capsys.readouterr().out


def test_an_interrupted_run_says_how_to_continue(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(step: Step) -> str:
        if step.number == 2:
            raise KeyboardInterrupt
        return step_line(step)

    monkeypatch.setattr("cuanto.cli.md.step_line", interrupt)
    command = ("md", "water.xyz", "-m", "pm6", "--backend", "cpu", "--steps", "3")
    assert cuanto(*command) == 130
    out, err = capsys.readouterr()
    assert out.endswith("run the same command to continue water_md.xyz\n") and "interrupted" in err
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert cuanto(*command) == 0
    assert "continuing water_md.xyz after step 2" in capsys.readouterr().out


def test_columns_are_as_wide_as_their_headings_and_never_touch() -> None:
    usual = Step(100_000, 50_000.0, -12_345.123456789, 123.123456, 300.0, -12_344.123456789, 12)
    assert [len(line) for line in (HEADING.splitlines()[0], step_line(usual))] == [80, 80]
    large = Step(200_000_000, 100_000_000.0, -1_234_567.123456789, 12_345.123456, 30_000.5, -1_234_567.0, 100)
    for step in (usual, large):
        assert len(step_line(step).split()) == 7


def test_a_killed_run_loses_only_its_last_step(folder: Path) -> None:
    """kill -9 at ten random moments of a trajectory: no step is missing or repeated."""
    command = [sys.executable, "-m", "cuanto", "md", "water.xyz", "-m", "pm6", "--backend", "cpu", "-q", "--steps"]
    rng, done, state = random.Random(1), -1, Path("water_md.xyz.state")
    for _ in range(10):
        with subprocess.Popen([*command, "1000000"], stdout=subprocess.DEVNULL) as process:
            while (step_of(state) if state.exists() else -1) <= done:
                assert process.poll() is None
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.05))
            os.kill(process.pid, signal.SIGKILL)
        done = step_of(state)
    subprocess.run([*command, str(done + 3)], check=True, stdout=subprocess.DEVNULL)
    frames = list(Trajectory("water_md.xyz").frames())
    assert [int(value(frame, "step")) for frame in frames] == list(range(done + 4))
    energies = [float(value(frame, "energy")) for frame in frames]
    assert np.abs(np.diff(energies)).max() < 0.05


def step_of(state: Path) -> int:
    """The last step that is on the disk."""
    return int(json.loads(state.read_text())["step"])


def value(frame: str, name: str) -> str:
    """A value of the comment line."""
    return frame.split(f"{name}=")[1].split()[0]


@pytest.mark.parametrize(
    "arguments",
    [
        ("md", "water.xyz", "-m", "pm6", "--timestep", "0"),
        ("md", "water.xyz", "-m", "pm6", "--trajectory", "water.xyz"),
        ("md", "nobody.xyz", "-m", "pm6"),
        ("ipi", "water.xyz", "-m", "pm6", "--unix", "a", "--port", "3"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    folder: Path, arguments: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    assert cuanto(*arguments) == 2
    assert len(capfd.readouterr().err.strip().splitlines()) == 1
