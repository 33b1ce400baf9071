"""Write the Lebedev rules of SciPy as weights and one point of each orbit.

python tools/make_lebedev.py > src/cuanto/grid/data/lebedev.json
"""

from __future__ import annotations

import json

import numpy as np
import scipy
from scipy.integrate import lebedev_rule

from cuanto.grid.rules import DEGREES


def orbits(points: int) -> list[list[float]]:
    """Weight and ascending coordinates of one point of each orbit, in the order of SciPy's points."""
    x_xg, w_g = lebedev_rule(DEGREES[points])
    rows = np.vstack([w_g, np.sort(abs(x_xg), axis=0)]).T.tolist()
    return [list(row) for row in dict.fromkeys(map(tuple, rows))]


def main() -> None:
    """Print the rules in JSON, an orbit a line."""
    source = (
        "V. I. Lebedev, D. N. Laikov, Dokl. Math. 59, 477 (1999), as in scipy.integrate.lebedev_rule of SciPy "
        f"{scipy.__version__}; written by tools/make_lebedev.py"
    )
    contents = "by the number of points: weight and one point of each orbit; the signs and orders of its coordinates"
    rules = ",\n".join(
        f'    "{points}": [\n' + ",\n".join(f"      {json.dumps(orbit)}" for orbit in orbits(points)) + "\n    ]"
        for points in DEGREES
    )
    print(f'{{\n  "source": "{source}",\n  "contents": "{contents} give the others",\n  "rules": {{\n{rules}\n  }}\n}}')


if __name__ == "__main__":
    main()
