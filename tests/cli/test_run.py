"""``cuanto run job.toml``: known keys only, paths inside the folder of the job, one-line errors."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from cuanto.cli.main import run
from cuanto.cli.run import job_template, read_job
from cuanto.errors import InputError
from cuanto.interfaces.vibrations import read_hessian
from fitting_cases import DATA

H2 = "2\n\nH 0 0 0\nH 0 0 0.74\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for jobs. Its parent folder also has a molecule, and the working directory is elsewhere."""
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    (tmp_path / "outside.xyz").write_text(H2)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    folder = tmp_path / "jobs"
    folder.mkdir()
    (folder / "h2.xyz").write_text(H2)
    return folder


def status_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        run(("run", *arguments))
    code = stopped.value.code
    return 0 if code is None else int(code)


def write_job(folder: Path, text: str) -> Path:
    path = folder / "job.toml"
    path.write_text(text)
    return path


def test_a_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'molecule = "h2.xyz"\nmethod = "rhf"\nbasis = "sto-3g"\nbackend = "cpu"\nfitting = "none"\n'
    text += '[options]\nmax_iterations = 20\n[output]\njson = "{name}.json"\nmolden = "orbitals.molden"\n'
    assert status_of(str(write_job(folder, text))) == 0
    assert "converged in" in capsys.readouterr().out
    schema = json.loads((folder / "h2.json").read_text())
    assert schema["return_result"] == pytest.approx(-1.1167593, abs=1e-6)
    assert schema["keywords"] == {"fitting": "none", "max_iterations": 20}
    assert (folder / "orbitals.molden").is_file()


def test_the_template_is_a_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--template") == 0
    shown = capsys.readouterr().out
    assert shown == job_template()
    everything = re.sub(r"^# (?=\w+ = )", "", shown, flags=re.MULTILINE)
    assert "restart" in tomllib.loads(everything) and "restart" not in tomllib.loads(shown)
    request = read_job(write_job(folder, everything))
    assert request.method == "b3lyp" and request.keywords["grid"] == "fine" and "report" in request.outputs


def test_frequencies_in_a_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'molecule = "h2.xyz"\ntask = "frequencies"\nmethod = "pm6"\n'
    text += '[frequencies]\ntemperature = 350\nisotopes = {2 = "D"}\n[output]\njson = "{name}.json"\n'
    assert status_of(str(write_job(folder, text))) == 0
    assert "350" in capsys.readouterr().out
    assert json.loads((folder / "h2.json").read_text())["driver"] == "hessian"
    assert sorted(path.name for path in folder.iterdir()) == ["h2.json", "h2.xyz", "h2_hessian.json", "job.toml"]
    assert list(read_hessian(folder / "h2_hessian.json").masses) == pytest.approx([1.008, 2.014], abs=1e-3)
    assert status_of(str(write_job(folder, text.replace('{2 = "D"}', '"H=D"'))), "-q") == 0
    assert list(read_hessian(folder / "h2_hessian.json").masses) == pytest.approx([2.014] * 2, abs=1e-3)


def test_dynamics_in_a_job_continue(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'molecule = "h2.xyz"\ntask = "md"\nmethod = "pm6"\n[md]\nsteps = 2\nthermostat = "langevin"\n'
    assert status_of(str(write_job(folder, text))) == 0
    frames = (folder / "h2_md.xyz").read_text()
    assert frames.count("Properties") == 3
    assert status_of(str(write_job(folder, text.replace("steps = 2", "steps = 3")))) == 0
    assert "continuing" in capsys.readouterr().out
    assert (folder / "h2_md.xyz").read_text().startswith(frames)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("molecule = ", "is not valid TOML"),
        ("", "name the molecule"),
        ('molecule = "h2.xyz"\nmetod = "hf"', "unknown key 'metod'; did you mean 'method'?"),
        ('molecule = "h2.xyz"\n[options]\nmax_iter = 3', "[options]: unknown key 'max_iter'; did you mean"),
        (
            'molecule = "h2.xyz"\nmax_iterations = 3',
            "unknown key 'max_iterations'; it belongs in a table: write it after a line [options]",
        ),
        ('molecule = "h2.xyz"\nmax_steps = 3', "unknown key 'max_steps'; it belongs in a table: write it after"),
        ('molecule = "h2.xyz"\ntemperature = 300', "write it after a line [frequencies] or [md]"),
        ('molecule = "h2.xyz"\njson = "a.json"', "write it after a line [output]"),
        (
            'molecule = "h2.xyz"\n[options]\nfitting = "none"',
            "[options]: unknown key 'fitting'; it belongs in no table",
        ),
        ('molecule = "h2.xyz"\n[output]\nhtml = "a"', "[output]: unknown key 'html'"),
        ('molecule = "h2.xyz"\noptions = 3', "write [options] on a line of its own"),
        ('molecule = "h2.xyz"\ncharge = "1"', "charge must be a whole number"),
        ('molecule = "h2.xyz"\nmethod = 3', "method must be text"),
        ('molecule = "h2.xyz"\nfitting = true', "fitting must be text"),
        ('molecule = "h2.xyz"\n[options]\ndamping = 2.0', "damping is 2"),
        ('molecule = "h2.xyz"\nfield = "strong"', "field"),
        ('molecule = "nowhere.xyz"', "does not exist"),
        ('molecule = "-"', "standard input"),
        ('molecule = "h2.xyz"\nmethod = ""', "the method is empty"),
        ('molecule = "h2.xyz"\nbasis = ""', "the basis is empty"),
        ('molecule = "h2.xyz"\npoint_charges = [[1, 2]]', "point_charges must be two lists"),
        ('molecule = "h2.xyz"\n[output]\njson = "-"', "a job writes files"),
        ('molecule = "h2.xyz"\n[output]\njson = "job.toml"', "would overwrite the input"),
        ('molecule = "h2.xyz"\n[output]\nreport = "{name}.xyz"', "would overwrite the input"),
        ('molecule = "../outside.xyz"', "is outside the folder of the job"),
        ('molecule = "/etc/passwd"', "is outside the folder of the job"),
        ('molecule = "link.xyz"', "is outside the folder of the job"),
        ('molecule = "h2.xyz"\n[output]\njson = "../a.json"', "is outside the folder of the job"),
        ('molecule = "h2.xyz"\n[output]\njson = "x/../../a.json"', "is outside the folder of the job"),
        ('molecule = "h2.xyz"\n[output]\ncheckpoint = "/tmp/a.h5"', "is outside the folder of the job"),
        ('molecule = "h2.xyz"\nrestart = "../a.h5"', "is outside the folder of the job"),
        ('molecule = "h2.xyz"\nbasis = "../../secret"', "is outside the folder of the job"),
        ('molecule = "h2.xyz"\nbasis = "/etc/set.nw"', "is outside the folder of the job"),
        ('molecule = "h2.xyz"\nauxbasis = "../set.nw"', "is outside the folder of the job"),
        ('molecule = "h2.xyz"\nbasis = "; rm -rf ~"', "unknown basis"),
        ('molecule = "h2.xyz"\n[output]\njson = "no/such/folder.json"', "does not exist"),
        ('molecule = "h2.xyz"\ntask = "frequency"', "choose energy, gradient, optimize, frequencies, md"),
        ('molecule = "h2.xyz"\n[md]\nsteps = 3', "settings of another task"),
        ('molecule = "h2.xyz"\ntask = "md"\n[md]\nstep = 3', "[md]: unknown key 'step'; did you mean 'steps'?"),
        ('molecule = "h2.xyz"\ntask = "md"\n[md]\nsteps = 0', "steps must be at least 1"),
        ('molecule = "h2.xyz"\ntask = "md"\n[md]\nthermostat = "oven"', "unknown thermostat"),
        ('molecule = ["h2.xyz", "h2.xyz"]\ntask = "md"', "dynamics is for one molecule"),
        ('molecule = "h2.xyz"\ntask = "md"\nrestart = "a.h5"', "restart does not apply"),
        ('molecule = "h2.xyz"\ntask = "frequencies"\n[frequencies]\nstep = true', "step must be a number"),
        ('molecule = "h2.xyz"\ntask = "frequencies"\n[frequencies]\nisotopes = 2', "isotopes must be a table"),
        ('molecule = "h2.xyz"\ntask = "frequencies"\n[frequencies]\ntemperature = -3', "temperature is -3"),
        ('molecule = "h2.xyz"\ntask = "frequencies"\n[output]\nhessian = "../h.json"', "outside the folder of the job"),
    ],
)
def test_input_errors_are_one_line(text: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "link.xyz").symlink_to(folder.parent / "outside.xyz")
    before = sorted(folder.parent.rglob("*"))
    assert status_of(str(write_job(folder, text))) == 2
    err = capsys.readouterr().err
    assert err.startswith("cuanto: ") and err.count("\n") == 1 and message in err, err
    assert sorted(folder.parent.rglob("*")) == sorted([*before, folder / "job.toml"]), "nothing was written"


def test_anywhere_allows_paths_outside_the_folder(folder: Path) -> None:
    job = write_job(folder, 'molecule = "../outside.xyz"\n[output]\njson = "../a.json"')
    with pytest.raises(InputError, match="cuanto run --anywhere"):
        read_job(job)
    request = read_job(job, anywhere=True)
    assert Path(request.sources[0]).is_file() and "json" in request.outputs


def test_a_job_is_needed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert status_of() == 2
    assert "--template" in capsys.readouterr().err
    assert status_of(str(tmp_path / "nowhere.toml")) == 2
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 21))
    assert status_of(str(tmp_path / "large.toml")) == 2
    assert "larger than 1 MB" in capsys.readouterr().err
