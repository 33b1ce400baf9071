// Straight-line kernels on the GPU: one ket per thread. Included behind the generated functions primitive() and
// contracted(). COLUMNS contraction columns are summed at once; more columns take more passes.

// Bra b with one ket; make_store(column) takes the integrals of a column.
template <class MakeStore> FN void thread_quartet(const Sides& x, INDEX b, INDEX ket, const MakeStore& make_store) {
    const INDEX block = ket / BLOCK, lane = ket % BLOCK;
    for (int q0 = 0; q0 < x.columns; q0 += COLUMNS) {
        REAL acc[COLUMNS][WIDTH];
        for (int q = 0; q < COLUMNS; ++q)
            for (int j = 0; j < WIDTH; ++j) acc[q][j] = 0;
        for (INDEX k = x.bra_first[b]; k < x.bra_first[b + 1]; ++k) {
            REAL coefficient[COLUMNS];
            for (int q = 0; q < COLUMNS; ++q)
                coefficient[q] = q0 + q < x.columns ? x.bra_coefficient[k * x.columns + q0 + q] : REAL(0);
            const REAL* bra = x.bra_record + k * BRA_FIELDS;
            for (INDEX c = x.ket_first[block]; c < x.ket_first[block + 1]; ++c) {
                const REAL* mine = x.ket_record + c * KET_FIELDS * BLOCK + lane;
#if SCREENED
                if (bra[SIZE] * mine[SIZE * BLOCK] < REAL(x.cutoff)) break;
#endif
                REAL value[WIDTH];
                primitive(bra, mine, x.boys_table, value);
                for (int q = 0; q < COLUMNS; ++q)
                    for (int j = 0; j < WIDTH; ++j) acc[q][j] = vfma(coefficient[q], value[j], acc[q][j]);
            }
        }
        for (int q = 0; q < COLUMNS; ++q)
            if (q0 + q < x.columns)
                contracted(x.bra_shell + b * SHELL_FIELDS, x.ket_shell + block * SHELL_FIELDS * BLOCK + lane, acc[q],
                           make_store(q0 + q));
    }
}
