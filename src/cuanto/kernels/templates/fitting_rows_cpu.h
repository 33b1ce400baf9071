// Fitted J and K from the rows B_pqP of every function p (coulomb/fitting_rows.py); a row has naux numbers.
#if KERNEL_SOLVE
// Rows times L^T: rows `one` are replaced and copied to `other` (null: all rows, in place); L is a lower `triangle` or a full
// matrix. By panels of columns, each of which needs no later ones.
enum { PANEL_COLUMNS = 256 };

KERNEL(1) ENTRY(PARAMETERS) {
    for (INDEX from = begin; from < end; from += SOLVED_AT_ONCE) {
        const INDEX count = end - from < SOLVED_AT_ONCE ? end - from : SOLVED_AT_ONCE;
        double* made = scratch + SOLVED_AT_ONCE * naux;
        for (INDEX i = 0; i < count; ++i) {
            const double* row = rows + (one ? one[from + i] : from + i) * naux;
            for (INDEX P = 0; P < naux; ++P) scratch[i * naux + P] = row[P];
        }
        for (INDEX P = 0; P < naux; P += PANEL_COLUMNS) {
            const INDEX n = naux - P < PANEL_COLUMNS ? naux - P : PANEL_COLUMNS;
            product((const Blas*)blas, false, true, count, n, triangle ? P + n : naux, scratch, naux, L + P * naux, naux, 0.0,
                    made + P, naux);
        }
        for (INDEX i = 0; i < count; ++i) {
            double* row = rows + (one ? one[from + i] : from + i) * naux;
            for (INDEX P = 0; P < naux; ++P) row[P] = made[i * naux + P];
            if (!other) continue;
            row = rows + other[from + i] * naux;
            for (INDEX P = 0; P < naux; ++P) row[P] = made[i * naux + P];
        }
    }
}
#elif KERNEL_FIT
// sums_P += sum of `density` times row, over the rows first[p][0] to first[p][1] of every function p
KERNEL(1) ENTRY(PARAMETERS) {
    FOR_ITEMS(p)
        if (first[2 * p + 1] > first[2 * p])
            product_with_vector((const Blas*)blas, true, first[2 * p + 1] - first[2 * p], naux, rows + first[2 * p] * naux, naux,
                                density + first[2 * p], 1.0, sums);
}
#elif KERNEL_POTENTIAL
// out[row] = row . fit
KERNEL(1) ENTRY(PARAMETERS) {
    FOR_ITEMS(p)
        if (first[2 * p + 1] > first[2 * p])
            product_with_vector((const Blas*)blas, false, first[2 * p + 1] - first[2 * p], naux, rows + first[2 * p] * naux,
                                naux, fit, 0.0, out + first[2 * p]);
}
#elif KERNEL_TRANSFORM
// X_iP = sum_q C_qi B_qP: an item has consecutive rows, of functions q in its part of the list, and consecutive columns i of C.
KERNEL(1) ENTRY(PARAMETERS) {
    FOR_ITEMS(k) {
        const INDEX from = item_list[2 * k], count = item_list[2 * k + 1] - from, m = item_columns[k];
        for (INDEX q = 0; q < count; ++q) {
            const double* source = C + list[from + q] * columns + item_column[k];
            for (INDEX i = 0; i < m; ++i) scratch[q * m + i] = source[i];
        }
        product((const Blas*)blas, true, false, m, naux, count, scratch, m, rows + item_row[k] * naux, naux, 0.0, X + item_out[k],
                item_step[k]);
    }
}
#elif KERNEL_SQUARES
// sums_pq = sum_iP X_ipP X_iqP of a tile; an item: where X begins, how many functions it has, first and last i, first p, first
// q, and where the numbers of its functions begin in `place`.
struct Square {
    INDEX X, functions, first_i, last_i, p, q, place;
};

KERNEL(1) ENTRY(PARAMETERS) {
    const Square s = ((const Square*)item)[begin];
    const INDEX m = s.functions - s.p < tile ? s.functions - s.p : tile, n = s.functions - s.q < tile ? s.functions - s.q : tile;
    for (INDEX i = s.first_i; i < s.last_i; ++i) {
        const double* X_pP = X + s.X + i * s.functions * naux;
        product((const Blas*)blas, false, true, m, n, naux, X_pP + s.p * naux, naux, X_pP + s.q * naux, naux, i > s.first_i, sums,
                tile);
    }
}

static void merge_squares(PARAMETERS) {
    const Square s = ((const Square*)item)[begin];
    const INDEX m = s.functions - s.p < tile ? s.functions - s.p : tile, n = s.functions - s.q < tile ? s.functions - s.q : tile;
    for (INDEX a = 0; a < m; ++a)
        for (INDEX b = 0; b < n; ++b) {
            const INDEX p = place[s.place + s.p + a], q = place[s.place + s.q + b];
            K[p * n_all + q] += sums[a * tile + b];
            if (s.p != s.q) K[q * n_all + p] += sums[a * tile + b];
        }
}
#endif
