"""Methods that are known but not implemented: the message says what would work."""

from __future__ import annotations

import re

from cuanto.errors import InputError
from cuanto.functionals import get_functional
from cuanto.functionals.registry import spell_out
from cuanto.terms.dispersion import METHODS as PARAMETRISED

DAMPING = "cuanto has D3 with Becke-Johnson damping (-d3bj) and D4 (-d4)"
EXAMPLE = "b3lyp-d3bj"
"""In advice, replaced by the functional that was given."""
FUNCTIONAL = "`cuanto functionals` lists the available ones"
CORRELATION = (
    "wave-function correlation; use a functional such as b3lyp-d4 or wb97x, hf, or a semiempirical method such as pm6"
)
EXCITED = (
    "excited states; cuanto computes the lowest state of each multiplicity, for example the lowest triplet with "
    "multiplicity 3"
)
DOUBLE_HYBRID = "double hybrids need MP2; use a hybrid such as b3lyp-d4, pbe0-d4 or wb97x"
DISPERSION = r"(-d[234].*)?"
_DOUBLE = (
    r"w?b2\w*-?plyp|mpw2k?-?plyp|(rev)?(dsd|dod)-.*|pw[pr]b95|xyg[35-7]|xygj-?os|xdh.*|p?tpss-?dh|ptpss|tpss0-dh|"
    r"(sos[01]?-)?(r2scan0?|pbe0?|scan0|tpss0?|b3lyp|lc-pbe)-?(dh|cidh|qidh|2)|[kw]?pr2scan(50|69)|"
    r"(w|omega-?)(b97x-2(-lp|-tqz)?|b97m\(2\)|b88pp86|pbepp86)"
)
_CLUSTERS = r"(qci|cc|ci|bcc|cepa|acpf)(s|sd|sdt|sd\(t\)|d|sdtq)?(\(t\)|\(1\))?"
_REFERENCES = r"f(ull-?)?ci|dmrg.*|casscf|casci|rasscf|mcscf|caspt2|rasci|(sc-)?nevpt2|mrci.*|vmc|dmc"
ABSENT = (
    (rf"[ur]?({_DOUBLE}){DISPERSION}", DOUBLE_HYBRID),
    (r"s?(td-?dft|td-?hf|tda|cis|cis\(d\)|td-?dftb|ci-?singles)", EXCITED),
    (r"s?(td|tda|tddft)[-/(].+|.+-(td|tda|tddft)", EXCITED),
    (r"(eom|ee|ip|ea|sf|lr)-.*|adc(\(?[23]\)?|\(?2\)?-x)|(u|r|ri-)*cc[23]|bse.*|(g0w0|evgw|qsgw|gw)(@.*)?", EXCITED),
    (r"(ri-|df-|o|u|r|z|l|scs-|sos-|sns-|dlpno-|lno-)*mp[2-5](\.5|-f12)?(\(.*\))?", CORRELATION),
    (rf"(dlpno-|lno-|lpno-|df-|ri-|cr-|o|u|r|l|p)*({_CLUSTERS})(-f12.*|/.*)?", CORRELATION),
    (rf"(ss-|sa-|ms-|xms-)?({_REFERENCES})|d?rpa|sapt.*|g[1-4](mp2)?|cbs-.*|w[12].*", CORRELATION),
    (
        r"(w|omega-?)b97x-?d3?",
        "it is a different parametrisation of the functional; use wb97x, or b3lyp-d3bj or b3lyp-d4",
    ),
    (r"(gfn[012]-?xtb|gfn-?ff|xtb|dftb3?|ani-?2?x?|aimnet2?)(-d.*)?", "use mndo, am1, pm3, pm6 or rm1"),
    (r"[ur]?(pm7|om[123]|odm[23]|indo/?[12s]?|zindo.*|cndo/?2?|msindo)(-d.*)?", "use pm6, rm1 or am1"),
    (
        r"[ur]?(mndo|am1|pm[36]|rm1)-d.*",
        "cuanto has no dispersion corrections or d variants of semiempirical methods: use pm6, rm1 or am1",
    ),
    (r".*-(v|nl|vv10|rvv10)", f"non-local correlation (VV10); {DAMPING}"),
    (r".*-3c", f"composite methods; {DAMPING}, for example r2scan-d4"),
    (
        r"(?P<functional>.+)-(d2|d3zero|d3\(0\)|d3\(zero\)|d3m|d3m\(?bj\)?|mbd|ts|xdm)",
        f"{DAMPING}, for example {EXAMPLE}",
    ),
    (r"b97-?d(3|3bj)?(-d3bj)?", FUNCTIONAL),
    (r"(?P<functional>.+)-d3?", f"name its damping: {DAMPING}, for example {EXAMPLE}"),
    (r"(hse0?[36]|lc-.*|m05(-2x)?|m06(-hf)?|m11(-l)?|mn1[25](-s?x?l?)?|sogga.*|n12.*|b97(-[123])?|b98)", FUNCTIONAL),
    (
        r"(x3lyp|o3lyp|b3pw91|b1b95|mpw.*|pw6b95|rpbe|pbesol|olyp|opbe|b97m|revtpss|revscan|rscan|rev-?m06-?l?)",
        FUNCTIONAL,
    ),
)
"""Patterns of names, and what to say about them."""


def require_implemented(method: str) -> None:
    """Refuse a method that is known to be missing; names that nobody knows are left to the caller."""
    named = method.strip()
    if (found := _find(spell_out(named.lower()))) is None:
        return
    advice, functional = found
    if functional is not None and (missing := _find(functional.removeprefix("u"))) is not None:
        named, advice = named[: len(functional)], missing[0]
    elif functional is not None:
        if (example := _with_damping(functional)) is None:
            return
        advice = advice.replace(EXAMPLE, example)
    raise InputError(f"not implemented: {named}; {advice}")


def _find(plain: str) -> tuple[str, str | None] | None:
    """Find the advice about a missing method, and its functional if only the dispersion correction is missing."""
    for pattern, advice in ABSENT:
        if found := re.fullmatch(pattern, plain):
            return advice, found.groupdict().get("functional")
    return None


def _with_damping(functional: str) -> str | None:
    """The functional, or Hartree-Fock, with D3(BJ); an example if it has no parameters, None if it is unknown."""
    plain = functional.removeprefix("u")
    try:
        name = "hf" if plain in ("hf", "rhf") else get_functional(plain).name
    except InputError:
        return None
    return f"{functional}-d3bj" if name in PARAMETRISED["d3bj"] else EXAMPLE
