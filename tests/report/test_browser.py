"""The page in a real browser: it draws and rotates, has no errors and makes no network requests."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

import cuanto
from browser import Browser, browser_paths
from cuanto.report import write_report
from cuanto.units import BOHR_IN_ANGSTROM
from fitting_cases import DATA, molecule
from oracles.grid import functions_at
from vibration_cases import PM6, WATER

pytestmark = pytest.mark.skipif(
    browser_paths() is None, reason="the browser test was left out: Debian's chromium and chromium-driver are missing"
)
MALICIOUS = "<script>window.hacked=1</script>"


@pytest.fixture(scope="module")
def result() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
        return cuanto.energy(molecule("water_01"), "rhf", "cc-pvdz", backend="cpu")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened


@pytest.fixture(scope="module")
def page(browser: Browser, result: Any, tmp_path_factory: pytest.TempPathFactory) -> Browser:
    path = tmp_path_factory.mktemp("page") / "water.html"
    write_report(path, result)
    browser.open(path)
    browser.wait("document.getElementById('viewer').dataset.shapes === '2'")
    return browser


def picture(page: Browser, selector: str = "#viewer") -> np.ndarray:
    return np.asarray(matplotlib.image.imread(io.BytesIO(page.picture(selector))))[..., :3]


def complaints(page: Browser) -> list[str]:
    """Messages of the console, without those of the software renderer about its speed."""
    return [entry["message"] for entry in page.log("browser") if "GL Driver Message" not in entry["message"]]


def choose(page: Browser, name: str, value: str) -> None:
    page.run('document.querySelector(`input[name="${arguments[0]}"][value="${arguments[1]}"]`).click()', name, value)


def test_it_draws_without_errors_or_requests(page: Browser) -> None:
    assert complaints(page) == [] and page.requests() == []
    shown = picture(page)
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) > 500  # shaded, not blank
    blue, orange = (
        np.count_nonzero(np.abs(shown - colour).max(axis=2) < 0.3) for colour in ((0.2, 0.5, 1), (1, 0.5, 0.2))
    )
    assert blue > 500 and orange > 500
    for plot in ("plot-convergence", "plot-levels", "plot-charges-0", "plot-timings"):
        width, height = page.run("const b = document.getElementById(arguments[0]).getBoundingClientRect();"
                                 "return [b.width, b.height]", plot)  # fmt: skip
        assert width > 200 and height > 40, plot
    # Core levels are not drawn.
    assert page.run("return document.querySelectorAll('#plot-levels .level.filled').length") == 3


def test_the_molecule_can_be_rotated(page: Browser) -> None:
    before, view = picture(page), page.run("return window.report.viewer.getView()")
    page.drag("#viewer", 120, 40)
    rotated = page.run("return window.report.viewer.getView()")
    assert np.abs(np.subtract(rotated, view)[4:]).max() > 0.1  # the quaternion
    assert np.abs(picture(page) - before).max() > 0.3
    page.run("document.getElementById('reset').click()")
    np.testing.assert_allclose(page.run("return window.report.viewer.getView()"), view, atol=1e-6)


def test_controls(page: Browser) -> None:
    homo = picture(page)
    choose(page, "surface", "lumo0")
    page.wait("document.getElementById('viewer').dataset.surface === 'lumo0'")
    assert np.abs(picture(page) - homo).mean() > 0.01
    choose(page, "surface", "none")
    page.wait("document.getElementById('viewer').dataset.shapes === '0'")
    atoms = picture(page)
    for name, value in (("style", "sphere"), ("labels", "charges")):
        choose(page, name, value)
        assert np.abs(picture(page) - atoms).mean() > 1e-3
    choose(page, "charges", "L\u00f6wdin")
    assert page.run("return document.getElementById('plot-charges-0').offsetHeight") == 0
    assert page.run("return document.getElementById('plot-charges-1').offsetHeight") > 0
    light = page.run("return getComputedStyle(document.body).backgroundColor")
    page.run("document.getElementById('theme').click()")
    assert page.run("return getComputedStyle(document.body).backgroundColor") != light
    assert picture(page)[3, 3].max() < 0.3
    page.run("document.getElementById('theme').click()")
    assert complaints(page) == [] and page.requests() == []


def test_the_surface_is_where_the_orbital_has_its_value(page: Browser, result: Any) -> None:
    """Vertices of the browser against the functions of the basis; every edge belongs to two triangles."""
    mesh = page.run(
        "const r = window.report, s = r.data.surfaces.find((one) => one.key === 'homo0');"
        "const list = (a) => a.map((p) => [p.x, p.y, p.z]);"
        "return r.unpack(s).then((v) => r.surfaceNet(s, v, 1, 0.05))"
        ".then((m) => [list(m.vertexArr), list(m.normalArr), m.faceArr])"
    )
    vertices, normals, faces = np.array(mesh[0]), np.array(mesh[1]), np.array(mesh[2]).reshape(-1, 3)
    values = functions_at(result.basis, vertices / BOHR_IN_ANGSTROM) @ result.coefficients[0][:, 4]
    slope = np.linalg.norm(values[1:], axis=0)
    away = np.abs(values[0] - 0.05) / slope  # Bohr, to first order
    assert len(vertices) > 300 and away.max() < 0.08 and np.median(away) < 0.005
    downhill = -values[1:].T / slope[:, None]
    assert (normals * downhill).sum(axis=1).min() > 0.9
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    assert set(np.unique(edges, axis=0, return_counts=True)[1]) == {2}
    corner = [vertices[faces[:, i]] for i in range(3)]
    outward = np.cross(corner[1] - corner[0], corner[2] - corner[0])
    assert ((outward * normals[faces[:, 0]]).sum(axis=1) > 0).mean() > 0.99  # triangles face outwards


def test_a_narrow_window_and_a_malicious_name(browser: Browser, result: Any, tmp_path: Path) -> None:
    schema = json.loads(json.dumps(result.to_qcschema()))
    schema["molecule"]["name"] = MALICIOUS
    schema["extras"]["cuanto"]["notes"] = [MALICIOUS * 5]
    write_report(tmp_path / "evil.html", schema)
    browser.open(tmp_path / "evil.html")
    browser.wait("document.getElementById('viewer').dataset.shapes === '2'")
    assert browser.run("return window.hacked === undefined && document.querySelector('h1').textContent") == MALICIOUS
    browser.resize(400, 800)
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    assert complaints(browser) == [] and browser.requests() == []


def positions(page: Browser) -> np.ndarray:
    return np.array(page.run("return window.report.viewer.selectedAtoms({}).map(a => [a.x, a.y, a.z])"))


def test_modes_are_animated_and_bands_broadened(browser: Browser, tmp_path: Path) -> None:
    vibrations = cuanto.frequencies(WATER, **PM6)
    write_report(tmp_path / "water.html", vibrations)
    browser.open(tmp_path / "water.html")
    browser.wait("window.report && document.querySelectorAll('#modes button').length === 3")
    rest = positions(browser)
    curve = browser.run("return document.getElementById('spectrum-curve').getAttribute('points')")
    browser.run("document.querySelector('.hit[data-mode=\"2\"]').dispatchEvent(new Event('click'))")
    browser.wait("document.getElementById('viewer').dataset.mode === '2'")
    browser.wait(
        f"Math.abs(window.report.viewer.selectedAtoms({{}})[1].y - {rest[1, 1]}) > 0.02"
    )  # the asymmetric stretch moves hydrogen along y
    browser.run("document.querySelectorAll('#modes button')[2].click()")
    browser.wait("document.getElementById('viewer').dataset.mode === '-1'")
    assert np.allclose(positions(browser), rest)
    browser.run("const s = document.getElementById('broadening'); s.value = 70; s.dispatchEvent(new Event('input'))")
    assert browser.run("return document.getElementById('spectrum-curve').getAttribute('points')") != curve
    assert browser.run("return document.getElementById('broadening-text').textContent").startswith("70")
    assert complaints(browser) == [] and browser.requests() == []


def test_a_slider_leads_through_an_optimisation(browser: Browser, tmp_path: Path) -> None:
    found = cuanto.optimize(WATER, **PM6)
    write_report(tmp_path / "water.html", found)
    browser.open(tmp_path / "water.html")
    browser.wait("window.report && document.getElementById('geometry')")
    assert np.allclose(positions(browser), found.molecule.R_ax * BOHR_IN_ANGSTROM, atol=1e-4)
    browser.run("const s = document.getElementById('geometry'); s.value = 0; s.dispatchEvent(new Event('input'))")
    assert np.allclose(positions(browser), WATER.R_ax * BOHR_IN_ANGSTROM, atol=1e-4)
    assert browser.run("return document.getElementById('geometry-text').textContent").startswith("1: ")
    browser.run("document.querySelector('#plot-optimisation .dot[data-step=\"1\"]').dispatchEvent(new Event('click'))")
    assert browser.run("return document.getElementById('viewer').dataset.step") == "1"
    assert complaints(browser) == []


def inside(page: Browser) -> np.ndarray:
    """Positions of all atoms in the picture, as fractions of its width and height."""
    found = page.run(
        "const v = window.report.viewer, s = document.getElementById('viewer');"
        "return v.selectedAtoms({}).map((a) => v.modelToScreen(a)).map((p) => {"
        "const b = s.getBoundingClientRect();"
        "return [(p.x - b.x - scrollX) / b.width, (p.y - b.y - scrollY) / b.height]; })"
    )
    return np.array(found)


@pytest.mark.parametrize("length", [0, 1, 12])
def test_the_camera_fits_the_molecule(browser: Browser, length: int, tmp_path: Path) -> None:
    """Atoms are inside the picture and fill most of it, whatever their number and the size of the window."""
    symbols, places = ["C", "H", "H"] * length or ["He"], ((0.0, 0.0), (0.9, 1.7), (0.9, -1.7))
    rows = [[2.6 * k, k % 2 + y, z] for k in range(length) for y, z in places] or [[0.0, 0.0, 0.0]]
    found = cuanto.energy(cuanto.Molecule(symbols, rows), "pm6", backend="cpu")
    write_report(tmp_path / "a.html", found)
    for width in (1280, 420):
        browser.resize(width, 900)
        if width == 1280:  # the narrow window shows the same page
            browser.open(tmp_path / "a.html")
        browser.wait("window.report && document.getElementById('viewer').classList.contains('ready')")
        browser.wait(f"document.getElementById('viewer').clientWidth {'<' if width < 900 else '>'} 600")
        browser.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        shown = inside(browser)
        assert shown.min() > 0.02 and shown.max() < 0.98
        np.testing.assert_allclose((shown.max(axis=0) + shown.min(axis=0)) / 2, 0.5, atol=0.06)
        if length == 12:
            assert np.ptp(shown, axis=0).max() > 0.7
    browser.resize(640, 600)


def test_dipole_arrow_spin_density_and_whole_rows(browser: Browser, tmp_path: Path) -> None:
    radical = cuanto.Molecule(
        ["C", "H", "H", "H", "O"] * 3, [[2.4 * k, 1.1 * (k % 2), 0.7 * (k % 3)] for k in range(15)]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cuanto.energy(radical, "uhf", "sto-3g", backend="cpu", max_iterations=2)
    write_report(tmp_path / "a.html", found)
    browser.open(tmp_path / "a.html")
    browser.wait("window.report && document.getElementById('viewer').dataset.surface === 'homo0'")
    level = browser.run("return document.getElementById('isovalue-text').textContent")
    choose(browser, "surface", "spin")
    browser.wait("document.getElementById('viewer').dataset.surface === 'spin'")
    assert browser.run("return document.getElementById('isovalue-text').textContent") != level
    choose(browser, "surface", "lumo+31")
    browser.wait("document.getElementById('viewer').dataset.surface === 'lumo+31'")
    assert browser.run("return document.getElementById('isovalue-text').textContent") == level
    browser.run("document.getElementById('arrow').click()")
    browser.wait("document.getElementById('viewer').dataset.arrow === '1'")
    browser.run("document.getElementById('arrow').click()")
    browser.wait("document.getElementById('viewer').dataset.arrow === '0'")
    browser.run("document.querySelector('details').open = true")
    boxes = browser.run(
        "return [...document.querySelectorAll('.scroll')].filter((e) => e.clientHeight).map((e) => [e.clientHeight,"
        "e.scrollHeight, e.querySelector('li, tbody tr').offsetHeight, e.querySelector('thead')?.offsetHeight ?? 0])"
    )
    assert len(boxes) == 2
    for height, content, row, head in boxes:
        assert content > height and (height - head) % row == 0
    lines = browser.run("const p = document.getElementById('text-geometry').parentElement;"
                        "return [p.clientHeight - parseFloat(getComputedStyle(p).paddingTop),"
                        "parseFloat(getComputedStyle(p).lineHeight), p.scrollHeight > p.clientHeight]")  # fmt: skip
    assert lines[0] % lines[1] == 0 and lines[2]
    assert complaints(browser) == [] and browser.requests() == []
