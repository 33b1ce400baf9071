// Straight-line kernels: one bra with a vector of kets, or with the ket of a thread. The generated functions
// primitive() and contracted() precede this text, with WIDTH, BRA_FIELDS, KET_FIELDS, BRA_FUNCTIONS and KET_FUNCTIONS.
#if LANES > 1  // a core has memory for the sums of all contraction columns, which begin with the first primitive quartet
#define CLEARED false
#define COLUMNS_AT_ONCE x.columns
#define COLUMN_SUMS VEC(*acc)[WIDTH] = (VEC(*)[WIDTH])lane_memory(x.columns * WIDTH)
#define COLUMN_FACTORS(given) const REAL* factor = given
#else  // a thread keeps those of COLUMNS columns in registers, cleared
#define CLEARED true
#define COLUMNS_AT_ONCE COLUMNS
#define COLUMN_SUMS VEC acc[COLUMNS][WIDTH]
#define COLUMN_FACTORS(given) \
    REAL factor[COLUMNS];     \
    for (int q = 0; q < COLUMNS; ++q) factor[q] = q0 + q < x.columns ? (given)[q] : REAL(0)
#endif

// Bra b with the kets from `ket` on; make_store(column) takes the integrals of a column.
template <class MakeStore> FN void quartet(const Sides& x, INDEX b, INDEX ket, const MakeStore& make_store) {
    const INDEX block = ket / BLOCK, lane = ket % BLOCK;
    COLUMN_SUMS;
    for (INDEX q0 = 0; q0 < x.columns; q0 += COLUMNS_AT_ONCE) {
        bool start = !CLEARED;
        for (int q = 0; CLEARED && q < COLUMNS_AT_ONCE; ++q)
            for (int j = 0; j < WIDTH; ++j) acc[q][j] = vset(0);
        for (INDEX k = x.bra_first[b]; k < x.bra_first[b + 1]; ++k) {
            const REAL* bra = x.bra_record + k * BRA_FIELDS;
            COLUMN_FACTORS(x.bra_coefficient + k * x.columns + q0);
            for (INDEX l = x.ket_first[block]; l < x.ket_first[block + 1]; ++l) {
                const REAL* mine = x.ket_record + l * KET_FIELDS * BLOCK + lane;
#if SCREENED
                if (!start && !vany(bra[SIZE] * vload(mine + SIZE * BLOCK) >= REAL(x.cutoff))) break;
#endif
                VEC value[WIDTH];
                primitive(bra, mine, x.boys_table, value);
                for (int q = 0; q < COLUMNS_AT_ONCE; ++q) {
                    const REAL c = factor[q];
                    if (start) for (int j = 0; j < WIDTH; ++j) acc[q][j] = c * value[j];
                    else for (int j = 0; j < WIDTH; ++j) acc[q][j] = vfma(c, value[j], acc[q][j]);
                }
                start = false;
            }
        }
        const REAL* distance = x.ket_shell + block * SHELL_FIELDS * BLOCK + lane;
        for (int q = 0; q < COLUMNS_AT_ONCE; ++q)
            if (q0 + q < x.columns) contracted(x.bra_shell + b * SHELL_FIELDS, distance, acc[q], make_store(q0 + q));
    }
}
