// P_row += X D_column and P_column += X^T D_row of rows of a class: the matrix is read from memory once for both, which
// determines the run time. Vectors are [component][pair of any symmetry], components LL, SS, LS, SL (LS transposed: D_sr).
// `weight` [l][m]: weight of a density of symmetry m in rows of symmetry l, or one number for all.

// One group of columns: `mine` is D of the row, `sum` collects P of the row.
FN void one_group(const REAL* X, const REAL* D, REAL* P, INDEX width, const VEC* mine, VEC* sum) {
    for (int lane = 0; lane < GROUP; lane += LANES) {
        const VEC LL = vload(X + lane);
#if RELATIVISTIC
        const VEC SS = vload(X + GROUP + lane), LS = vload(X + 2 * GROUP + lane), SL = vload(X + 3 * GROUP + lane);
        const VEC K0 = vload(X + 4 * GROUP + lane), K1 = vload(X + 5 * GROUP + lane);
        const VEC K2 = vload(X + 6 * GROUP + lane), K3 = vload(X + 7 * GROUP + lane);
        const VEC DLL = vload(D + lane), DSS = vload(D + width + lane);
        const VEC DLS = vload(D + 2 * width + lane), DSL = vload(D + 3 * width + lane);
        sum[0] = vfma(LL, DLL, vfma(LS, DSS, sum[0]));
        sum[1] = vfma(SL, DLL, vfma(SS, DSS, sum[1]));
        sum[2] = vfma(K0, DLS, vfma(K1, DSL, sum[2]));
        sum[3] = vfma(K2, DLS, vfma(K3, DSL, sum[3]));
        vstore(P + lane, vfma(LL, mine[0], vfma(SL, mine[1], vload(P + lane))));
        vstore(P + width + lane, vfma(LS, mine[0], vfma(SS, mine[1], vload(P + width + lane))));
        vstore(P + 2 * width + lane, vfma(K0, mine[2], vfma(K2, mine[3], vload(P + 2 * width + lane))));
        vstore(P + 3 * width + lane, vfma(K1, mine[2], vfma(K3, mine[3], vload(P + 3 * width + lane))));
#else
        sum[0] = vfma(LL, vload(D + lane), sum[0]);
        vstore(P + lane, vfma(LL, mine[0], vload(P + lane)));
#endif
    }
}

KERNEL(THREADS) ENTRY(PARAMETERS) {
    for (INDEX item = begin; item < end; ++item) {
        const INDEX* task = tasks + item * TASK_FIELDS;
        const INDEX i = task[TASK_I], j = task[TASK_J], groups = task[TASK_COLUMNS] / GROUP;
        const REAL w = symmetries == 1 ? weight[0] : weight[i * symmetries + j];
        if (w == 0) continue;
        const REAL* D_column = D + task[TASK_COLUMN_PLACE];
        REAL* P_column = SUMS(P) + task[TASK_COLUMN_PLACE];
        for (INDEX row = task[TASK_BEGIN]; row < task[TASK_END]; ++row) {
            const REAL* matrix = X + task[TASK_MATRIX] + row * groups * (PLANES * GROUP);
            const INDEX used = i == j ? row / GROUP + 1 : groups, place = task[TASK_ROW_PLACE] + row;
            VEC mine[COMPONENTS], sum[COMPONENTS];
            UNROLL for (int c = 0; c < COMPONENTS; ++c) {
                mine[c] = vset(w * D[c * total + place]);
                sum[c] = vset(0);
            }
            for (INDEX group = 0; group < used; ++group) {
                const INDEX first = group * GROUP;
                one_group(matrix + PLANES * first, D_column + first, P_column + first, total, mine, sum);
            }
            UNROLL for (int c = 0; c < COMPONENTS; ++c) ADD(SUMS(P) + c * total + place, w * vsum(sum[c]));
        }
    }
}
