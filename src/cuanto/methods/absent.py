"""Methods that are known but not implemented: the message says what would work."""

from __future__ import annotations

import re

from cuanto.errors import InputError

DAMPING = "cuanto has D3 with Becke-Johnson damping (-d3bj) and D4 (-d4)"
CORRELATION = "methods are hf, functionals such as b3lyp-d4 (`cuanto functionals`) and semiempirical ones such as pm6"
FUNCTIONAL = "`cuanto functionals` lists those there are"
ABSENT = (
    (r"(ri-|df-|o|u|r|scs-|sos-|lmp|dlpno-|lno-)*mp[2-4](\.5|-f12)?", f"wave-function correlation; {CORRELATION}"),
    (r"(dlpno-|df-|ri-|eom-|u|r)*(qci|cc|ci|bcc)(s|2|3|sd|sdt|sd\(t\)|d|sdtq)(\(t\))?(-f12)?", CORRELATION),
    (r"fci|dmrg|casscf|casci|caspt2|nevpt2|rasscf|mrci|adc\(?[23]\)?|sapt.*|gw|d?rpa", CORRELATION),
    (r"(td-?dft|td-?hf|tda|cis|cis\(d\))", f"excited states; {CORRELATION}"),
    (r"(b2plyp|b2gp-?plyp|dsd-.*|pwpb95|xyg3|revdsd-.*|pbe-?qidh|pbe0-?dh)(-d[234].*)?", "double hybrids need MP2"),
    (r"(w|omega-?)b97x-?d3?", "its functional has parameters of its own; use wb97x, or b3lyp-d3bj or b3lyp-d4"),
    (r".*-(v|nl|vv10|rvv10)", f"non-local correlation (VV10); {DAMPING}"),
    (r".*-3c", f"composite methods; {DAMPING}, for example r2scan-d4"),
    (r".*-(d2|d3zero|d3\(0\)|d3\(zero\)|d3m|d3m\(?bj\)?|mbd|ts|xdm)", DAMPING),
    (r".+-d3", f"name its damping: {DAMPING}"),
    (r"(gfn[012]-?xtb|gfn-?ff|xtb|dftb3?|ani-?2?x?|aimnet2?)", "use mndo, am1, pm3, pm6 or rm1"),
    (r"(pm7|pm6-(d3h4|dh\+|d3|dh2x?)|om[123]|odm[23]|indo/?[12s]?|zindo.*|cndo/?2?|msindo)", "use pm6, rm1 or am1"),
    (r"(hse0?[36]|lc-.*|m05(-2x)?|m06(-hf)?|m11(-l)?|mn1[25](-s?x?l?)?|sogga.*|n12.*|b97(-[123])?|b98)", FUNCTIONAL),
    (r"(x3lyp|o3lyp|b3pw91|b1b95|mpw.*|pw6b95|rpbe|olyp|opbe|b97m|revtpss|revscan|rscan|rev-?m06-?l?)", FUNCTIONAL),
)
"""Patterns of names, and what to say about them."""


def require_implemented(method: str) -> None:
    """Refuse a method that is known to be missing."""
    plain = method.strip().lower()
    for pattern, advice in ABSENT:
        if re.fullmatch(pattern, plain):
            raise InputError(f"not implemented: {method.strip()}; {advice}")
