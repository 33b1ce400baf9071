"""Index arithmetic that several packages share."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from cuanto.arrays import SparseMatrix, add_transpose, morton_codes, range_members, range_starts


def test_ranges() -> None:
    sizes = [3, 0, 2]
    assert range_starts(sizes).tolist() == [0, 3, 3, 5] and range_starts([]).tolist() == [0]
    owner, within = range_members(sizes)
    assert owner.tolist() == [0, 0, 0, 2, 2] and within.tolist() == [0, 1, 2, 0, 1]


def test_morton_codes_fill_cubes_one_after_the_other() -> None:
    """The 8 cells of every cube of side 2 have consecutive numbers, and so have the 64 of side 4."""
    cells = np.stack(np.meshgrid(*3 * [np.arange(8.0)], indexing="ij"), axis=-1).reshape(-1, 3)
    codes = morton_codes(3.0 * cells - 7.0, cell=3.0)
    assert sorted(codes) == list(range(512))
    for side in (2, 4):
        cubes = (cells // side) @ [100, 10, 1]
        assert all(np.unique(codes[cubes == cube] // side**3).size == 1 for cube in np.unique(cubes))


def test_add_transpose_by_tiles() -> None:
    matrix = np.random.default_rng(5).normal(size=(300, 300))
    expected = matrix + matrix.T
    add_transpose(matrix, 128)
    assert np.array_equal(matrix, expected)


def test_sparse_matrices_by_rows() -> None:
    rng = np.random.default_rng(1)
    full = np.where(rng.random((5, 7)) < 0.4, rng.normal(size=(5, 7)), 0.0)
    full[2] = 0.0  # an empty row
    order = rng.permutation(np.count_nonzero(full))
    row, column = (index[order] for index in np.nonzero(full))
    for matrix, expected in (
        (SparseMatrix(row, column, full[row, column], full.shape), full),
        (SparseMatrix(row, column, full[row, column], full.shape).T, full.T),
    ):
        start, index, value = matrix.compressed_rows
        assert np.array_equal(matrix.toarray(), expected) and matrix.shape == expected.shape
        for p, (begin, end) in enumerate(pairwise(start)):
            assert np.array_equal(index[begin:end], np.flatnonzero(expected[p]))
            assert np.array_equal(value[begin:end], expected[p][index[begin:end]])
