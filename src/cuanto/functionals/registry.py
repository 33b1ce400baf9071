"""Functionals by their common names."""

from __future__ import annotations

import difflib
from functools import cache
from typing import Any

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


def _parts(text: str) -> tuple[Part, ...]:
    """Parts of a sum such as `0.75 gga_x_pbe + gga_c_pbe`; a short-range part is written `0.46 gga_x_ityh(0.33)`."""
    parts = []
    for term in text.split("+"):
        *factor, label = term.split()
        label, *omega = label.rstrip(")").split("(")
        parts.append(Part(float(factor[0]) if factor else 1.0, label, float(omega[0]) if omega else None))
    return tuple(parts)


_B3LYP_PARTS = "0.08 lda_x + 0.72 gga_x_b88 + 0.19 {} + 0.81 gga_c_lyp"
_CAM_PARTS = "0.35 gga_x_b88 + 0.46 gga_x_ityh(0.33) + 0.19 lda_c_vwn + 0.81 gga_c_lyp"
_CAM_RANGES, _WB97X_RANGES = RangeSeparation(0.33, 0.19, 0.46), RangeSeparation(0.3, 0.157706, 0.842294)
_KNOWN: dict[str, Functional] = {}


def _add(name: str, parts: str, exact_exchange: float = 0.0, **more: Any) -> None:
    _KNOWN[name] = Functional(name, _parts(parts), exact_exchange, **more)


_add("svwn5", "lda_x + lda_c_vwn", note="Slater, VWN5")
_add("svwn1rpa", "lda_x + lda_c_vwn_rpa", note="Slater, VWN1 with RPA constants")
_add("spw92", "lda_x + lda_c_pw", note="Slater, PW92")
_add("blyp", "gga_x_b88 + gga_c_lyp")
_add("bp86", "gga_x_b88 + gga_c_p86", note="local part of Perdew and Zunger")
_add("pbe", "gga_x_pbe + gga_c_pbe")
_add("revpbe", "gga_x_pbe_r + gga_c_pbe")
_add("pw91", "gga_x_pw91 + gga_c_pw91")
_add("tpss", "mgga_x_tpss + mgga_c_tpss")
_add("scan", "mgga_x_scan + mgga_c_scan")
_add("r2scan", "mgga_x_r2scan + mgga_c_r2scan")
_add("m06-l", "mgga_x_m06_l + mgga_c_m06_l")
_add("b3lyp", _B3LYP_PARTS.format("lda_c_vwn_rpa"), 0.2, papers=_B3LYP, note="VWN1-RPA, as in Gaussian and Libxc")
_add("b3lyp5", _B3LYP_PARTS.format("lda_c_vwn"), 0.2, papers=_B3LYP, note="VWN5, as in ORCA and Turbomole")
_add("pbe0", "0.75 gga_x_pbe + gga_c_pbe", 0.25, papers=_PBE0)
_add("bhandhlyp", "0.5 gga_x_b88 + gga_c_lyp", 0.5, papers=_HALF)
_add("tpssh", "0.9 mgga_x_tpss + mgga_c_tpss", 0.1, papers=_TPSSH)
_add("m06-2x", "hyb_mgga_x_m06_2x + mgga_c_m06_2x", 0.54)
_add("cam-b3lyp", _CAM_PARTS, 0.19, range_separation=_CAM_RANGES, papers=_CAM, note="VWN5")
_add("wb97x", "hyb_gga_xc_wb97x(0.3)", 0.157706, range_separation=_WB97X_RANGES)

_ALIASES = {
    "svwn5": ("lda", "lsda", "svwn"),
    "svwn1rpa": ("svwn-rpa",),
    "pbe": ("pbepbe",),
    "pw91": ("pw91pw91",),
    "tpss": ("tpsstpss",),
    "b3lyp": ("b3lyp-vwn1rpa", "b3lypg", "hyb_gga_xc_b3lyp"),
    "b3lyp5": ("b3lyp-vwn5", "b3lyp/vwn5", "hyb_gga_xc_b3lyp5"),
    "pbe0": ("pbe1pbe", "pbeh", "hyb_gga_xc_pbeh"),
    "bhandhlyp": ("bhlyp", "hyb_gga_xc_bhandhlyp"),
    "tpssh": ("hyb_mgga_xc_tpssh",),
    "cam-b3lyp": ("hyb_gga_xc_cam_b3lyp",),
    "wb97x": ("omega-b97x",),
}
DISPERSION = {"-d3bj": "d3bj", "-d3(bj)": "d3bj", "-d4": "d4"}
"""Suffixes of a method's name and the dispersion corrections that they select."""


def functional_names() -> list[str]:
    """Names of all functionals, in the order in which they are listed."""
    return list(_KNOWN)


def aliases(name: str) -> tuple[str, ...]:
    """Other names of a functional."""
    return _ALIASES.get(name, ())


def spell_out(name: str) -> str:
    """The name in lower case with Greek and raised characters as their letter and digit: w for \u03c9, 2 for \u00b2."""
    return name.replace("\u03c9", "w").replace("\u00b2", "2")


def _key(name: str) -> str:
    """The name in lower case without hyphens and spaces, and with Greek or raised characters spelled out."""
    plain = spell_out(name.strip().lower()).replace("omega", "w")
    return "".join(letter for letter in plain if letter not in "-_ /")


@cache
def _by_key() -> dict[str, Functional]:
    found = {_key(label): Functional(label, _parts(label)) for label in labels() if not label.startswith("hyb_")}
    found.pop(_key("gga_x_ityh"))  # undefined without omega
    for name, functional in _KNOWN.items():
        found |= {_key(own): functional for own in (name, *aliases(name))}
    return found


def get_functional(name: str) -> Functional:
    """A functional by its common name, by the Libxc label of a part, or by several labels joined with `+`."""
    known = _by_key()
    if _key(name) in known:
        return known[_key(name)]
    pieces = name.split("+")
    if len(pieces) > 1:
        chosen = [get_functional(piece) for piece in pieces]
        if any(functional.exact_exchange for functional in chosen):
            raise InputError(f"{name!r} joins a hybrid with something else: join parts such as gga_x_pbe+gga_c_pbe")
        return Functional(name.lower(), tuple(part for functional in chosen for part in functional.parts))
    raise InputError(unknown_message(name))


def unknown_message(name: str) -> str:
    """Message about an unknown name."""
    everything = {_key(name): name for known in _KNOWN for name in (known, *aliases(known))}
    everything |= {_key(label): label for label in labels()}
    close = difflib.get_close_matches(_key(name), everything, n=3, cutoff=0.5)
    if close:
        return f"unknown functional {name!r}; did you mean {', '.join(everything[key] for key in close)}?"
    return f"unknown functional {name!r}; `cuanto functionals` lists the available ones"


def split_dispersion(method: str) -> tuple[str, str | None]:
    """`b3lyp-d3bj` -> (`b3lyp`, `d3bj`); None without a suffix."""
    for ending, dispersion in DISPERSION.items():
        if method.strip().lower().endswith(ending):
            return method.strip()[: -len(ending)], dispersion
    return method, None
