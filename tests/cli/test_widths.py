"""No line of any command is longer than a terminal of 80 columns, so that none is broken inside a word."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from cuanto.cli.main import app, run

WIDTH = 80
WATER = str(files("cuanto") / "data" / "molecules" / "water.xyz")
DIMER = (
    "6\nwater dimer\nO -1.551007 -0.114520 0\nH -1.934259 0.762503 0\nH -0.599677 0.040712 0\n"
    "O 1.350625 0.111469 0\nH 1.680398 -0.373741 -0.758561\nH 1.680398 -0.373741 0.758561\n"
)
CALCULATIONS = (
    "energy water.xyz -m b3lyp -b sto-3g -v",
    "energy water.xyz -m uhf -b def2-svp --charge 1",
    "energy water.xyz dimer.xyz -m pm6",
    "energy water.xyz dimer.xyz -m pm6 --out table.csv -v",
    "energy dimer.xyz --counterpoise 3,3 -b sto-3g -v",
    "gradient water.xyz -m pbe -b sto-3g -v",
    "optimize water.xyz -m hf -b sto-3g -v",
    "optimize water.xyz -m pm6 --scan 'distance 1 2 0.9 1.1 3'",
    "md water.xyz -m pm6 --steps 2 -v",
    "md water.xyz -m pm6 --steps 3 --thermostat langevin --trajectory other.xyz",
    "frequencies water.xyz -m pm6 -v",
    "atom --element Ne -v",
    "atom --element Rn -o max_iterations=1",
    pytest.param("basis-search -e He --size 6 --threshold 1e-2 --workers 0", marks=pytest.mark.slow),
    "integrals water.xyz -b def2-svp",
    "selftest",
    "doctor",
    "cache",
    "functionals",
    "functionals cam-b3lyp",
    "run --template",
)
COMMANDS = sorted({command.name for command in app.registered_commands if not command.hidden and command.name})


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with molecules, and a terminal for everything that is printed."""
    monkeypatch.chdir(tmp_path)
    Path("water.xyz").write_text(Path(WATER).read_text())
    Path("dimer.xyz").write_text(DIMER)
    for name, value in {"TTY_COMPATIBLE": "1", "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    level = logging.getLogger().level
    yield
    logging.getLogger().setLevel(level)


def text_of(command: str, capfd: pytest.CaptureFixture[str]) -> str:
    """What a command prints, without the codes that move the cursor and change colours."""
    with pytest.raises(SystemExit), pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.getLogger(), "handlers", [])  # with those of pytest, -v would print nothing
        run(shlex.split(command))
    text = "".join(capfd.readouterr())
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r\n", "\n")


def printed(command: str, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """Lines as a terminal shows them; after a carriage return they begin anew."""
    text = text_of(command, capfd)
    return [line.rsplit("\r", 1)[-1].rstrip() for line in text.split("\n")]


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("command", CALCULATIONS)
def test_no_line_is_longer_than_the_terminal(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    lines = printed(command, capfd)
    assert "-b sto-3g -v" not in command or any(line.startswith("density fitting: in-core") for line in lines)
    assert len(lines) > 1 and not [line for line in lines if len(line) > WIDTH]


@pytest.mark.usefixtures("terminal")
def test_the_log_is_above_the_live_table(capfd: pytest.CaptureFixture[str]) -> None:
    """Every message begins a line."""
    text = text_of("energy water.xyz -m b3lyp -b sto-3g -v", capfd)
    steps = "one-electron integrals|metric|three-centre integrals|guess|grid|exchange-correlation"
    found = re.findall(rf"(.?)(?:{steps}): [\d.]+ s", text, flags=re.DOTALL)
    assert len(found) > 3 and set(found) <= {"\n", "\r"}


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_of_help_is_longer_than_the_terminal(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert not [line for line in printed(f"{command} --help", capfd) if len(line) > WIDTH]
