// Panels: PANEL points at a time, values as [component][function][point], and products of small matrices with them,
// with as many sums in registers as fit.
#define VECTORS 3
#define PANEL (VECTORS * LANES)
#if defined(__AVX512F__) && LANES == 8  // 32 registers
#define TILE 8
#else
#define TILE 4
#endif
#define DEPTH_TILE 4  // functions per entry of tile_depth
#define ROWS 24  // functions are padded to a multiple of this

FN INDEX up(INDEX n, INDEX to) { return (n + to - 1) / to * to; }

FN WIDE distance(const double* p, double R) {
    WIDE d;
    __builtin_memcpy(&d, p, sizeof d);
    return d - R;
}

// All listed functions at the points from g on; component c of function f begins at values + (c * rows + f) * PANEL.
FN void panel_values(INDEX g, const double* position, INDEX stride, const int* list_shell, const int* list_row,
                     int list_count, const int* shell, const double* centre, const double* primitive, INDEX rows,
                     REAL* values) {
    NO_UNROLL for (int k = 0; k < list_count; ++k) {
        const int* record = shell + SHELL_FIELDS * (INDEX)list_shell[k];
        const double* R = centre + 3 * (INDEX)list_shell[k];
        REAL* place = values + (INDEX)list_row[k] * PANEL;
        const int width = functions_in(record[0]);
        NO_UNROLL for (int v = 0; v < VECTORS; ++v) {
            const double* p = position + g + v * LANES;
            const WIDE x = distance(p, R[0]), y = distance(p + stride, R[1]), z = distance(p + 2 * stride, R[2]);
            shell_values(record, primitive, x, y, z, [&](int q, int c, int m, VEC value) {
                vstore(place + (c * rows + q * width + m) * PANEL + v * LANES, value);
            });
        }
    }
}

// out[row][point] = sum_q A[row][q] in[q][point]; A is packed: TILE rows interleaved for each q. With `triangle` A is zero
// right of its diagonal; `tile_depth`: number of significant q of each tile of rows (null: all).
FN void panel_product(const REAL* A, INDEX rows, INDEX depth, const REAL* in, REAL* out, bool triangle = false,
                      const int* tile_depth = 0) {
    NO_UNROLL for (INDEX p = 0; p < rows; p += TILE) {
        VEC sum[TILE][VECTORS];
        UNROLL for (int i = 0; i < TILE; ++i)
            UNROLL for (int v = 0; v < VECTORS; ++v) sum[i][v] = vset(0);
        const REAL *a = A + p * depth, *b = in;
        INDEX end = tile_depth ? tile_depth[p / DEPTH_TILE] : depth;
        if (triangle && p + TILE < end) end = p + TILE;
        NO_UNROLL for (INDEX q = 0; q < end; ++q, a += TILE, b += PANEL) {
            VEC column[VECTORS];
            UNROLL for (int v = 0; v < VECTORS; ++v) column[v] = vload(b + v * LANES);
            UNROLL for (int i = 0; i < TILE; ++i) {
                const VEC factor = vset(a[i]);
                UNROLL for (int v = 0; v < VECTORS; ++v) sum[i][v] = vfma(factor, column[v], sum[i][v]);
            }
        }
        UNROLL for (int i = 0; i < TILE; ++i)
            UNROLL for (int v = 0; v < VECTORS; ++v) vstore(out + (p + i) * PANEL + v * LANES, sum[i][v]);
    }
}

// A[row][q] = source(row, q) for rows up to a whole number of tiles, packed for panel_product.
template <class F>
FN void pack(REAL* A, INDEX rows, INDEX valid, INDEX depth, const F& source) {
    for (INDEX p = 0; p < rows; p += TILE)
        for (INDEX q = 0; q < depth; ++q)
            for (INDEX i = 0; i < TILE; ++i) *A++ = p + i < valid ? source(p + i, q) : REAL(0);
}

// Pack the rows and columns of a group's functions (`ao`) from the symmetric matrix D of all functions. With `half`, elements
// right of the diagonal are zero and those left of it doubled, which is enough for rho and tau, but not for the gradient.
FN void pack_matrix(REAL* A, INDEX rows, INDEX functions, const int* ao, const int* run_row, const int* run_ao, int runs,
                    const int* tile_depth, const REAL* D, INDEX nbf, bool half) {
    for (INDEX p = 0; p < rows; p += TILE) {
        const INDEX depth = tile_depth[p / DEPTH_TILE];
        for (int i = 0; i < TILE; ++i) {
            if (p + i >= functions) {
                for (INDEX q = 0; q < depth; ++q) A[(p * functions) + q * TILE + i] = 0;
                continue;
            }
            const REAL* row = D + ao[p + i] * nbf;
            for (int k = 0; k < runs && run_row[k] < depth; ++k) {
                const INDEX end = run_row[k + 1] < depth ? run_row[k + 1] : depth;
                const REAL* source = row + run_ao[k] - run_row[k];
                REAL* place = A + p * functions + i;
                if (!half)
                    for (INDEX q = run_row[k]; q < end; ++q) place[q * TILE] = source[q];
                else
                    for (INDEX q = run_row[k]; q < end; ++q)
                        place[q * TILE] = q < p + i ? 2 * source[q] : q == p + i ? source[q] : REAL(0);
            }
        }
    }
}

// The factors of D = C C^T: C^T [orbital][function], then C [function][orbital], each padded to a whole number of tiles.
FN void pack_orbitals(REAL* A, int functions, const int* ao, const REAL* C, INDEX width) {
    pack(A, up(width, TILE), width, functions, [&](INDEX i, INDEX q) { return C[ao[q] * width + i]; });
    pack(A + up(width, TILE) * up(functions, TILE), up(functions, TILE), functions, width,
         [&](INDEX p, INDEX i) { return C[ao[p] * width + i]; });
}

// Clear the rows from `used` on in `count` arrays of `rows` rows.
FN void clear_rows(REAL* place, INDEX count, INDEX rows, INDEX used) {
    for (INDEX i = 0; i < count; ++i)
        for (INDEX j = (i * rows + used) * PANEL; j < (i + 1) * rows * PANEL; ++j) place[j] = 0;
}
