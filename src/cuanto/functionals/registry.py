"""Functionals by the names that people use."""

from __future__ import annotations

import difflib
from functools import cache

from cuanto.errors import InputError
from cuanto.functionals.functional import Functional, Part, RangeSeparation, labels
from cuanto.functionals.parts import Citation

_B3LYP = (
    Citation("A. D. Becke, J. Chem. Phys. 98, 5648 (1993)", "10.1063/1.464913"),
    Citation(
        "P. J. Stephens, F. J. Devlin, C. F. Chabalowski, M. J. Frisch, J. Phys. Chem. 98, 11623 (1994)",
        "10.1021/j100096a001",
    ),
)
_PBE0 = (
    Citation("C. Adamo, V. Barone, J. Chem. Phys. 110, 6158 (1999)", "10.1063/1.478522"),
    Citation("M. Ernzerhof, G. E. Scuseria, J. Chem. Phys. 110, 5029 (1999)", "10.1063/1.478401"),
)
_HALF = (Citation("A. D. Becke, J. Chem. Phys. 98, 1372 (1993)", "10.1063/1.464304"),)
_TPSSH = (
    Citation(
        "V. N. Staroverov, G. E. Scuseria, J. Tao, J. P. Perdew, J. Chem. Phys. 119, 12129 (2003)", "10.1063/1.1626543"
    ),
)
_CAM = (Citation("T. Yanai, D. P. Tew, N. C. Handy, Chem. Phys. Lett. 393, 51 (2004)", "10.1016/j.cplett.2004.06.011"),)


def _sum(*labels_: str) -> tuple[Part, ...]:
    return tuple(Part(1.0, label) for label in labels_)


def _b3lyp(local: str) -> tuple[Part, ...]:
    return Part(0.08, "lda_x"), Part(0.72, "gga_x_b88"), Part(0.19, local), Part(0.81, "gga_c_lyp")


_CAM_PARTS = (
    Part(0.35, "gga_x_b88"),
    Part(0.46, "gga_x_ityh", 0.33),
    Part(0.19, "lda_c_vwn"),
    Part(0.81, "gga_c_lyp"),
)

_KNOWN: tuple[tuple[Functional, tuple[str, ...]], ...] = (
    (Functional("svwn5", _sum("lda_x", "lda_c_vwn"), note="Slater, VWN5"), ("lda", "lsda", "svwn")),
    (Functional("svwn1rpa", _sum("lda_x", "lda_c_vwn_rpa"), note="Slater, VWN1 with RPA constants"), ("svwn-rpa",)),
    (Functional("spw92", _sum("lda_x", "lda_c_pw"), note="Slater, PW92"), ()),
    (Functional("blyp", _sum("gga_x_b88", "gga_c_lyp")), ()),
    (Functional("bp86", _sum("gga_x_b88", "gga_c_p86"), note="local part of Perdew and Zunger"), ()),
    (Functional("pbe", _sum("gga_x_pbe", "gga_c_pbe")), ("pbepbe",)),
    (Functional("revpbe", _sum("gga_x_pbe_r", "gga_c_pbe")), ()),
    (Functional("pw91", _sum("gga_x_pw91", "gga_c_pw91")), ("pw91pw91",)),
    (Functional("tpss", _sum("mgga_x_tpss", "mgga_c_tpss")), ("tpsstpss",)),
    (Functional("scan", _sum("mgga_x_scan", "mgga_c_scan")), ()),
    (Functional("r2scan", _sum("mgga_x_r2scan", "mgga_c_r2scan")), ()),
    (Functional("m06-l", _sum("mgga_x_m06_l", "mgga_c_m06_l")), ()),
    (
        Functional("b3lyp", _b3lyp("lda_c_vwn_rpa"), 0.2, papers=_B3LYP, note="VWN1-RPA, as in Gaussian and Libxc"),
        ("b3lyp-vwn1rpa", "b3lypg", "hyb_gga_xc_b3lyp"),
    ),
    (
        Functional("b3lyp5", _b3lyp("lda_c_vwn"), 0.2, papers=_B3LYP, note="VWN5, as in ORCA and Turbomole"),
        ("b3lyp-vwn5", "b3lyp/vwn5", "hyb_gga_xc_b3lyp5"),
    ),
    (
        Functional("pbe0", (Part(0.75, "gga_x_pbe"), Part(1.0, "gga_c_pbe")), 0.25, papers=_PBE0),
        ("pbe1pbe", "pbeh", "hyb_gga_xc_pbeh"),
    ),
    (
        Functional("bhandhlyp", (Part(0.5, "gga_x_b88"), Part(1.0, "gga_c_lyp")), 0.5, papers=_HALF),
        ("bhlyp", "hyb_gga_xc_bhandhlyp"),
    ),
    (
        Functional("tpssh", (Part(0.9, "mgga_x_tpss"), Part(1.0, "mgga_c_tpss")), 0.1, papers=_TPSSH),
        ("hyb_mgga_xc_tpssh",),
    ),
    (Functional("m06-2x", _sum("hyb_mgga_x_m06_2x", "mgga_c_m06_2x"), 0.54), ()),
    (
        Functional("cam-b3lyp", _CAM_PARTS, 0.19, RangeSeparation(0.33, 0.19, 0.46), _CAM, "VWN5"),
        ("hyb_gga_xc_cam_b3lyp",),
    ),
    (
        Functional("wb97x", (Part(1.0, "hyb_gga_xc_wb97x", 0.3),), 0.157706, RangeSeparation(0.3, 0.157706, 0.842294)),
        ("omega-b97x",),
    ),
)

DISPERSION = {"-d3bj": "d3bj", "-d3(bj)": "d3bj", "-d4": "d4"}
"""Endings of a method's name, with the dispersion correction they ask for."""


def functional_names() -> list[str]:
    """The names that lists show."""
    return [functional.name for functional, _ in _KNOWN]


def aliases(name: str) -> tuple[str, ...]:
    """Other names of a functional."""
    return next((others for functional, others in _KNOWN if functional.name == name), ())


def _key(name: str) -> str:
    """Case, hyphens, spaces and Greek or raised signs do not matter."""
    plain = name.strip().lower().replace("\u03c9", "w").replace("\u00b2", "2").replace("omega", "w")
    return "".join(letter for letter in plain if letter not in "-_ /")


@cache
def _by_key() -> dict[str, Functional]:
    found = {_key(label): Functional(label, _sum(label)) for label in labels() if not label.startswith("hyb_")}
    found.pop(_key("gga_x_ityh"))  # has no meaning without omega
    for functional, others in _KNOWN:
        found |= {_key(name): functional for name in (functional.name, *others)}
    return found


def get_functional(name: str) -> Functional:
    """By a usual name, by the Libxc label of a part, or by several labels joined with `+`."""
    known = _by_key()
    if _key(name) in known:
        return known[_key(name)]
    pieces = name.split("+")
    if len(pieces) > 1:
        chosen = [get_functional(piece) for piece in pieces]
        if any(functional.exact_exchange for functional in chosen):
            raise InputError(f"{name!r} joins a hybrid with something else: join parts such as gga_x_pbe+gga_c_pbe")
        return Functional(name.lower(), tuple(part for functional in chosen for part in functional.parts))
    raise InputError(unknown(name))


def unknown(name: str) -> str:
    """One line for a name that is none."""
    everything = {_key(key): key for functional, others in _KNOWN for key in (functional.name, *others)}
    everything |= {_key(label): label for label in labels()}
    close = difflib.get_close_matches(_key(name), everything, n=3, cutoff=0.5)
    if close:
        return f"unknown functional {name!r}; did you mean {', '.join(everything[key] for key in close)}?"
    return f"unknown functional {name!r}; `cuanto functionals` lists those there are"


def split_dispersion(method: str) -> tuple[str, str | None]:
    """`b3lyp-d3bj` -> (`b3lyp`, `d3bj`); None without an ending."""
    for ending, dispersion in DISPERSION.items():
        if method.strip().lower().endswith(ending):
            return method.strip()[: -len(ending)], dispersion
    return method, None
