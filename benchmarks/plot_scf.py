"""Plot cost against size as a small SVG for the documentation, from the result files of `scf.py --scan`.

    python benchmarks/plot_scf.py [FILE.json ...] [--svg docs/images/scf_cost.svg]

Without arguments it reads the files in benchmarks/results. Both axes are logarithmic; the slope at the larger molecules
is the exponent. No plotting library is needed for two axes and a few lines.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import ROOT
from scf_systems import load_warning

RESULTS = ROOT / "benchmarks" / "results"
WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 290, 16, 48
COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7b4b94", "#8a6d3b", "#444444")
STYLE = "text{font:13px sans-serif;fill:#222}.t{font-size:11px;fill:#555}.g{stroke:#ddd}.a{stroke:#222;fill:none}"


@dataclass(frozen=True)
class Scale:
    """A logarithmic axis from `low` to `high`, drawn from pixel `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """1, 2 and 5 times powers of ten; only powers of ten if the axis spans three decades or more."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        steps = (1, 2, 5) if self.high < 1000 * self.low else (1,)
        values = [step * 10.0**decade for decade in decades for step in steps]
        return [value for value in values if 0.999 * self.low <= value <= 1.001 * self.high]


def scale(values: list[float], start: float, end: float) -> Scale:
    """An axis with a little room at both ends."""
    return Scale(min(values) / 1.15, max(values) * 1.15, start, end)


def title(record: dict[str, Any]) -> str:
    """The legend of a scan: molecules, method, machine and scaling exponent."""
    machine = record["machine"]
    where = machine.get("gpu") or f"{machine['threads']} cores"
    scaling = f", N^{record['exponent']:.1f}" if record["exponent"] is not None else ""
    method = record["method"].split("-")[0]
    return f"{record['scan']}, {method}, {where}{scaling}"


def axes(x: Scale, y: Scale) -> Iterator[str]:
    """Draw the grid lines, ticks and labels."""
    right, base = WIDTH - RIGHT, HEIGHT - BOTTOM
    for value in x.ticks():
        at = x(value)
        yield f'<path class="g" d="M{at:.1f} {TOP}V{base}"/>'
        yield f'<text class="t" x="{at:.1f}" y="{base + 16}" text-anchor="middle">{value:g}</text>'
    for value in y.ticks():
        at = y(value)
        yield f'<path class="g" d="M{LEFT} {at:.1f}H{right}"/>'
        yield f'<text class="t" x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{value:g}</text>'
    yield f'<path class="a" d="M{LEFT} {TOP}V{base}H{right}"/>'
    yield f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 10}" text-anchor="middle">basis functions N</text>'
    middle = (TOP + base) / 2
    yield f'<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">seconds</text>'


def curve(record: dict[str, Any], x: Scale, y: Scale, number: int) -> Iterator[str]:
    """Draw a line with points, and its entry in the legend."""
    colour = COLOURS[number % len(COLOURS)]
    points = [(x(point["functions"]), y(point["seconds"])) for point in record["points"]]
    line = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
    yield f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
    dots = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in points)
    yield f'<path d="{dots}" stroke="{colour}" stroke-width="6" stroke-linecap="round"/>'
    left, high = WIDTH - RIGHT + 14, TOP + 14 + 22 * number
    yield f'<path d="M{left} {high - 4}h18" stroke="{colour}" stroke-width="3"/>'
    yield f'<text x="{left + 24}" y="{high}">{title(record)}</text>'


def draw(records: list[dict[str, Any]]) -> str:
    """The whole plot as SVG."""
    points = [point for record in records for point in record["points"]]
    x = scale([point["functions"] for point in points], LEFT, WIDTH - RIGHT)
    y = scale([point["seconds"] for point in points], HEIGHT - BOTTOM, TOP)
    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', *axes(x, y)]
    for number, record in enumerate(records):
        parts += curve(record, x, y, number)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    caption = "<title>Seconds of RHF/cc-pVDZ against the number of basis functions</title>"
    return "\n".join([head, caption, f"<style>{STYLE}</style>", *parts, "</svg>"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--svg", type=Path, default=ROOT / "docs" / "images" / "scf_cost.svg")
    options = parser.parse_args()
    scans = ("alkanes", "waters", "waters_direct")
    known = [RESULTS / f"scf_{scan}_{where}.json" for where in ("cpu", "cuda") for scan in scans]
    files = options.files or [file for file in known if file.exists()]
    if not files:
        parser.error("no results yet: run scf.py --scan alkanes --json benchmarks/results/scf_alkanes_cpu.json")
    options.svg.parent.mkdir(parents=True, exist_ok=True)
    records = [json.loads(file.read_text()) for file in files]
    for file, record in zip(files, records, strict=True):
        if warning := load_warning(record):
            print(f"{file.name}: {warning}")
    options.svg.write_text(draw(records))
    print(f"written: {options.svg}, {options.svg.stat().st_size} bytes")


if __name__ == "__main__":
    main()
