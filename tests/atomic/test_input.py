"""Input files of atoms: the format of the thesis, invalid input, configurations and tempered sets."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atom_inputs import CHROMIUM, LISTED, NITROGEN, OPTIMISE, WRONG, WRONG_ELSEWHERE
from cuanto.atomic.atom import AtomBasis
from cuanto.atomic.configuration import configuration_text, ground_configuration, occupation_of, parse_configuration
from cuanto.atomic.input import AtomInput, parse_input, read_input
from cuanto.atomic.job import element_job, limit_basis, parse_parameters, parse_ranges
from cuanto.atomic.wtbs import WellTempered, table, table_set
from cuanto.errors import InputError


def test_the_example_of_the_documentation() -> None:
    job = parse_input(NITROGEN)
    assert job.title == "N atom, 2p3 average"
    assert (job.nucleus.charge, job.nucleus.model) == (7.0, "gaussian")
    assert isinstance(job.basis, WellTempered) and job.basis == table_set("N").__class__(
        table_set("N").parameters, table_set("N").ranges, (1, 1, 1)
    )
    assert job.occupation.configurations == ((2.0, 1.0), (1.0, 2.0), (0.0, 3.0))
    np.testing.assert_allclose(job.occupation.normalised_weights, [4 / 20, 12 / 20, 4 / 20])
    settings = job.settings
    assert (settings.accelerator, settings.max_iterations, settings.c) == ("diis", 50, 137.03599976)
    assert (settings.threshold_LL, settings.threshold_SL, settings.threshold_SS) == (1e-8, 1e-10, 1e-12)
    assert job.atom().charge == 0 and job.optimise is None


def test_other_spellings_listed_configurations_and_defaults() -> None:
    job = parse_input(CHROMIUM)
    assert job.nucleus.model == "point"
    assert isinstance(job.basis, WellTempered) and job.basis.ranges == table_set("Cr").ranges
    assert job.occupation == occupation_of(parse_configuration("[Ar] 3d5 4s1"))
    settings = job.settings
    assert (settings.accelerator, settings.damping, settings.max_iterations) == ("damping", 0.3, 50)
    assert (settings.threshold_LL, settings.threshold_SL, settings.threshold_SS) == (1e-5, 1e-7, 1e-9)


def test_exponents_in_the_file() -> None:
    job = parse_input(LISTED)
    assert isinstance(job.basis, AtomBasis)
    np.testing.assert_array_equal(job.basis.exponents[0], [0.3, 1.2, 5.0, 25.0])
    assert (job.settings.c, job.nucleus.model, job.nucleus.size) == (137.0, "sphere", 1e-4)


def test_an_optimisation() -> None:
    trust = parse_input(OPTIMISE).optimise
    assert trust is not None
    assert (trust.rhobeg, trust.rhoend, trust.maxfun, trust.iprint) == (0.2, 1e-4, 300, 1)
    assert parse_input(OPTIMISE.replace("'bsopt'", "'energy'")).optimise is None  # the group $newuoa has no effect


def test_groups_of_parameters_and_weights() -> None:
    text = NITROGEN.replace("nsym=3", "nsym=3 ngroup=2").replace("1.442 nbs", "1.442, 4*1.5 groups=1,2,2 nbs")
    job = parse_input(text)
    assert isinstance(job.basis, WellTempered) and job.basis.groups == (1, 2, 2)
    exponents = job.basis.exponents()
    assert exponents[0][0] == 0.05976 and exponents[1][0] == exponents[2][0] == 1.5
    weighted = NITROGEN.replace("autogen=.true. $end", "nconf=2 $end\n2 1 0.25\n1 2 0.75")
    assert parse_input(weighted).occupation.weights == (0.25, 0.75)


@pytest.mark.parametrize(("old", "new", "line", "says"), WRONG)
def test_errors_name_the_line(old: str, new: str, line: int, says: str) -> None:
    assert old in NITROGEN
    with pytest.raises(InputError) as caught:
        parse_input(NITROGEN.replace(old, new, 1), "n.inp")
    message = str(caught.value)
    assert message.startswith(f"n.inp, line {line}: "), message
    assert says in message and "\n" not in message


@pytest.mark.parametrize(("source", "old", "new", "line", "says"), WRONG_ELSEWHERE)
def test_lines_of_numbers_and_optimisations_that_are_wrong(
    source: str, old: str, new: str, line: int, says: str
) -> None:
    assert old in source
    with pytest.raises(InputError) as caught:
        parse_input(source.replace(old, new, 1), "a.inp")
    assert str(caught.value).startswith(f"a.inp, line {line}: ") and says in str(caught.value), str(caught.value)


def test_names_of_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ends in \.inp"):
        read_input(tmp_path / "atom.txt")
    with pytest.raises(InputError, match="does not exist"):
        read_input(tmp_path / "atom.inp")
    (tmp_path / "atom.inp").write_text(NITROGEN)
    assert read_input(tmp_path / "atom.inp").title == "N atom, 2p3 average"


def check_job_or_error(text: str) -> None:
    """Check that the text gives a job, or a one-line error that names the line."""
    try:
        job = parse_input(text, "fuzz.inp")
    except InputError as error:
        assert re.match(r"fuzz\.inp, line \d+: .", str(error)) and "\n" not in str(error)
    else:
        assert isinstance(job, AtomInput)
        job.atom()


ENDS = ("$end", "/", "=", ",", "'", '"', "!", "$scf", "&nuc", "\n", "\r\n", "\t")
PIECES = st.sampled_from([*ENDS, "3*", "3*1", "-1", "0", "1d5", "1e400", "1e30", "1e-12", "nan", "x"])
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.?\d*(?:[ed][-+]?\d+)?(?![\w.])", re.IGNORECASE)


@pytest.mark.parametrize("number", ["0", "-1", "1e-300", "1e-12", "0.5", "1e5", "1d30", "1e300", "1e400", "nan"])
@pytest.mark.parametrize("text", [NITROGEN, CHROMIUM, LISTED, OPTIMISE], ids=["N", "Cr", "listed", "optimise"])
def test_every_number_of_a_file_may_be_absurd(text: str, number: str) -> None:
    """Replace one number at a time; if the file is accepted, its atom can be created."""
    found = list(NUMBER.finditer(text, text.index("\n")))
    assert len(found) > 5
    for old in found:
        check_job_or_error(text[: old.start()] + number + text[old.end() :])


@given(st.sampled_from([NITROGEN, CHROMIUM, LISTED, OPTIMISE]), st.data())
def test_damaged_files_give_results_or_input_errors(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        i = data.draw(st.integers(0, len(text)))
        j = data.draw(st.integers(i, min(len(text), i + 12)))
        text = text[:i] + data.draw(PIECES | st.text(max_size=3)) + text[j:]
    check_job_or_error(text)


@given(st.text(max_size=300))
def test_any_text_gives_a_job_or_an_error(text: str) -> None:
    check_job_or_error(text)


# --------------------------------------------------------------------------------- configurations and sets


def test_configurations() -> None:
    assert configuration_text(ground_configuration("Cr")) == "[Ar] 3d5 4s1"
    assert configuration_text(ground_configuration("Fe", 2)) == "[Ar] 3d6"
    assert parse_configuration("[Ar] 3d5 4s1") == ground_configuration("Cr")
    assert parse_configuration("1s2, 2s^2 2p{3}") == ground_configuration("N")
    assert occupation_of(ground_configuration("He"), 1).closed == (1, 0, 0)
    chromium = occupation_of(ground_configuration("Cr"))
    assert chromium.closed == (3, 2, 2, 0, 0) and chromium.open == (True, False, False, True, True)
    assert chromium.configurations == ((1, 4, 1), (1, 3, 2), (1, 2, 3), (1, 1, 4), (1, 0, 5))
    np.testing.assert_allclose(chromium.mean_occupations, [1, 2, 3])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[Fe] 4s2", r"core \[Fe\]"),
        ("1s2 2d1", "no 2d"),
        ("1s3", "holds 2 electrons, not 3"),
        ("1s2 1s2", "given twice"),
        ("hello", "not a subshell such as 3d5"),
        ("", "no electrons"),
        ("1s2 3s1", "3s is occupied but 2s is not"),
        ("1s1 2s2", "1s is open below 2s"),
    ],
)
def test_configurations_that_make_no_sense(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        occupation_of(parse_configuration(text))


def test_table_of_well_tempered_sets() -> None:
    assert len(table()) == 80 and table_set("Rn").range_text() == "s(1:32)p(1:27)d(3:23)f(6:19)"
    for found in table().values():
        assert found.invalid_reason() is None
    with pytest.raises(InputError, match="has no Ce"):
        table_set("Ce")


def test_the_last_index_counts_for_each_symmetry_or_for_all() -> None:
    own = WellTempered.shared((0.1, 2.0, 3.0, 1.5), {"s": (1, 6), "p": (2, 4)})
    pool = WellTempered(own.parameters, own.ranges, pool=True)
    zeta = [0.1]
    for k in range(2, 5):
        zeta.append(zeta[-1] * 2.0 * (1 + 1.5 * (k / 4) ** 3))
    np.testing.assert_allclose(own.exponents()[1], zeta[1:], rtol=1e-15)
    np.testing.assert_allclose(pool.exponents()[1], pool.exponents()[0][1:4], rtol=1e-15)
    assert own.range_text() == "s(1:6)p(2:4)"
    assert WellTempered(own.parameters, ((1, 6), (2, 4), (1, 4))).range_text() == "s(1:6)p-(2:4)p+(1:4)"


def test_jobs_by_element() -> None:
    assert element_job("cr").title == "Cr, [Ar] 3d5 4s1"
    assert element_job("Ne", charge=1).atom().electrons == 9
    assert element_job("La").occupation.nsym == 7  # the table has f functions, which are empty
    assert element_job("Ne", ranges="s(1:20)p(2:12)").basis == WellTempered.shared(
        table_set("Ne").parameters, {"s": (1, 20), "p": (2, 12)}
    )
    assert limit_basis("Ce", 3).nsym == 7
    assert parse_parameters("1, 2,3 4d0") == (1.0, 2.0, 3.0, 4.0)
    for call, says in [
        (lambda: element_job("Ne", configuration="1s2", charge=0), "has 2 electrons, Ne with charge 0 has 10"),
        (lambda: element_job("H", configuration="1s2 2s2"), "more than H can bind"),
        (lambda: element_job("Ne", charge=10), "must leave between"),
        (lambda: element_job("Ne", ranges="s(1:20)"), "needs p functions"),
        (lambda: element_job("Ne", "limit", ranges="s(1:20)"), "belong to --basis wtbs"),
        (lambda: parse_ranges("s(1:20)q(1:2)"), "write them as"),
        (lambda: parse_ranges("s(5:2)"), "write them as"),
        (lambda: parse_parameters("1 2 3"), "give four numbers"),
    ]:
        with pytest.raises(InputError, match=says):
            call()
