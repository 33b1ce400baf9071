"""The command line: output, one-line errors, exit status."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.main import get_command

from cuanto.cli import doctor
from cuanto.cli.cache import readable_size
from cuanto.cli.integrals import save_npz
from cuanto.cli.kernel import angular_momentum
from cuanto.cli.main import app, explain, run
from cuanto.errors import CompilerError, InputError
from cuanto.kernels.spec import MAX_L

WITHOUT_EXAMPLES = ()
WATER = str(files("cuanto") / "data" / "molecules" / "water.xyz")


def status_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        run(arguments)
    code = stopped.value.code
    return 0 if code is None else int(code)


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The whole of standard error, which must be one line without a traceback."""
    err = capsys.readouterr().err
    assert err.startswith("cuanto: ") and err.count("\n") == 1, err
    return err.strip()


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--help") == 0
    out = capsys.readouterr().out
    for command in ("energy", "run", "doctor", "integrals", "kernel", "cache", "Examples"):
        assert command in out


def test_module_and_script_are_the_same_command() -> None:
    done = subprocess.run([sys.executable, "-m", "cuanto", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("cuanto 0.")


def test_help_imports_no_heavy_library() -> None:
    code = (
        "import json, sys\n"
        "from cuanto.cli.main import run\n"
        "try:\n    run(['--help'])\n"
        "except SystemExit:\n    print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stderr))
    assert not loaded & {"numpy", "scipy", "cupy", "basis_set_exchange", "pyscf"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["integrals", "nowhere.xyz", "-b", "cc-pvdz"], "nowhere.xyz"),
        (["integrals", WATER, "-b", "cc-pvdx"], "cc-pvdz"),
        (["integrals", WATER, "-b", "cc-pvdz", "--charge", "11"], "charge"),
        (["integrals", WATER, "-b", "cc-pvdz", "--mult", "2"], "multiplicity"),
        (["integrals", WATER, "-b", "cc-pvdz", "--aux", "no-such-set"], "no-such-set"),
        (["integrals", WATER, "-b", "cc-pvdz", "--out", "no-such-folder/a.npz"], "no-such-folder"),
        (["kernel", "3c", "1", "0", "x"], "'x'"),
        (["kernel", "3c", "1", "0"], "3c"),
        (["kernel", "5c", "1", "0"], "5c"),
        (["kernel", "3c", "1", "0", "1", "--schedule", "sideways"], "sideways"),
        (["kernel", "3c", "1", "0", "1", "--target", "abacus"], "abacus"),
        (["kernel", "3c", "1", "0", "-1"], "-1"),
        (["kernel", "3c", "1", "0", "--", "-1"], f"0 to {MAX_L}"),
        (["kernel", "3c", "1", "0", str(MAX_L + 1)], f"0 to {MAX_L}"),
        (["kernel", "overlap", "1", "0", "--algorithm", "md"], "coulomb integrals"),
        (["integrals", WATER, "-b", "cc-pvdz", "--backend", "simt"], "reference"),
        (["integrals", WATER, "-b", "cc-pvdz", "--charge", "one"], "--charge"),
        (["integrals", WATER], "--basis"),
        (["integrals", WATER, "-b"], "-b"),
        (["doctor", "please"], "please"),
        (["--loud"], "--loud"),
        (["energies"], "energies"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(*arguments) == 2
    assert expected in error_line(capsys).lower()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3\nwater\nO 0 0 0\nH 0 0 1\n",
        "1\n\nQx 0 0 0\n",
        "1\n\nO 0 0 nan\n",
        "2\n\nH 0 0 0\nH 0 0 0\n",
        "2\n\nH 0 0 0\nH 0 0 0.1\n",
    ],
)
def test_malformed_xyz_is_one_line_and_status_2(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.xyz"
    path.write_text(text)
    assert status_of("integrals", str(path), "-b", "cc-pvdz") == 2
    error_line(capsys)


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CUANTO_DEBUG", "1")
    assert status_of("integrals", "nowhere.xyz", "-b", "cc-pvdz") == 2
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith("Traceback") and last.startswith("cuanto: ") and "nowhere.xyz" in last


def test_errors_are_explained() -> None:
    assert explain(InputError("a\n b")) == ("a b", 2)
    assert explain(CompilerError("log:\n  line")) == ("log:\n  line", 2)
    assert explain(MemoryError("1 TiB"))[1] == 2
    line, status = explain(ZeroDivisionError("x"))
    assert status == 70 and "ZeroDivisionError" in line and "report" in line


def test_usage_errors_have_no_traceback_even_when_debugging(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUANTO_DEBUG", "1")
    assert status_of("kernel", "3c", "--loud") == 2
    assert error_line(capsys).endswith("see `cuanto kernel --help`")


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of() == 0
    assert "Usage: cuanto" in capsys.readouterr().out


def test_interrupt_is_one_line_and_status_130() -> None:
    code = (
        "import os, signal, time\n"
        "from cuanto.cli.main import app, run\n"
        "@app.command()\n"
        "def wait() -> None:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(60)\n"
        "run(['wait'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr == "cuanto: interrupted\n"


@pytest.mark.parametrize("arguments", [["-v", "integrals"], ["integrals", "--verbose"]])
def test_verbose_on_both_sides_of_the_command(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "cuanto", *arguments, WATER, "-b", "sto-3g", "--backend", "cpu"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "eri_pqP: " in done.stderr


def test_doctor_never_fails(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> doctor.Finding:
        raise RuntimeError("two\nlines")

    assert doctor.run_probe(broken) == ("RuntimeError: two lines", False)
    assert status_of("doctor") == 0
    out = capsys.readouterr().out
    for name in doctor.PROBES:
        assert name in out


def test_doctor_findings_are_real() -> None:
    import scipy

    assert np.__version__ in doctor.libraries()[0]
    assert scipy.__version__ in doctor.libraries()[0]
    assert doctor.processor()[1] is None
    assert doctor.compiler()[1] is True
    assert doctor.nvrtc()[1] is True


def test_doctor_without_a_compiler_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuanto.backends.cpu import compiler

    def none_found() -> None:
        raise CompilerError("no C++ compiler found; pip install 'cuanto[zig]'")

    monkeypatch.setattr(compiler, "find_compiler", none_found)
    text, found = doctor.run_probe(doctor.compiler)
    assert found is False and "zig" in text


def test_doctor_counts_the_threads_of_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUANTO_THREADS", raising=False)
    assert "usable core" in doctor.processor()[0]
    monkeypatch.setenv("CUANTO_THREADS", "3")
    assert "3 threads (CUANTO_THREADS)" in doctor.processor()[0]


def test_doctor_tells_when_the_cache_is_a_fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path / "kernels"))
    assert "fallback" not in doctor.kernel_cache()[0]
    (tmp_path / "file").write_text("in the way of a folder")
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path / "file"))
    assert f"fallback, because {tmp_path / 'file'} is not writable" in doctor.kernel_cache()[0]
    monkeypatch.delenv("CUANTO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    assert "fallback, because the cache folder in your home" in doctor.kernel_cache()[0]


def test_doctor_explains_why_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuanto.backends.cuda.backend import why_no_gpu

    class CUDARuntimeError(RuntimeError):
        pass

    def no_driver() -> int:
        raise CUDARuntimeError("cudaErrorInsufficientDriver")

    runtime = SimpleNamespace(getDeviceCount=no_driver, CUDARuntimeError=CUDARuntimeError)
    without_driver = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    for module, expected in [(None, "CuPy"), (without_driver, "cudaErrorInsufficientDriver")]:
        monkeypatch.setitem(sys.modules, "cupy", module)
        why_no_gpu.cache_clear()
        text, found = doctor.run_probe(doctor.gpu)
        assert found is False and expected in text and "NVIDIA driver" in text
    monkeypatch.undo()
    why_no_gpu.cache_clear()


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("algorithm", ["hgp", "md", "auto"])
def test_kernel_prints_source_and_cost(algorithm: str, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("kernel", "3c", "1", "0", "1", "--algorithm", algorithm, "--target", target) == 0
    printed = capsys.readouterr()
    assert ("__global__" in printed.out) == (target == "cuda")
    assert printed.out.count("{") == printed.out.count("}") > 0
    assert "3c 1 0 1" in printed.err


def test_kernel_of_four_centres(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("kernel", "4c", "1", "0", "1", "0", "--target", "cuda") == 0
    assert "coulomb_ps_ps_hgp_thread" in capsys.readouterr().out


def test_kernel_takes_letters(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("kernel", "3c", "p", "S", "p") == 0
    by_letter = capsys.readouterr().out
    assert status_of("kernel", "3c", "1", "0", "1") == 0
    assert capsys.readouterr().out == by_letter
    assert [angular_momentum(word) for word in ("0", "d", "F")] == [0, 2, 3]


def test_every_letter_offered_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="a letter of") as refused:
        angular_momentum("x")
    letters = str(refused.value).split()[-1]
    assert [angular_momentum(letter) for letter in letters] == list(range(MAX_L + 1))
    assert status_of("kernel", "overlap", letters[-1], "s") == 0


def test_cache_shows_and_clears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path / "kernels"))
    assert status_of("cache") == 0
    assert "0 files, 0 B" in capsys.readouterr().out
    (tmp_path / "kernels" / "one.so").write_bytes(b"x" * 2048)
    assert status_of("cache", "--clear") == 0
    assert "removed 1 files, 2.0 KiB" in capsys.readouterr().out
    assert status_of("cache") == 0
    assert "0 files" in capsys.readouterr().out


def test_readable_size() -> None:
    sizes = (0, 1023, 1024, 3 * 2**20, 2**40)
    assert [readable_size(n) for n in sizes] == ["0 B", "1023 B", "1.0 KiB", "3.0 MiB", "1.0 TiB"]


def saved_arrays(backend: str, folder: Path) -> dict[str, np.ndarray]:
    out = folder / f"{backend}.npz"
    assert status_of("integrals", WATER, "-b", "sto-3g", "--backend", backend, "--out", str(out)) == 0
    with np.load(out) as saved:
        return dict(saved)


def test_integrals_saves_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrays = saved_arrays("cpu", tmp_path)
    report = capsys.readouterr().out
    oracle = saved_arrays("reference", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cpu.npz", "reference.npz"]
    assert list(arrays["symbols"]) == ["O", "H", "H"] and arrays["basis"] == "sto-3g"
    for name in ("S_pq", "T_pq", "V_pq", "r_xpq", "eri_PQ", "eri_pqP"):
        assert name in report and f"{np.linalg.norm(arrays[name].ravel()):.6f}" in report
        scale = np.abs(oracle[name]).max()
        np.testing.assert_allclose(arrays[name], oracle[name], rtol=0, atol=1e-12 * scale)


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    class Unwritable:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            raise OSError(28, "No space left on device")

    out = tmp_path / "a.npz"
    out.write_bytes(b"old")
    with pytest.raises(InputError, match="No space left"):
        save_npz(out, {"a": Unwritable()})
    assert out.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in app.registered_commands:
        assert command.name is not None
        assert status_of(command.name, "--help") == 0
        out = capsys.readouterr().out
        assert "Usage: cuanto" in out
        assert "Examples" in out or command.name in WITHOUT_EXAMPLES


def test_examples_of_the_help_are_right() -> None:
    """Parsed by typer, without pipes, redirections and explanations after four spaces."""
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        lines = (command.epilog or "").splitlines()[1:]
        parts = [part for line in lines for part in re.split(r" (?:\||&&) ", line.replace("\\[", "["))]
        for part in parts:
            words = shlex.split(re.split(r" > |    ", part.strip())[0])
            if words[0] == "cuanto":
                commands[words[1]].make_context(words[1], words[2:])
        assert not parts or any(f"cuanto {name}" in part for part in parts)


def test_help_is_fast() -> None:
    """Processor time, best of three, since other programs share the cores."""
    code = "import resource, sys\nfrom cuanto.cli.main import run\ntry:\n    run(['--help'])\nexcept SystemExit:\n    "
    code += "used = resource.getrusage(resource.RUSAGE_SELF)\n    print(used.ru_utime + used.ru_stime, file=sys.stderr)"
    command = [sys.executable, "-c", code]
    seconds = [float(subprocess.run(command, capture_output=True, text=True, check=True).stderr) for _ in range(3)]
    assert min(seconds) < 0.5


def test_shell_completion() -> None:
    setting = {"_CUANTO_COMPLETE": "complete_bash", "COMP_WORDS": "cuanto energy x --auxb", "COMP_CWORD": "3"}
    command = [sys.executable, "-m", "cuanto"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **setting})
    assert done.stdout.split() == ["--auxbasis"]
