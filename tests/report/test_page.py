"""The HTML page of a result: complete, self-contained, and safe whatever the file says."""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import re
import shlex
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import cuanto
from cuanto import Basis
from cuanto.cli.arguments import parse_options
from cuanto.cli.main import app, run
from cuanto.errors import InputError
from cuanto.grid import GridSettings
from cuanto.interfaces.qcschema import molecule_schema, plain
from cuanto.interfaces.wavefunction import Wavefunction, wavefunction_of
from cuanto.methods import Result
from cuanto.report import report_html, reproduce, write_report
from cuanto.report.page import viewer_script
from cuanto.report.sections import UNCONVERGED
from cuanto.report.surfaces import QUANTUM, SPIN_LEVEL, frontier_surfaces, pack
from cuanto.units import BOHR_IN_ANGSTROM
from fitting_cases import DATA, molecule

VOID = {"meta", "input", "br", "line", "circle", "rect", "path", "polyline"}
MALICIOUS = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>'\"&"


class Page(HTMLParser):
    """Parser that checks that every element is closed, and collects tags, ids, addresses and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        self.ids += [str(given["id"])] if "id" in given else []
        self.addresses += [str(given[name]) for name in ("src", "href") if name in given]
        assert not any(name.startswith("on") for name in given), given
        if tag not in VOID or self.get_starttag_text()[-2:] != "/>":  # type: ignore[index]
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module", autouse=True)
def basis_files() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
        yield


@pytest.fixture(scope="module")
def water() -> Any:
    return cuanto.energy(molecule("water_01"), "rhf", "cc-pvdz", backend="cpu", energy_tolerance=1e-8)


@pytest.fixture(scope="module")
def schema(water: Any) -> dict[str, Any]:
    return dict(json.loads(json.dumps(water.to_qcschema())))


def changed(schema: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(schema)), **parts}


def test_a_page_has_everything(schema: dict[str, Any], water: Any) -> None:
    html = report_html(schema)
    page = Page(html)
    for words in (
        "rhf / cc-pvdz",
        "converged",
        "HOMO\u2013LUMO gap",
        "Dipole moment",
        "Timings",
        "Mulliken",
    ):
        assert words in page.words
    assert f"\u2212{-water.energy:.8f}" in page.words and "NOT converged" not in page.words
    wanted = {"plot-convergence", "plot-levels", "plot-timings", "plot-charges-0", "plot-charges-1", "viewer"}
    assert wanted <= set(page.ids) and len(page.ids) == len(set(page.ids))
    keys = ["homo-30", "homo-20", "homo-10", "homo0", "lumo0", "lumo+10", "lumo+20", "lumo+30"]
    assert [s["key"] for s in json.loads(embedded(html))["surfaces"]] == keys
    assert {"Hirshfeld", "CM5", "HOMO\u22123", "LUMO+3", "Dipole arrow"} <= set(page.text)
    assert "Quadrupole moment / (Debye Angstrom): xx" in page.words
    np.testing.assert_allclose(json.loads(embedded(html))["dipole"], water.dipole_debye, rtol=0, atol=1e-4)
    assert len(water.history) > 3 and page.words.count("iteration 3, ") == 2  # tooltips of both curves


def test_an_energy_that_did_not_converge_looks_like_it(schema: dict[str, Any]) -> None:
    """A banner, a badge and a tile of its own; a converged result has none of them."""
    marks = (UNCONVERGED, 'class="badge bad"', 'class="fact big unconverged"')
    bad = report_html({**schema, "success": False})
    assert all(mark in bad for mark in marks) and not any(mark in report_html(schema) for mark in marks)


def test_spin_density_and_orbitals_of_two_spins() -> None:
    cation = cuanto.energy(cuanto.Molecule(["O", "H"], [[0, 0, 0], [0, 0, 1.8]]), "uhf", "cc-pvdz", backend="cpu")
    html = report_html(cation)
    surfaces = json.loads(embedded(html))["surfaces"]
    assert [s["key"] for s in surfaces if s["name"] == "HOMO"] == ["homo0", "homo1"]
    (spin,) = [s for s in surfaces if s["level"] is not None]
    assert spin["key"] == "spin" and spin["level"] == SPIN_LEVEL and len(surfaces) == 17
    values = unpack(base64.b64decode(spin["data"]), tuple(spin["shape"]))
    assert values.sum() * (spin["spacing"] / BOHR_IN_ANGSTROM) ** 3 == pytest.approx(1.0, abs=0.1)
    assert {"spin populations", "ideal 0.75"} <= set(Page(html).text)


def embedded(html: str) -> str:
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', html, re.DOTALL)
    assert found
    return found[1]


def test_nothing_is_fetched(schema: dict[str, Any]) -> None:
    """No attribute contains an address, and the policy allows only the two scripts."""
    html = report_html(schema)
    page = Page(html)
    assert page.addresses == [] and not {"link", "iframe", "object", "base", "form"} & set(page.tags)
    assert html.isascii()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert policy and "default-src &#x27;none&#x27;" in policy[1] and policy[1].count("sha256-") == len(scripts) == 2
    assert "unsafe-eval" not in policy[1] and "url(" not in (files("cuanto") / "data/report/page.css").read_text()


def test_result_dictionary_and_file_give_the_same_page(water: Any, schema: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "water.json"
    path.write_text(json.dumps(schema))
    write_report(tmp_path / "water.html", path)
    assert (tmp_path / "water.html").read_text() == report_html(schema)
    assert abs(len(report_html(water)) - len(report_html(schema))) < 200  # orbitals of a file are rounded
    assert sorted(p.name for p in tmp_path.iterdir()) == ["water.html", "water.json"]


def test_text_of_a_file_is_escaped(schema: dict[str, Any]) -> None:
    bad = changed(
        schema, model={"method": MALICIOUS, "basis": MALICIOUS}, keywords={MALICIOUS: MALICIOUS, "fitting": [MALICIOUS]}
    )
    bad["molecule"]["name"] = MALICIOUS
    bad["provenance"] = {"creator": MALICIOUS, "version": MALICIOUS}
    extras = bad["extras"]["cuanto"]
    extras |= {"notes": [MALICIOUS], "backend": MALICIOUS, "timings": {MALICIOUS: 1.0}, "energies": {MALICIOUS: 1.0}}
    extras["history"][1]["step"] = MALICIOUS
    page = Page(report_html(bad))
    assert page.tags.count("script") == 3 and "img" not in page.tags
    assert page.words.count("window.hacked") >= 10
    result = cuanto.read(bad)
    assert shlex.split(reproduce.command_line(result).replace("\\\n", ""))[:5] == [
        "cuanto", "energy", reproduce.file_name(result), "-m", MALICIOUS,
    ]  # fmt: skip
    compile(reproduce.python_text(result), "page", "exec")
    assert re.fullmatch(r"[\w-]+\.xyz", reproduce.file_name(result))


def test_missing_values_and_invalid_numbers(schema: dict[str, Any]) -> None:
    """Results as written by other programs, and values that are not numbers."""
    bare = {key: schema[key] for key in ("schema_name", "molecule", "model", "return_result", "success")}
    page = Page(report_html({**bare, "provenance": {"creator": "Other", "version": "1.0"}}))
    for words in ("no orbitals", "iterations are not", "Timings are not", "charges are not", "Other 1.0"):
        assert words in page.words
    odd = changed(schema, return_result=float("nan"), success="yes")
    odd["extras"]["cuanto"] |= {
        "history": [{"energy": float("nan"), "gradient": None}, 7, {"gradient": 0.0}],
        "timings": {"a": float("inf"), "b": -1.0, "c": "x"},
        "mulliken_charges": [0.1, float("nan"), None],
        "loewdin_charges": "none",
        "hirshfeld_charges": [0.1, 0.2],
        "cm5_charges": {"a": 1},
        "charges": [1.0],
        "orbital_energies": [["a"]],
    }
    del odd["wavefunction"]
    page = Page(report_html(odd))
    assert "NOT converged" in page.words and "charges are not" in page.words and "nan" not in page.words.lower()


def test_a_damaged_file_gives_a_page_or_one_line(schema: dict[str, Any]) -> None:
    """Values replaced at random by values of other types."""
    junk: list[Any] = [None, True, -1, 1e300, float("nan"), 10**400, "", "x" * 5000, "\ud800\x00", [], {}, [[]], [None]]
    small = {key: value for key, value in schema.items() if key != "wavefunction"}
    all_paths = list(paths(small))
    random = np.random.default_rng(5)
    pages = 0
    for _ in range(60):
        bad = changed(small)
        *parents, last = all_paths[int(random.integers(len(all_paths)))]
        inner: Any = bad
        for key in parents:
            inner = inner[key]
        inner[last] = junk[int(random.integers(len(junk)))]
        try:
            Page(report_html(bad))
            pages += 1
        except InputError as error:
            assert "\n" not in str(error)
    assert pages > 30


def paths(value: Any, parents: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to all values of nested dictionaries, and to the first elements of lists."""
    inner = value.items() if isinstance(value, dict) else list(enumerate(value))[:4] if isinstance(value, list) else ()
    for key, below in inner:
        yield (*parents, key)
        yield from paths(below, (*parents, key))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[1, 2]", "a.json: expected a JSON object"),
        ('{"schema_name": "qcschema_molecule"}', "'qcschema_molecule', not a result: give the JSON of"),
        ('{"schema_name": "qcschema_output"}', "'qcschema_output', not a result"),
        ('{"model": {"method": "hf"}, "return_result": 0}', "a.json: JSON without symbols and geometry"),
        (
            '{"model": {"method": "hf"}, "return_result": 0, "molecule": {"symbols": ["Zz"], "geometry": [0, 0, 0]}}',
            "a.json: unknown element",
        ),
        (
            '{"model": {"method": "hf"}, "return_result": 0, "molecule": {"symbols": ["H"], "geometry": [0, 1]}}',
            "a.json: 1 atoms need 3 coordinates in geometry",
        ),
    ],
)
def test_other_files_are_refused_in_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(SystemExit) as stopped:
        run(["report", str(tmp_path / "a.json")])
    output = capsys.readouterr()
    assert stopped.value.code == 2 and output.err.count("\n") == 1 and message in output.err
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_invalid_sources(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        report_html(tmp_path / "missing.json")
    with pytest.raises(InputError, match="a float is not a result"):
        report_html(1.0)  # type: ignore[arg-type]


def test_report_of_a_checkpoint(tmp_path: Path) -> None:
    mol = molecule("water_01")
    basis = Basis("cc-pvdz", mol)
    from cuanto.backends import get_backend
    from cuanto.scf.checkpoint import Checkpoint

    keep = Checkpoint(tmp_path / "water.h5", mol, basis, "rhf", get_backend("cpu"))
    cuanto.energy(mol, "rhf", basis, backend="cpu", on_iteration=keep, max_iterations=2)
    page = Page(report_html(tmp_path / "water.h5"))
    assert "NOT converged" in page.words and "checkpoint" in page.words and "Orbital energies are not" in page.words
    wave = wavefunction_of(cuanto.read(tmp_path / "water.h5"))
    assert [s.name for s in frontier_surfaces(wave, mol)] == ["HOMO\u22123", "HOMO\u22122", "HOMO\u22121", "HOMO"]


def test_methods_without_a_basis_and_two_spins() -> None:
    pm6 = report_html(cuanto.energy(molecule("water_01"), "pm6", backend="cpu"))
    assert "Heat of formation" in Page(pm6).words and "Slater functions" in Page(pm6).words
    methyl = cuanto.energy(molecule("CH3"), "uhf", "cc-pvdz", backend="cpu", max_iterations=2)
    page = Page(report_html(methyl))
    assert "\u27e8S\u00b2\u27e9" in page.words and "Spin density" in page.words and "\u03b1 and \u03b2" in page.words


def test_the_page_reproduces_the_result(water: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    water.to_xyz(reproduce.file_name(water))
    words = shlex.split(reproduce.command_line(water).replace("\\\n", ""))
    assert "energy_tolerance=1e-08" in words
    done = CliRunner().invoke(app, [*words[1:], "--json", "again.json", "--backend", "cpu"])
    assert done.exit_code == 0, done.output
    assert json.loads(Path("again.json").read_text())["return_result"] == pytest.approx(water.energy, abs=1e-8)
    calls: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(cuanto, "energy", lambda *given, **named: calls.append((given, named)) or water)
        exec(compile(reproduce.python_text(water), "page", "exec"), {})
    (((mol, method, basis), named),) = calls
    assert (mol.natom, method, basis, named["energy_tolerance"]) == (3, "rhf", "cc-pvdz", 1e-8)


def stored_result(method: str, basis: str, **keywords: Any) -> Result:
    """A result of water as read from a file, with these keywords."""
    model = {"method": method, "basis": basis}
    about = {"molecule": molecule_schema(molecule("water_01")), "model": model, "keywords": keywords}
    return cuanto.read({**about, "return_result": -1.0, "success": True})


BEYOND = [
    ({"grid": {"level": "fine", "partition": "stratmann"}}, "cc-pvdz", "# No options for grid: run the Python below."),
    ({"grid": {"level": [50, 194], "pruning": "nwchem"}}, "cc-pvdz", "# No options for grid: run the Python below."),
    ({"point_charges": [[0.5], [[0.0, 0.0, 6.0]]]}, "cc-pvdz", "# No options for point_charges: run the Python below."),
    ({"atomic_charges": [1.0]}, "cc-pvdz", "# No options for atomic_charges: run the Python below."),
    ({}, "H: sto-3g, O: cc-pvdz", "# No options for a basis for each element: run the Python below."),
    ({"a\nrm -rf": {}}, "cc-pvdz", "# No options for a keyword: run the Python below."),
    ({"field": [0.0, 0.0, 0.01], "fitting": "none"}, "cc-pvdz", None),
    ({"grid": [50, 194], "history": 6, "profile": True}, "cc-pvdz", None),
    ({"fitting": "jk", "auxbasis": "H: cc-pvdz-jkfit, I: autoaux"}, "cc-pvdz", None),
]


@pytest.mark.parametrize(("keywords", "basis", "comment"), BEYOND)
def test_keywords_without_an_option_are_python(keywords: dict[str, Any], basis: str, comment: str | None) -> None:
    """Either way, `cuanto.energy` gets the same arguments as in the original calculation."""
    result = stored_result("pbe", basis, **keywords)
    line = reproduce.command_line(result)
    assert (line == comment) if comment else line.startswith("cuanto energy")
    calls: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuanto.Molecule, "from_xyz", lambda *given, **named: result.molecule)
        patch.setattr(cuanto, "energy", lambda *given, **named: calls.append((given, named)) or result)
        exec(compile(reproduce.python_text(result), "page", "exec"), {})
    (((_, method, sets), named),) = calls
    expected = {k: v for k, v in keywords.items() if k.isidentifier() and "autoaux" not in str(v)}
    assert method == "pbe" and plain(named) == expected
    assert sets == ({"H": "sto-3g", "O": "cc-pvdz"} if ": " in basis else basis)
    if isinstance(named.get("grid"), dict):
        assert GridSettings.of(named["grid"]).plain == GridSettings.of(keywords["grid"]).plain
    if comment is None:
        words = shlex.split(line.replace("\\\n", ""))
        output = parse_options([word for word, before in zip(words[1:], words, strict=False) if before == "-o"])
        assert output == {name: value for name, value in expected.items() if name not in reproduce.FLAGS}


def unpack(data: bytes, shape: tuple[int, int, int]) -> np.ndarray:
    """Decode an orbital as the script of the page does."""
    split = np.frombuffer(zlib.decompress(data), dtype=np.uint8).reshape(2, -1)
    change = np.ascontiguousarray(split.T).view("<i2").reshape(shape)
    return np.asarray(np.cumsum(change, axis=2, dtype=float) * QUANTUM)


def test_packed_orbitals() -> None:
    values = np.random.default_rng(3).normal(scale=0.1, size=(3, 4, 5))
    np.testing.assert_allclose(unpack(pack(values), (3, 4, 5)), np.clip(values, -0.4, 0.4), atol=QUANTUM)


def test_a_page_of_caffeine_is_small() -> None:
    """Even if orbitals fill the whole box."""
    mol = molecule("caffeine")
    basis = Basis("def2-svp", mol)
    C_spm = np.random.default_rng(4).normal(scale=0.1, size=(1, basis.nbf, 2))
    wave = Wavefunction(basis, C_spm, np.array([[-0.2, 0.1]]), np.array([[2.0, 0.0]]))
    packed = [len(surface.packed()["data"]) for surface in frontier_surfaces(wave, mol)]
    assert len(packed) == 2 and sum(packed) + len(viewer_script()) < 1_900_000


def test_the_viewer_is_what_its_provenance_says() -> None:
    folder = files("cuanto") / "data" / "report"
    script = lzma.decompress((folder / "3Dmol-min.js.xz").read_bytes())
    assert hashlib.sha256(script).hexdigest() in (folder / "README.md").read_text()
    assert "3dmol v2.5.5" in script.decode() or "2.5.5" in (folder / "README.md").read_text()
    assert "University of Pittsburgh" in (folder / "3Dmol.LICENSE.txt").read_text()
    assert "BSD-3-Clause" in viewer_script()[:200] and viewer_script().isascii()


def test_commands(schema: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(json.dumps(schema))
    runner = CliRunner()
    done = runner.invoke(app, ["report", str(tmp_path / "w.json")])
    assert done.exit_code == 0 and "w.html" in done.output
    for orbital in ("lumo", "density"):
        options = ["--orbital", orbital, "--spacing", "0.8"]
        assert runner.invoke(app, ["cube", str(tmp_path / "w.json"), *options]).exit_code == 0
    assert {p.name for p in tmp_path.iterdir()} == {"w.json", "w.html", "w_lumo.cube", "w_density.cube"}
    bare = {key: value for key, value in schema.items() if key != "wavefunction"}
    (tmp_path / "bare.json").write_text(json.dumps(bare))
    for arguments in (
        ["bare.json"],
        ["w.json", "--orbital", "../x"],
        ["w.json", "--beta"],
        ["w.json", "--beta", "--orbital", "density"],
        ["w.json", "--out", str(tmp_path / "w.json")],
        ["w.json", "--spacing", "0"],
    ):
        assert isinstance(
            runner.invoke(app, ["cube", str(tmp_path / arguments[0]), *arguments[1:]]).exception, InputError
        )
    done = runner.invoke(app, ["report", str(tmp_path / "w.json"), "--out", str(tmp_path / "w.json")])
    assert "would overwrite the input" in str(done.exception)
    for command in ("report", "cube"):
        for folder in ("/", ".", ""):
            error = runner.invoke(app, [command, folder]).exception
            assert isinstance(error, InputError) and "is a folder: give the file of a result" in str(error)


def test_spins_have_names_of_their_own(tmp_path: Path) -> None:
    atom = cuanto.energy(cuanto.Molecule(["H"], [[0.0, 0.0, 0.0]]), "hf", "cc-pvdz", fitting="none", backend="cpu")
    (tmp_path / "h.json").write_text(json.dumps(atom.to_qcschema()))
    for spin in ([], ["--beta"]):
        done = CliRunner().invoke(app, ["cube", str(tmp_path / "h.json"), "--orbital", "1", "--spacing", "1", *spin])
        assert done.exit_code == 0
    assert {p.name for p in tmp_path.glob("*.cube")} == {"h_1.cube", "h_1_beta.cube"}
