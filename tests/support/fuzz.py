"""Damaged texts for the readers of files."""

from collections.abc import Callable

from hypothesis import strategies as st

from cuanto.errors import InputError

NUMBERS = ["nan", "-inf", "1e999", "1e-999", "1D+00", "0", "-1", "99999999999999999999", "\u0663"]


WORDS = ["H", "Xx", "@", "charge=9", "mult=", "BASIS", "END", "ECP", "F 0", "F-ECP 1 2", "SP", "null"]


MARKS = ["", "\n", " ", "****", "{", "}", "[", "\x0b", "#"]


TOKENS = st.sampled_from([*NUMBERS, *WORDS, *MARKS])


@st.composite
def damaged(draw: st.DrawFn, originals: list[str]) -> str:
    """A valid text with a few pieces cut out, doubled or replaced."""
    text = draw(st.sampled_from(originals))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        middle = draw(st.one_of(TOKENS, st.text(max_size=4), st.just(2 * text[start:end])))
        text = text[:start] + middle + text[end:]
    return text


def only_input_errors(action: Callable[[], object]) -> None:
    """Run something that may raise an InputError, of one line, and nothing else."""
    try:
        action()
    except InputError as error:
        message = str(error)
        assert message and "\n" not in message and len(message) < 600
