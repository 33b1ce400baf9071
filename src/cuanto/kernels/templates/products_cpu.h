// C = op(A) op(B) by tiles: an item is a tile of at most `tile` rows and columns. With `lower` only tiles on or below
// the diagonal are computed.
KERNEL(1) ENTRY(PARAMETERS) {
    const INDEX across = (columns + tile - 1) / tile;
    FOR_ITEMS(item) {
        INDEX i = item / across, j = item % across;
        if (lower) {
            for (i = 0, j = item; j > i; ++i) j -= i + 1;
        }
        const INDEX r = i * tile, c = j * tile;
        const INDEX m = rows - r < tile ? rows - r : tile, n = columns - c < tile ? columns - c : tile;
        product((const Blas*)blas, transpose_a, transpose_b, m, n, depth, A + (transpose_a ? r : r * lda), lda,
                B + (transpose_b ? c * ldb : c), ldb, 0, C + r * ldc + c, ldc);
    }
}
