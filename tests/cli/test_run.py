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
from fitting_cases import DATA

H2 = "2\n\nH 0 0 0\nH 0 0 0.74\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of jobs; its parent has a molecule, too, and the working directory is elsewhere."""
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


def written(folder: Path, text: str) -> Path:
    path = folder / "job.toml"
    path.write_text(text)
    return path


def test_a_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'molecule = "h2.xyz"\nmethod = "rhf"\nbasis = "sto-3g"\nbackend = "cpu"\nfitting = "none"\n'
    text += '[options]\nmax_iterations = 20\n[output]\njson = "{name}.json"\nmolden = "orbitals.molden"\n'
    assert status_of(str(written(folder, text))) == 0
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
    request = read_job(written(folder, everything))
    assert request.method == "b3lyp" and request.keywords["grid"] == "fine" and "report" in request.outputs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("molecule = ", "is not valid TOML"),
        ("", "name the molecule"),
        ('molecule = "h2.xyz"\nmetod = "hf"', "unknown key 'metod'; did you mean 'method'?"),
        ('molecule = "h2.xyz"\n[options]\nmax_iter = 3', "[options]: unknown key 'max_iter'; did you mean"),
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
    ],
)
def test_input_errors_are_one_line(text: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "link.xyz").symlink_to(folder.parent / "outside.xyz")
    before = sorted(folder.parent.rglob("*"))
    assert status_of(str(written(folder, text))) == 2
    err = capsys.readouterr().err
    assert err.startswith("cuanto: ") and err.count("\n") == 1 and message in err, err
    assert sorted(folder.parent.rglob("*")) == sorted([*before, folder / "job.toml"]), "nothing was written"


def test_anywhere_allows_paths_outside_the_folder(folder: Path) -> None:
    job = written(folder, 'molecule = "../outside.xyz"\n[output]\njson = "../a.json"')
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
