"""Pages of optimisations and vibrations: complete from objects and from files, with problems reported."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cuanto
from cuanto.errors import InputError
from cuanto.interfaces.vibrations import read_hessian, write_hessian
from cuanto.report import report_html
from cuanto.report.motion import band_heights
from vibration_cases import PLANAR, PM6, WATER


def data_of(html: str) -> dict[str, object]:
    text = html.split('id="report-data">')[1].split("</script>")[0]
    found: dict[str, object] = json.loads(text)
    return found


def test_a_page_of_vibrations(tmp_path: Path) -> None:
    found = cuanto.frequencies(PLANAR, **PM6)
    html = report_html(found)
    assert "Infrared spectrum" in html and "Thermochemistry" in html and "1 imaginary mode" in html
    assert html.count('class="stick"') == 5  # the imaginary mode is in the table only
    assert html.count('aria-label="Animate mode') == 6
    data = data_of(html)["vibrations"]
    assert isinstance(data, dict) and np.allclose(data["modes"], found.modes, atol=1e-4)
    assert "cuanto frequencies" in html
    path = tmp_path / "ammonia.json"
    write_hessian(path, found)
    assert data_of(report_html(path))["vibrations"] == data
    with pytest.raises(InputError, match="from the file"):
        report_html(read_hessian(path))


def test_a_page_of_an_optimisation(tmp_path: Path) -> None:
    found = cuanto.optimize(WATER, **PM6)
    html = report_html(found)
    data = data_of(html)["path"]
    assert isinstance(data, dict) and len(data["frames"]) == found.iterations == html.count(
        'class="dot change" data-step'
    )
    assert 'id="geometry"' in html and "cuanto optimize" in html and "NOT optimised" not in html
    path = tmp_path / "water.json"
    path.write_text(json.dumps(found.to_qcschema()))
    assert data_of(report_html(path))["path"] == data
    short = cuanto.optimize(WATER, **PM6, max_steps=2)
    assert "NOT optimised" in report_html(short)


def test_an_energy_has_no_spectrum_and_no_path() -> None:
    html = report_html(cuanto.energy(WATER, **PM6))
    assert "plot-spectrum" not in html and "plot-optimisation" not in html and 'id="geometry"' not in html


def test_bands_have_the_height_and_width_of_their_modes() -> None:
    at = np.array([1000.0, 1010.0, 990.0])
    heights = band_heights(np.array([-300.0, 1000.0]), np.array([7.0, 50.0]), at, 20.0)
    assert heights.tolist() == pytest.approx([50.0, 25.0, 25.0])


@pytest.mark.parametrize("trajectory", [{"a": 1}, "steps", 5, [1], [{"molecule": None}]], ids=str)
def test_a_damaged_trajectory_is_refused(trajectory: object) -> None:
    with pytest.raises(InputError):
        report_html({"schema_name": "qcschema_optimization_output", "trajectory": trajectory})
