"""Claims on files: one process at a time, whatever way the others ended."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from cuanto.claims import claim
from cuanto.errors import InputError
from scripted import wait_until

HOLD = """
import sys
from cuanto.claims import claim
held = claim(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("killed", [False, True])
def test_another_process_is_refused_until_the_first_has_ended(tmp_path: Path, killed: bool) -> None:
    path, pipe = tmp_path / "steps.xyz", subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(InputError, match=r"steps\.xyz is being written by another process: wait"):
            claim(path)
        assert claim(tmp_path / "others.xyz") is not None
        if killed:
            other.kill()
        else:
            other.communicate()
    held = claim(path)
    assert held is not None and claim(path) is held
    del held
    gc.collect()
    wait_until(lambda: list(tmp_path.iterdir()) == [])
