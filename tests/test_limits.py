"""Limits of memory: control groups of both versions, and `ulimit -v`."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from cuanto import limits
from cuanto.backends import host
from cuanto.backends.base import get_backend
from cuanto.errors import InputError
from cuanto.limits import ADDRESSES, GROUP, MIB, Limit
from cuanto.memory import FREE_FRACTION, Budget

H2 = "2\n\nH 0 0 0\nH 0 0 0.74\n"


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def groups(root: Path) -> list[Limit]:
    return [limit for limit in limits.limits(root) if limit.origin == GROUP]


def test_a_group_of_version_2(tmp_path: Path) -> None:
    """Cached files count as free. The limits of enclosing groups apply as well; "max" means that there is none."""
    root = put(
        tmp_path,
        {
            "proc/self/cgroup": "0::/job/step\n",
            "sys/fs/cgroup/job/step/memory.max": "1000\n",
            "sys/fs/cgroup/job/step/memory.current": "700\n",
            "sys/fs/cgroup/job/step/memory.stat": "anon 400\ninactive_file 250\n",
            "sys/fs/cgroup/job/memory.max": "800\n",
            "sys/fs/cgroup/job/memory.current": "650\n",
            "sys/fs/cgroup/memory.max": "max\n",
        },
    )
    inner, outer = groups(root)
    assert (inner.size, inner.free) == (1000, 550) and (outer.size, outer.free) == (800, 150)


@pytest.mark.parametrize("folder", ["memory/docker/1a2b", "memory"])
def test_a_group_of_version_1(folder: str, tmp_path: Path) -> None:
    """In a container the group of the process may be mounted as the root."""
    where = f"sys/fs/cgroup/{folder}"
    root = put(
        tmp_path,
        {
            "proc/self/cgroup": "4:cpu,memory:/docker/1a2b\n1:pids:/docker/1a2b\n",
            f"{where}/memory.limit_in_bytes": "1000\n",
            f"{where}/memory.usage_in_bytes": "500\n",
            f"{where}/memory.stat": "inactive_file 7\ntotal_inactive_file 100\n",
        },
    )
    assert groups(root) == [Limit(1000, 400, GROUP)]


def test_folders_of_groups_that_cannot_be_examined(tmp_path: Path) -> None:
    """A name that is too long raises the same kind of error as a folder that one may not search."""
    root = put(tmp_path, {"proc/self/cgroup": f"0::/{'job' * 100}\n", "sys/fs/cgroup/memory.max": "800\n"})
    assert [limit.size for limit in groups(root)] == [800]


def test_without_control_groups(tmp_path: Path) -> None:
    assert groups(tmp_path) == []
    put(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "broken"})
    assert groups(tmp_path) == []


def test_the_plan_keeps_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "limits", lambda: [Limit(300 * MIB, 100 * MIB, GROUP), Limit(250 * MIB, 0, ADDRESSES)])
    assert host.main_memory() == (200 * MIB, 250 * MIB)
    assert Budget(get_backend("cpu")).available() == int(FREE_FRACTION * 200 * MIB)


def test_the_address_space_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (2**40, resource.RLIM_INFINITY))
    (limit,) = [one for one in limits.limits() if one.origin == ADDRESSES]
    assert limit.size == 2**40 and 0 < limit.used < 2**40


@pytest.mark.parametrize(("origin", "size"), [(GROUP, 100 * MIB), (ADDRESSES, 400 * MIB)])
def test_too_little_for_python(origin: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "limits", lambda: [Limit(size, 0, origin)])
    with pytest.raises(
        InputError, match=r"MiB of memory are allowed by .*, but cuanto itself needs .* raise the limit"
    ):
        limits.require_memory()


@pytest.mark.parametrize(("allowed", "status"), [(60_000, 2), (300_000, 2), (524_288, 0)])
def test_ulimit_gives_a_result_or_an_error_of_one_line(allowed: int, status: int, tmp_path: Path) -> None:
    """Without the check, OpenBLAS hangs for a while at 300 MB and is then killed, and NumPy reports a broken
    installation at 60 MB."""
    (tmp_path / "h2.xyz").write_text(H2)
    command = [sys.executable, "-m", "cuanto", "energy", "h2.xyz", "-b", "sto-3g", "--backend", "cpu", "-q"]
    done = subprocess.run(
        ["/bin/sh", "-c", f'ulimit -v {allowed}; exec "$@"', "sh", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == status, done.stderr
    if status:
        assert done.stderr.count("\n") == 1 and "`ulimit -v`, but cuanto itself needs 512 MiB" in done.stderr
    else:
        assert done.stdout.startswith("h2 -1.1167")
